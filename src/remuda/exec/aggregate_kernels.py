"""One grouping step: rows to states, and states to fewer states. The kernels are Arrow's; the semantics are SQL's.

Arrow's sum of 64-bit integers wraps, its MAX ignores NaN, and it tells -0.0 from 0.0 and NaN from NaN: all are mended
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.exec.ordering import floats_from_ordered, ordered_integers
from remuda.expr.decimals import divide_batch
from remuda.expr.function import Signature
from remuda.types import BIGINT, Kind, SqlType, exact_digits, from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

_INT64_LIMIT = 2**63
_DECIMAL_LIMIT = 9.9e37
_WIDE_PRECISION = 76


@dataclass(frozen=True, slots=True)
class StateSpec:
    """How one state comes about: `function` over the column at `place` (none for COUNT(*)), with a result of `type`."""

    function: str
    place: int | None
    type: SqlType
    distinct: bool = False


def group(table: pa.Table, key_places: Sequence[int], specs: Sequence[StateSpec]) -> pa.RecordBatch:
    """The states of each group: key columns first, then one column for each spec. No keys: exactly one row."""
    keys = [_canonical(table.column(place)) for place in key_places]
    arguments = [_Argument.of(table, spec) for spec in specs]
    states = _grouped(keys, arguments) if keys else [argument.total(table.num_rows) for argument in arguments]
    arrays = [
        *states[: len(keys)],
        *(argument.restored(state) for argument, state in zip(arguments, states[len(keys) :], strict=True)),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])


def _grouped(keys: list[pa.ChunkedArray], arguments: list[_Argument]) -> list[pa.Array]:
    key_names = [f"k{number}" for number in range(len(keys))]
    columns = dict(zip(key_names, keys, strict=True))
    aggregations: list[tuple[object, str]] = []
    results: list[str] = []
    for number, argument in enumerate(arguments):
        if argument.values is None:
            aggregations.append(([], "count_all"))
            results.append("count_all")
        else:
            columns[f"a{number}"] = argument.values
            aggregations.append((f"a{number}", argument.kernel))
            results.append(f"a{number}_{argument.kernel}")
    # COUNT(*) asked for twice is one column of Arrow's answer.
    grouped = pa.table(columns).group_by(key_names).aggregate(list(dict.fromkeys(map(_hashable, aggregations))))
    return [_flat(grouped.column(name)) for name in (*key_names, *results)]


def _hashable(aggregation: tuple[object, str]) -> tuple[object, str]:
    target, kernel = aggregation
    return (tuple(target), kernel) if isinstance(target, list) else aggregation


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument made ready for Arrow's kernel, and how to turn the kernel's answer back."""

    spec: StateSpec
    values: pa.ChunkedArray | None
    ordered: bool = False

    @classmethod
    def of(cls, table: pa.Table, spec: StateSpec) -> _Argument:
        if spec.place is None:
            return cls(spec, None)
        values = _decoded(table.column(spec.place))
        if spec.distinct:
            return cls(spec, _canonical(values))
        if spec.function == "sum":
            return cls(spec, _summable(values, spec.type))
        if spec.function in {"min", "max"} and pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            return cls(spec, pa.chunked_array([ordered_integers(chunk) for chunk in values.chunks]), ordered=True)
        return cls(spec, values)

    @property
    def kernel(self) -> str:
        return "count_distinct" if self.spec.distinct else self.spec.function

    def total(self, rows: int) -> pa.Array:
        """The state over all rows."""
        if self.values is None:
            return pa.array([rows], pa.int64())
        match self.kernel:
            case "count":
                result = pc.count(self.values)
            case "count_distinct":
                result = pc.count_distinct(self.values)
            case "sum":
                result = pc.sum(self.values)
            case kernel:
                result = pc.min_max(self.values)[kernel]
        return pa.array([result.as_py()], result.type)

    def restored(self, state: pa.Array) -> pa.Array:
        arrow = self.spec.type.arrow
        if self.ordered:
            return floats_from_ordered(state, arrow)
        try:
            return state if state.type == arrow else state.cast(arrow)
        except pa.ArrowInvalid as error:
            raise data_error(f"the {self.spec.function} overflows {self.spec.type}") from error


def average(total: pa.Array, count: pa.Array, result: SqlType) -> pa.Array:
    """From the states of AVG; NULL for no values. A DECIMAL is rounded half away from zero, like any quotient."""
    values = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
    if result.kind is not Kind.DECIMAL:
        return pc.divide(total.cast(pa.float64(), safe=False), values.cast(pa.float64()))
    whole = SqlType(Kind.DECIMAL, *exact_digits(BIGINT))
    divide = divide_batch(Signature((from_arrow(total.type), whole), result))
    return divide(total, values.cast(whole.arrow))


def _summable(values: pa.ChunkedArray, result: SqlType) -> pa.ChunkedArray:
    """Values whose sum cannot wrap: they are made wider only where their sum might not fit."""
    if result.kind is not Kind.DECIMAL:
        return values if values.type == result.arrow else values.cast(result.arrow)
    if pa.types.is_integer(values.type):
        ends = pc.min_max(values).as_py()
        largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
        return values if largest * len(values) < _INT64_LIMIT else values.cast(result.arrow)
    magnitude = pc.sum(pc.abs(values.cast(pa.float64()))).as_py() or 0.0
    wide = magnitude >= _DECIMAL_LIMIT / 10**result.scale
    wanted = pa.decimal256(_WIDE_PRECISION, result.scale) if wide else result.arrow
    return values if values.type == wanted else values.cast(wanted)


def _canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """-0.0 and 0.0 are one value, and so are all NaNs."""
    if not pa.types.is_floating(column.type):
        return column
    zeroed = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(zeroed), pa.scalar(float("nan"), column.type), zeroed)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _flat(column: pa.ChunkedArray) -> pa.Array:
    column = _decoded(column)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
