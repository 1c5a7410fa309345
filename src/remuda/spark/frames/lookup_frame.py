"""The lookup of a frame's rows in a map: what is asked for is checked when the frame is made, not in a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import missing_column, nearest, not_found, option_error, value_error
from remuda.spark.driver.arrow_types import arrow_type, spark_type
from remuda.spark.frames.lookup_task import LookupTask
from remuda.spark.frames.map_planning import plan_map
from remuda.storage.lookup.exact_keys import refuse_incomparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.spark.source.planned_map import PlannedMap

On = str | Iterable[str] | Mapping[str, str]
Columns = Iterable[str] | Mapping[str, str]
HOW = ("left", "inner")


def lookup(
    df: DataFrame, options: Mapping[str, str], on: On, columns: Columns | None, how: str, index: str | None
) -> DataFrame:
    """Return the frame with columns of a map: see `remuda.spark.lookup`."""
    found = plan_map(df.sparkSession, options)
    planned = plan_lookup(found, df.schema, on, columns, how, index)
    return df.mapInArrow(planned.task, planned.schema)


@dataclass(frozen=True, slots=True)
class PlannedLookup:
    task: LookupTask
    schema: StructType


def plan_lookup(
    planned: PlannedMap, frame: StructType, on: On, columns: Columns | None, how: str, index: str | None
) -> PlannedLookup:
    """Check a lookup, and return its task and the schema of the result."""
    if how not in HOW:
        raise option_error(f"how must be one of {', '.join(HOW)}, not {how!r}")
    definition = planned.definition
    _refuse_duplicates(frame)
    key = _key_columns(definition, index)
    keys = _frame_positions(frame, _pairs(on, key, definition), key)
    for position, name in zip(keys, key, strict=True):
        _refuse_type(frame, position, definition, name)
    named = _named_columns(definition, columns, key)
    task = LookupTask(planned, key, keys, tuple(named), index, how == "inner")
    return PlannedLookup(task, _result_schema(frame, definition, named, task.inner))


def _key_columns(definition: MapDefinition, index: str | None) -> tuple[str, ...]:
    if index is None:
        if any(definition.column(name).hidden for name in definition.key):
            raise option_error(
                f"{definition.name} has no PRIMARY KEY", suggestion="Name an index of it: lookup(..., index=...)."
            )
        return definition.key
    found = definition.find_index(index)
    if found is None:
        hint = nearest(index, [each.name for each in definition.indexes])
        raise not_found(f"{definition.name} has no index {index}", suggestion=hint)
    return found.columns


def _pairs(on: On, key: tuple[str, ...], definition: MapDefinition) -> dict[str, str]:
    """Return the column of the frame for each key column.

    Names that are those of the key columns stand for these, whatever their order; other names are taken in order.
    """
    if isinstance(on, Mapping):
        of_key = {str(theirs).casefold(): ours for ours, theirs in on.items()}
        if set(of_key) != {name.casefold() for name in key} or len(of_key) != len(on):
            raise option_error(
                f"a lookup in {definition.name} needs its columns {', '.join(key)}, and on has "
                f"{', '.join(map(str, on.values()))}"
            )
        return {name: of_key[name.casefold()] for name in key}
    given = [on] if isinstance(on, str) else list(on)
    if len(given) != len(key):
        raise option_error(
            f"a lookup in {definition.name} needs columns for {', '.join(key)}, and on has {len(given)}: "
            f"{', '.join(map(str, given))}"
        )
    by_name = {name.casefold(): name for name in given}
    same = [name for name in key if name.casefold() in by_name]
    if len(same) == len(key):
        return {name: by_name[name.casefold()] for name in key}
    if same:
        raise option_error(
            f"on has {', '.join(given)}, and the key of {definition.name} has {', '.join(key)}: "
            "say which is which by a dictionary"
        )
    return dict(zip(key, given, strict=True))


def _refuse_duplicates(frame: StructType) -> None:
    """Raise for a frame that Spark cannot hand to Python as Arrow."""
    folded = [name.casefold() for name in frame.names]
    twice = next((name for name in frame.names if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise option_error(f"the DataFrame has more than one column {twice}: rename all but one of them")


def _frame_positions(frame: StructType, pairs: dict[str, str], key: Sequence[str]) -> tuple[int, ...]:
    positions = []
    for name in key:
        wanted = pairs[name]
        found = [number for number, each in enumerate(frame.names) if each.casefold() == wanted.casefold()]
        if not found:
            raise missing_column(f"the DataFrame has no column {wanted}", suggestion=nearest(wanted, frame.names))
        positions.append(found[0])
    return tuple(positions)


def _refuse_type(frame: StructType, position: int, definition: MapDefinition, name: str) -> None:
    """Raise where SQL does not compare the column of the frame with that of the map."""
    from pyspark.errors import PySparkException

    field = frame[position]
    try:
        arrow = arrow_type(field.dataType)
    except PySparkException:
        raise value_error(f"{field.name} is {field.dataType.simpleString()}, which is no key") from None
    refuse_incomparable(arrow, definition.column(name).type, name)


def _named_columns(definition: MapDefinition, columns: Columns | None, key: tuple[str, ...]) -> dict[str, str]:
    """Return the columns to read and their names in the result: all but the key where none are given."""
    if columns is None:
        return {column.name: column.name for column in definition.visible_columns if column.name not in key}
    if isinstance(columns, str):
        raise option_error("columns are a list of names, or a dictionary from names to new names")
    renamed = dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}
    named = {}
    for name, new in renamed.items():
        column = definition.find_column(name)
        if column is None:
            hint = nearest(name, [each.name for each in definition.visible_columns])
            raise missing_column(f"{definition.name} has no column {name}", suggestion=hint)
        named[column.name] = column.name if new == name else new
    return named


def _result_schema(frame: StructType, definition: MapDefinition, named: dict[str, str], inner: bool) -> StructType:
    from pyspark.sql.types import StructField, StructType

    taken = {name.casefold() for name in frame.names}
    fields = list(frame.fields)
    for name, new in named.items():
        if new.casefold() in taken:
            raise option_error(
                f"the frame has a column {new} already: leave {name} out of columns, or give it another name by "
                f'columns={{"{name}": "..."}}'
            )
        taken.add(new.casefold())
        column = definition.column(name)
        fields.append(StructField(new, spark_type(column), column.nullable or not inner))
    return StructType(fields)
