"""How each aggregate call is computed: by which accumulators, or from all rows of its groups at once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import ErrorCode, SqlError
from remuda.exec.aggregate.accumulators import Accumulator, Chosen, Count, Reduction, WordExtreme, is_one_word
from remuda.exec.aggregate.exact_sum import ExactSum
from remuda.exec.aggregate.whole_groups import WholeGroups
from remuda.exec.keys.key_interner import KeyInterner
from remuda.expr.cancellation import check_cancelled
from remuda.expr.cast.cast_floating import nearest_doubles
from remuda.expr.function import Signature
from remuda.expr.functions.decimals import divide_batch
from remuda.plan.aggregates import AGGREGATES, partial_type
from remuda.types import BIGINT, Kind, SqlType, exact_digits, from_arrow
from remuda.types.arrow_arrays import null_mask
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from remuda.errors import Span
    from remuda.exec.selection import SelectedBatch
    from remuda.plan.aggregates import AggregateCall

# The span of what is an error only when it is computed.


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Give an error of the data that has no span of its own this one.

    States and kernels do not know for which call of a statement they work; who computes the call does.
    """
    try:
        yield
    except SqlError as error:
        if error.span is not None or error.code is not ErrorCode.DATA_EXCEPTION:
            raise
        raise error.restated(span=span) from error


BYTES_OF_SEEN = 64
"""What a value takes, about, that DISTINCT must not count again."""

_BITS = {"bit_and": (np.bitwise_and, -1), "bit_or": (np.bitwise_or, 0), "bit_xor": (np.bitwise_xor, 0)}


def accumulator(function: str, argument: SqlType, result: SqlType, rows: Count | None) -> Accumulator:
    """Make the states of one function; `rows` counts the rows of each group, where all of them are added."""
    match function:
        case "count":
            return Count()
        case "sum" if result.is_floating:
            return Reduction(np.add, argument, result, 0.0, "<f8", rows)
        case "sum":
            return ExactSum(argument, result, rows)
        case "product":
            return Reduction(np.multiply, argument, result, 1.0, "<f8", rows)
        case "min" | "max" if is_one_word(argument):
            return WordExtreme(argument, rows, lowest=function == "min")
        case "bit_and" | "bit_or" | "bit_xor":
            ufunc, identity = _BITS[function]
            return Reduction(ufunc, argument, result, identity, "<i8", rows)
        case _:
            return Chosen(argument, function)


class SplitCall:
    """A call whose partial results can be merged: one accumulator for each of them.

    `holds_rows` says that its memory grows with the rows of a group: with DISTINCT, by the values seen.
    """

    def __init__(self, call: AggregateCall, layout: Mapping[int, int], rows: Count) -> None:
        self._call = call
        self._rows = rows
        self._ordinal = None if call.argument is None else layout[call.argument.id]
        distinct = call.distinct and not AGGREGATES[call.function].ignores_repetition
        self._seen = None
        if distinct and call.argument is not None:
            self._seen = KeyInterner((BIGINT, call.argument.type))
        self.holds_rows = self._seen is not None
        self.accumulators = [
            _of_rows(function, call, None if distinct else rows) for function in AGGREGATES[call.function].partials
        ]

    def add(self, groups: np.ndarray | None, batch: pa.RecordBatch, count: int) -> None:
        if self._ordinal is None:
            return  # the rows themselves are counted
        check_cancelled()
        values = batch.column(self._ordinal)
        if self._seen is not None:
            groups, values = _new_ones(self._seen, groups, values)
        for each in self.accumulators:
            each.add(groups, values, count)

    def add_selected(self, batch: SelectedBatch) -> None:
        """Add to the only group there is, materializing no rows where that can be avoided."""
        if self._ordinal is None:
            return
        values = batch.whole.column(self._ordinal)
        if self._seen is not None:
            self.add(None, batch.arrow(), 1)
            return
        nulls = null_mask(values)
        for each in self.accumulators:
            if not each.add_where(values, batch.mask, nulls):
                each.add(None, batch.arrow().column(self._ordinal), 1)

    @property
    def bytes(self) -> int:
        """Return what it holds beside words: texts, and with DISTINCT the values seen of each group."""
        return _bytes_of_seen(self._seen) + sum(each.bytes for each in self.accumulators)

    def states(self, count: int) -> list[pa.Array]:
        if self._ordinal is None:
            return [self._rows.state(count)]
        with located(self._call.span):
            return [each.state(count) for each in self.accumulators]

    def result(self, count: int) -> pa.Array:
        return result_of(self._call, self.states(count))


def _of_rows(function: str, call: AggregateCall, rows: Count | None) -> Accumulator:
    if call.argument is None:
        return Count()
    return accumulator(function, call.argument.type, partial_type(function, call), rows)


class MergedCall:
    """A call whose partial results come from members."""

    holds_rows = False

    def __init__(self, call: AggregateCall, states: tuple[tuple[int, SqlType], ...], rows: Count) -> None:
        """`states` are the ordinals and types of the columns of partial results."""
        self._call = call
        self._ordinals = [ordinal for ordinal, _ in states]
        self._accumulators = [
            accumulator(function, sql_type, sql_type, rows)
            for function, (_, sql_type) in zip(AGGREGATES[call.function].merges, states, strict=True)
        ]

    def add(self, groups: np.ndarray | None, batch: pa.RecordBatch, count: int) -> None:
        for each, ordinal in zip(self._accumulators, self._ordinals, strict=True):
            each.add(groups, batch.column(ordinal), count)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self._accumulators)

    def states(self, count: int) -> list[pa.Array]:
        with located(self._call.span):
            return [each.state(count) for each in self._accumulators]

    def result(self, count: int) -> pa.Array:
        return result_of(self._call, self.states(count))


class WholeCall:
    """A call that needs all rows of a group at once."""

    holds_rows = True

    def __init__(self, call: AggregateCall, layout: Mapping[int, int]) -> None:
        self._call = call
        self._ordinals = [layout[column.id] for column in call.arguments] + [layout[key.column] for key in call.order]
        self._rows = WholeGroups(call)
        distinct = call.distinct and not AGGREGATES[call.function].ignores_repetition
        types = [column.type for column in call.arguments]
        self._seen = KeyInterner((BIGINT, *types)) if distinct else None

    def add(self, groups: np.ndarray | None, batch: pa.RecordBatch, count: int) -> None:  # noqa: ARG002
        columns = [batch.column(ordinal) for ordinal in self._ordinals]
        if self._seen is not None:
            rows, groups = _first_rows(self._seen, groups, columns[: len(self._call.arguments)])
            columns = [column.take(pa.array(rows)) for column in columns]
        self._rows.add(groups, columns)

    @property
    def bytes(self) -> int:
        """Return what it holds: its rows, and with DISTINCT the values seen."""
        return self._rows.bytes + _bytes_of_seen(self._seen)

    def states(self, count: int) -> list[pa.Array]:
        raise AssertionError(f"{self._call.function} of {count} groups has no partial results")

    def result(self, count: int) -> pa.Array:
        result = self._rows.result(count)
        result = result.dictionary_decode() if isinstance(result, pa.DictionaryArray) else result
        wanted = self._call.column.type.arrow
        return result if result.type == wanted else result.cast(wanted)


def _bytes_of_seen(seen: KeyInterner | None) -> int:
    return 0 if seen is None else BYTES_OF_SEEN * seen.count + seen.bytes


def _new_ones(seen: KeyInterner, groups: np.ndarray | None, values: pa.Array) -> tuple[np.ndarray | None, pa.Array]:
    rows, chosen = _first_rows(seen, groups, [values])
    return chosen, values.take(pa.array(rows))


def _first_rows(
    seen: KeyInterner, groups: np.ndarray | None, columns: list[pa.Array]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the first rows of pairs of group and value that have not come before, and the groups of those rows."""
    before = seen.count
    owners = np.zeros(len(columns[0]), np.int64) if groups is None else groups.astype(np.int64)
    ids = seen.intern([pa.array(owners), *columns])
    new = np.flatnonzero(ids >= before)[::-1]
    row_of = np.empty(seen.count - before, np.int64)
    row_of[ids[new] - before] = new
    return row_of, None if groups is None else groups[row_of]


def result_of(call: AggregateCall, states: list[pa.Array]) -> pa.Array:
    """Return what the user gets from the merged partial results."""
    match call.function:
        case "avg":
            with located(call.span):
                return average(states[0], states[1], call.column.type)
        case "count":
            return pc.fill_null(states[0], 0) if states[0].null_count else states[0]
        case _:
            return states[0]


def average(total: pa.Array, count: pa.Array, result: SqlType) -> pa.Array:
    """Divide the states of AVG; NULL for no values. A DECIMAL is rounded half away from zero, like any quotient."""
    values = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
    if result.kind is not Kind.DECIMAL:
        doubles = nearest_doubles(total) if pa.types.is_decimal(total.type) else total.cast(pa.float64(), safe=False)
        return pc.divide(doubles, values.cast(pa.float64()))
    whole = SqlType(Kind.DECIMAL, *exact_digits(BIGINT))
    divide = divide_batch(Signature((from_arrow(total.type), whole), result))
    return divide(total, values.cast(whole.arrow))
