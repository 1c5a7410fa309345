"""Which column of a DataFrame goes into which column of a map, and whether its type can.

Only types are judged here, before any row is read; values are judged by the tasks that hold them, with the same
function that tables loaded without Spark go through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import SqlError, missing_column, nearest, repeated_column, value_error
from remuda.spark.driver.arrow_types import arrow_type
from remuda.types import Kind, common_type, from_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructField, StructType

    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.types import SqlType

_VARIANT = "variant"
"""The name of a type that PySpark has since 4.0."""


def match_columns(
    definition: MapDefinition, schema: StructType, *, generates_keys: bool = False
) -> dict[str, StructField]:
    """Return for each column of the map, by name, the field that fills it, whatever its case.

    Nullable columns may be missing.

    So may the hidden key of a map without PRIMARY KEY, for those who will generate it.
    """
    matched: dict[str, StructField] = {}
    for field in schema.fields:
        column = definition.find_column(field.name)
        if column is None:
            raise missing_column(
                f"{definition.name} has no column {field.name}",
                suggestion=nearest(field.name, [each.name for each in definition.columns]),
            )
        if column.name in matched:
            raise repeated_column(f"the DataFrame has two columns for {definition.name}.{column.name}")
        if not (column.type.json and is_nested(field)) and (
            not _goes_into(_sql_type(definition, column, field), column.type)
        ):
            raise value_error(
                f"{definition.name}.{column.name} is {column.type}, the DataFrame's {field.name} is "
                f"{field.dataType.simpleString()}",
                suggestion=f'Cast it first: .withColumn("{field.name}", ... .cast("{column.type.spark}")).',
            )
        matched[column.name] = field
    missing = [
        column
        for column in definition.columns
        if column.name not in matched and _is_required(definition, column) and not (column.hidden and generates_keys)
    ]
    if missing:
        raise missing_column(f"the DataFrame has no column for {definition.name}.{missing[0].name}")
    return matched


def _goes_into(given: SqlType, held: SqlType) -> bool:
    """Tell whether a column of the map takes values of a type.

    A time without a zone is a moment only in the zone of a session, which tasks are not told: Spark casts it.
    """
    if held.kind is Kind.TIMESTAMP_TZ:
        return given.kind in {Kind.TIMESTAMP_TZ, Kind.NULL}
    return common_type(given, held) is not None


def frame_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a DataFrame, of which a map is to be made."""
    from pyspark.errors import PySparkException

    fields = []
    for field in schema.fields:
        try:
            arrow = arrow_type(field.dataType)
        except PySparkException as error:
            raise value_error(
                f"the column {field.name} is {field.dataType.simpleString()}, which has no SQL type",
                suggestion=f'Leave it out, or cast it: .withColumn("{field.name}", ... .cast("string")).',
            ) from error
        if field.dataType.typeName() == _VARIANT:
            # So is it named where it is refused.
            arrow = pa.struct({"variant": pa.binary()})
        fields.append(pa.field(field.name, arrow))
    return pa.schema(fields)


def is_nested(field: StructField) -> bool:
    """Test whether a field's values become JSON, if anything."""
    return field.dataType.typeName() in {"array", "map", "struct", _VARIANT}


def source_column(field: StructField) -> Column:
    """Return the column of that very name: quoted, for a dot in a name is not a path."""
    from pyspark.sql import functions

    return functions.col("`" + field.name.replace("`", "``") + "`")


def _is_required(definition: MapDefinition, column: ColumnDefinition) -> bool:
    return not column.nullable or column.name in definition.key


def _sql_type(definition: MapDefinition, column: ColumnDefinition, field: StructField) -> SqlType:
    from pyspark.errors import PySparkException

    try:
        return from_arrow(arrow_type(field.dataType))
    except (PySparkException, SqlError) as error:
        raise value_error(
            f"{definition.name}.{column.name} is {column.type}, the DataFrame's {field.name} is "
            f"{field.dataType.simpleString()}, which has no SQL type"
        ) from error
