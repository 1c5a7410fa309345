"""Candidate pairs of a join: for each left row a run of positions in a list of right rows.

Whatever finds candidates, a hash table, an order or nothing at all, gives the same three arrays: `rows`, positions of
right rows, and for each left row where its run starts in them and how long it is. From these come either all pairs,
piece by piece, or only as many pairs as it takes to know which left rows have a match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.exec.batch import layout_of
from remuda.exec.join.join_table import JoinTable, Pairs, cuts, in_rounds, spread
from remuda.expr import as_array, compile_batch
from remuda.types.arrow_arrays import null_mask
from remuda.types.arrow_compute import pc
from remuda.types.normalized_key import normalized_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from remuda.exec.join.join_table import BuildRows
    from remuda.expr import BatchExpression, Column, Expression, Parameters
    from remuda.plan.joins import CandidateBranch, SideComparison
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class Runs:
    """The candidates of left row i are `rows[starts[i] : starts[i] + counts[i]]`."""

    rows: np.ndarray
    starts: np.ndarray
    counts: np.ndarray

    def pairs(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Pair some left rows with all of their runs."""
        counts = self.counts[first:stop]
        return np.repeat(np.arange(first, stop), counts), self.rows[spread(self.starts[first:stop], counts)]


class Candidates:
    """The candidates of one batch of left rows, found by one or several branches."""

    def __init__(self, branches: Sequence[Runs], verify: Callable[[], None]) -> None:
        self._branches = branches
        self._verify = verify

    def __iter__(self) -> Iterator[Pairs]:
        """Deliver all pairs, in the order of the left rows; a pair that two branches find comes once."""
        counts = np.sum([runs.counts for runs in self._branches], axis=0)
        for first, stop in cuts(counts):
            self._verify()
            parts = [runs.pairs(first, stop) for runs in self._branches]
            if len(parts) == 1:
                yield Pairs(first, stop, *parts[0])
            else:
                yield Pairs(first, stop, *_united(parts))

    def until_settled(self, settled: np.ndarray) -> Iterator[Pairs]:
        """Deliver pairs round by round, for as long as a row is not `settled`, which the caller changes meanwhile."""
        for runs in self._branches:
            for pairs in in_rounds(runs.starts, runs.counts, runs.rows, settled):
                self._verify()
                yield pairs


def _united(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    lefts, rights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    span = int(rights.max()) + 1 if len(rights) else 1
    # Stable, as each part is nearly sorted. Not `np.unique`: its hash table is slow for regular values such as these.
    codes = np.sort(lefts.astype(np.int64) * span + rights, kind="stable")
    codes = codes[np.diff(codes, prepend=-1) > 0]
    return codes // span, codes % span


class CandidateExpressions:
    """What is compiled once for the branches of a join."""

    def __init__(
        self, branches: Sequence[CandidateBranch], left: tuple[Column, ...], right: tuple[Column, ...]
    ) -> None:
        self.branches = [_BranchExpressions(branch, left, right) for branch in branches]


class _BranchExpressions:
    def __init__(self, branch: CandidateBranch, left: tuple[Column, ...], right: tuple[Column, ...]) -> None:
        left_layout, right_layout = layout_of(left), layout_of(right)
        self.equalities = [_ComparisonExpressions(each, left_layout, right_layout) for each in branch.equalities]
        self.ranges = [_ComparisonExpressions(each, left_layout, right_layout) for each in branch.ranges]
        self.left_filter = _compiled(branch.left_filter, left_layout)
        self.right_filter = _compiled(branch.right_filter, right_layout)


class _ComparisonExpressions:
    def __init__(self, comparison: SideComparison, left: dict[int, int], right: dict[int, int]) -> None:
        self.operator = comparison.operator
        self.type = comparison.left.type
        self.left = compile_batch(comparison.left, left)
        self.right = compile_batch(comparison.right, right)
        self.right_expression = comparison.right


def _compiled(expression: Expression | None, layout: dict[int, int]) -> BatchExpression | None:
    return None if expression is None else compile_batch(expression, layout)


class CandidateFinder:
    """Finds candidates among the build rows. Nothing changes once it is made: several threads may ask it."""

    def __init__(
        self, code: CandidateExpressions, build: BuildRows, parameters: Parameters, verify: Callable[[], None]
    ) -> None:
        self._parameters = parameters
        self._verify = verify
        self._rows = build.rows
        self._finders = [_BranchFinder(branch, build.batch, parameters) for branch in code.branches]
        self._every = np.arange(build.rows)

    def find(self, left: pa.RecordBatch) -> Candidates:
        if not self._finders:
            return self._all_of(left)
        branches = [finder.find(left, self._parameters) for finder in self._finders]
        return Candidates(branches, self._verify)

    def _all_of(self, left: pa.RecordBatch) -> Candidates:
        """Return every right row for every left row."""
        starts = np.zeros(left.num_rows, np.int64)
        return Candidates([Runs(self._every, starts, starts + self._rows)], self._verify)


class _BranchFinder:
    def __init__(self, code: _BranchExpressions, build: pa.RecordBatch, parameters: Parameters) -> None:
        self._code = code
        rows = np.arange(build.num_rows)
        if code.right_filter is not None:
            rows = rows[_passes(code.right_filter, build, parameters)]
            build = build.take(pa.array(rows))
        self._table: JoinTable | None = None
        self._orders: list[_Order] = []
        if code.equalities:
            columns = [_values(each.right, build, parameters) for each in code.equalities]
            null_safe = [each.operator != "=" for each in code.equalities]
            self._table = JoinTable(columns, [each.type for each in code.equalities], null_safe)
        else:
            by_expression: dict[Expression, list[_ComparisonExpressions]] = {}
            for each in code.ranges:
                by_expression.setdefault(each.right_expression, []).append(each)
            self._orders = [
                _Order(_values(group[0].right, build, parameters), group[0].type, group)
                for group in by_expression.values()
            ]
        self._rows = rows

    def find(self, left: pa.RecordBatch, parameters: Parameters) -> Runs:
        runs = self._runs(left, parameters)
        code = self._code
        if code.left_filter is not None:
            passes = _passes(code.left_filter, left, parameters)
            return Runs(runs.rows, runs.starts, np.where(passes, runs.counts, 0))
        return runs

    def _runs(self, left: pa.RecordBatch, parameters: Parameters) -> Runs:
        if not len(self._rows):
            nothing = np.zeros(left.num_rows, np.int64)
            return Runs(self._rows, nothing, nothing)
        if self._table is not None:
            columns = [_values(each.left, left, parameters) for each in self._code.equalities]
            rows, starts, counts = self._table.runs(columns)
            return Runs(self._rows[rows], starts, counts)
        if not self._orders:
            starts = np.zeros(left.num_rows, np.int64)
            return Runs(self._rows, starts, starts + len(self._rows))
        found = [order.find(left, parameters) for order in self._orders]
        rows, starts, counts = min(found, key=lambda each: int(each[2].sum()))
        return Runs(self._rows[rows], starts, counts)


class _Order:
    """The right rows in the order of one expression, compared with expressions of the left side; NULLs left out."""

    def __init__(self, values: pa.Array, type_: SqlType, comparisons: Sequence[_ComparisonExpressions]) -> None:
        self._comparisons = comparisons
        self._type = type_
        integers = _integers(values, type_)
        nulls = null_mask(values)
        present = np.arange(len(integers)) if nulls is None else np.flatnonzero(~nulls)
        order = np.argsort(integers[present], kind="stable")
        self._rows = present[order]
        self._values = integers[self._rows]

    def find(self, left: pa.RecordBatch, parameters: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low = np.zeros(left.num_rows, np.int64)
        high = np.full(left.num_rows, len(self._values), np.int64)
        for each in self._comparisons:
            values = _values(each.left, left, parameters)
            integers = _integers(values, self._type)
            match each.operator:
                case "<":
                    low = np.maximum(low, np.searchsorted(self._values, integers, side="right"))
                case "<=":
                    low = np.maximum(low, np.searchsorted(self._values, integers, side="left"))
                case ">":
                    high = np.minimum(high, np.searchsorted(self._values, integers, side="left"))
                case _:
                    high = np.minimum(high, np.searchsorted(self._values, integers, side="right"))
            nulls = null_mask(values)
            if nulls is not None:
                high[nulls] = 0
        return self._rows, low, np.maximum(high - low, 0)


def _integers(values: pa.Array, type_: SqlType) -> np.ndarray:
    """Return integers in the order of the values; arbitrary at a NULL."""
    return np.zeros(len(values), np.int64) if values.null_count == len(values) else normalized_keys(values, type_)


def _values(expression: BatchExpression, batch: pa.RecordBatch, parameters: Parameters) -> pa.Array:
    return as_array(expression(batch, parameters), batch.num_rows)


def _passes(expression: BatchExpression, batch: pa.RecordBatch, parameters: Parameters) -> np.ndarray:
    passes: np.ndarray = pc.fill_null(_values(expression, batch, parameters), False).to_numpy(zero_copy_only=False)
    return passes
