"""How data tells changes: which column says insert, update or delete, and which one orders the changes of a key.

Presets know the form of a change feed: `delta`, what Delta's change data feed delivers, and `debezium`, the envelope
with `op`, `before` and `after`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import missing_column, nearest, option_error, shown, value_error
from remuda.types import from_arrow
from remuda.types.arrow_arrays import flat
from remuda.types.arrow_compute import pc
from remuda.types.normalized_key import NULL_KEY, normalized_key, normalized_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition

Preset = Literal["delta", "debezium"]

WRITTEN = frozenset({"insert", "i", "c", "create", "r", "read", "update", "u", "upsert", "update_postimage"})
DELETED = frozenset({"delete", "d"})
LEFT_OUT = frozenset({"update_preimage"})

_DELTA_OPERATION, _DELTA_ORDER = "_change_type", "_commit_version"
_DELTA_COLUMNS = (_DELTA_OPERATION, _DELTA_ORDER, "_commit_timestamp")
_DEBEZIUM_COLUMNS = ("op", "before", "after")
_DEBEZIUM_ORDERS = ("source.lsn", "ts_ms", "source.ts_ms")
"""Where there is no `orderBy`: the first of these that the envelope has."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes as they come: rows with the columns of the map, those that are deletions, and their order.

    `order` has NULL_KEY where it is NULL, which is older than any value; None where no column says.
    """

    table: pa.Table
    deletes: np.ndarray
    order: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class ChangeFormat:
    """Names the columns that tell a change. Without an operation all rows are written. Plain data that pickles."""

    operation: str | None = None
    order_by: str | None = None
    preset: Preset | None = None

    @classmethod
    def checked(cls, operation: str | None, order_by: str | None, preset: str | None) -> ChangeFormat:
        if preset is not None and preset not in get_args(Preset):
            raise option_error(f"changes must be one of {', '.join(get_args(Preset))}, not {preset!r}")
        if preset is not None and operation is not None:
            raise option_error(
                f"changes = {preset} knows the column of the operation: leave operation = {operation} out"
            )
        if preset is None and operation is None:
            raise option_error(
                'mode apply needs the column that says insert, update or delete: operation="...", or changes="delta" '
                'or "debezium"'
            )
        return cls(operation, order_by, cast("Preset | None", preset))

    def row_schema(self, definition: MapDefinition | None, schema: pa.Schema) -> pa.Schema:
        """Return the columns that go into a map, of data with this schema. A map that is there keeps those it has."""
        if self.preset == "debezium":
            return pa.schema(list(_image(schema)))
        if self.preset is None and self.operation is None:
            return schema
        told = _DELTA_COLUMNS if self.preset == "delta" else (self.operation, self.order_by)
        _column(schema.names, self._operation)
        held = () if definition is None else [each.name.casefold() for each in definition.columns]
        folded = {each.casefold() for each in told if each is not None} - set(held)
        if definition is None and self.preset is None and self.order_by is not None:
            folded.discard(self.order_by.casefold())
        return pa.schema([field for field in schema if field.name.casefold() not in folded])

    def read(self, definition: MapDefinition, table: pa.Table) -> Changes:
        """Take changes apart; preimages of updates are left out."""
        table = _without_views(table)
        if self.preset is None and self.operation is None:
            return Changes(table, np.zeros(table.num_rows, np.bool_), self._order(table))
        operations = flat(table.column(_column(table.column_names, self._operation)))
        codes = _codes(operations)
        if self.preset == "debezium":
            codes = _without_tombstones(table, codes)
        _refuse_unknown(operations, codes, self._operation)
        kept = codes != _LEFT_OUT
        order = self._order(table)
        rows = _debezium_rows(table, codes) if self.preset == "debezium" else table
        rows = rows.select(self.row_schema(definition, table.schema).names)
        if not kept.all():
            mask = pa.array(kept)
            rows, codes, order = rows.filter(mask), codes[kept], None if order is None else order[kept]
        return Changes(rows, codes == _DELETED, order)

    @property
    def _operation(self) -> str:
        if self.preset is not None:
            return _DELTA_OPERATION if self.preset == "delta" else "op"
        assert self.operation is not None, "checked"
        return self.operation

    @property
    def order_name(self) -> str | None:
        """Return the column of the order; None where there is none, or only the data tells it."""
        return self.order_by or (_DELTA_ORDER if self.preset == "delta" else None)

    def _order(self, table: pa.Table) -> np.ndarray | None:
        """Return the order of the rows."""
        name = self.order_name
        if name is None and self.preset == "debezium":
            name = next((each for each in _DEBEZIUM_ORDERS if _find(table, each) is not None), None)
        if name is None:
            return None
        found = _find(table, name)
        if found is None:
            hint = nearest(name, table.column_names)
            raise missing_column(f"the data has no column {name} to order by", suggestion=hint)
        return _order_keys(name, flat(found))


def change_format(
    mode: str, operation: str | None, order_by: str | None, preset: str | None, condition: str | None
) -> ChangeFormat | None:
    """Return how the data of a load tells changes; None for a load whose rows all count."""
    if mode == "apply":
        return ChangeFormat.checked(operation, order_by, preset)
    if operation is not None or preset is not None:
        raise option_error(f"operation and changes say what rows of mode apply do: mode is {mode}")
    if condition is None:
        return None
    if mode != "upsert":
        raise option_error(f"a condition says which rows of an upsert are written: mode is {mode}")
    return ChangeFormat(None, order_by)


def refuse_generated_key(definition: MapDefinition) -> None:
    """Raise for a map without PRIMARY KEY: changes name their row by its key."""
    if any(column.hidden for column in definition.columns):
        raise option_error(f"{definition.name} has no PRIMARY KEY: changes are applied to rows by their key")


def _without_views(table: pa.Table) -> pa.Table:
    """Return the table with texts in place of the views of texts that polars has: Arrow takes and chooses no views."""
    for number, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(pa.string()))
    return table


_UNKNOWN, _WRITTEN, _DELETED, _LEFT_OUT = 0, 1, 2, 3


def _codes(operations: pa.Array) -> np.ndarray:
    """Return a code for each operation, whatever its case."""
    if not (pa.types.is_string(operations.type) or pa.types.is_large_string(operations.type)):
        operations = operations.cast(pa.string())
    folded = pc.utf8_lower(operations)
    codes = np.zeros(len(operations), np.int8)
    for code, words in ((_WRITTEN, WRITTEN), (_DELETED, DELETED), (_LEFT_OUT, LEFT_OUT)):
        codes[np.asarray(pc.fill_null(pc.is_in(folded, pa.array(sorted(words))), False))] = code
    return codes


def _without_tombstones(table: pa.Table, codes: np.ndarray) -> np.ndarray:
    """Leave out the messages without content that Kafka has behind a deletion."""
    empty = np.ones(len(codes), np.bool_)
    for name in _DEBEZIUM_COLUMNS:
        empty &= np.asarray(flat(table.column(_column(table.column_names, name))).is_null())
    return np.where(empty, np.int8(_LEFT_OUT), codes)


def _refuse_unknown(operations: pa.Array, codes: np.ndarray, name: str) -> None:
    unknown = np.flatnonzero(codes == _UNKNOWN)
    if len(unknown):
        value = operations[int(unknown[0])].as_py()
        raise value_error(
            f"{name} says {'NULL' if value is None else shown(value)}, which is no operation, row {unknown[0] + 1}",
            suggestion=f"Operations are {', '.join(sorted(WRITTEN | DELETED | LEFT_OUT))}.",
        )


def _debezium_rows(table: pa.Table, codes: np.ndarray) -> pa.Table:
    """Return the image after the change, and before it where it is a deletion."""
    after, before = (flat(table.column(_column(table.column_names, name))) for name in ("after", "before"))
    is_delete = pa.array(codes == _DELETED)
    lacking = pc.if_else(is_delete, before.is_null(), after.is_null())
    lacking = pc.and_(lacking, pa.array(codes != _LEFT_OUT))
    row = pc.index(lacking, True).as_py()
    if row >= 0:
        image = "before" if codes[row] == _DELETED else "after"
        raise value_error(f"the change has no {image}, which would have its key, row {row + 1}")
    columns = {}
    fields = {field.name: field for field in _image(table.schema)}
    for name, field in fields.items():
        type_ = pa.string() if pa.types.is_string_view(field.type) else field.type
        held = pc.struct_field(after, name).cast(type_)
        if pa.types.is_struct(before.type) and before.type.get_field_index(name) >= 0:
            held = pc.if_else(is_delete, pc.struct_field(before, name).cast(type_), held)
        columns[name] = held
    return pa.table(columns)


def _image(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns of the rows in a Debezium envelope."""
    for name in _DEBEZIUM_COLUMNS:
        _column(schema.names, name)
    type_ = schema.field(_column(schema.names, "after")).type
    if not pa.types.is_struct(type_):
        raise value_error(
            f"after is {type_}, not a struct",
            suggestion="Read the envelope with the schema of its rows, in Spark by from_json(value, ...).",
        )
    return [type_.field(number) for number in range(type_.num_fields)]


def _order_keys(name: str, values: pa.Array) -> np.ndarray:
    """Return 64-bit integers that order as the values do, whichever task has them."""
    if pa.types.is_null(values.type):
        return np.full(len(values), NULL_KEY)
    if pa.types.is_unsigned_integer(values.type):
        values = values.cast(pa.int64())
    sql_type = from_arrow(values.type)
    if normalized_key(sql_type) is None:
        raise value_error(
            f"changes are ordered by a number, a date or a time: {name} is {sql_type}",
            suggestion="Cast it, or order by another column.",
        )
    keys = normalized_keys(values.cast(sql_type.arrow), sql_type)
    return np.where(np.asarray(values.is_null()), np.int64(NULL_KEY), keys)


def _find(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return a column, or a field of a struct by its path."""
    numbers = {each.casefold(): number for number, each in enumerate(table.column_names)}
    number = numbers.get(name.casefold())
    if number is not None:
        return table.column(number)
    first, _, field = name.partition(".")
    number = numbers.get(first.casefold())
    struct = None if number is None or not field else table.column(number)
    if struct is None or not pa.types.is_struct(struct.type) or struct.type.get_field_index(field) < 0:
        return None
    return pc.struct_field(struct, field)


def _column(names: Sequence[str], name: str) -> str:
    """Return the name of a column as the data spells it."""
    found = next((each for each in names if each.casefold() == name.casefold()), None)
    if found is None:
        raise missing_column(
            f"the data has no column {name}, which says the operation", suggestion=nearest(name, names)
        )
    return found
