"""The rows that a join delivers for the pairs that it has found: the same for all ways of finding them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from remuda.errors import too_many_rows
from remuda.exec.batch import ArrowBatch, positional
from remuda.exec.join.candidate_pairs import CandidateExpressions
from remuda.expr import columns_of, compile_predicate
from remuda.plan.joins import JoinKind
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.exec.batch import RowBatch
    from remuda.exec.join.join_table import BuildRows, Pairs
    from remuda.expr import Column, Expression, Parameters
    from remuda.plan.physical import HashJoin, MergeJoin, NestedLoopJoin

TESTED = {JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK}
"""Joins that ask of a left row whether it has a match: the first one settles it."""

Keys_contra = TypeVar("Keys_contra", contravariant=True)


class PairFinder(Protocol[Keys_contra]):
    """Pairs left rows, by their keys in one form or another, with the rows of the right side."""

    def pairs(self, keys: Keys_contra, /) -> Iterator[Pairs]:
        """Deliver all pairs, for left rows in their order."""

    def pairs_until(self, keys: Keys_contra, settled: np.ndarray, /) -> Iterator[Pairs]:
        """Deliver pairs round by round, for as long as a row is not `settled`, which the caller changes meanwhile."""


SEVERAL_ROWS = "a sub-query that stands for one value returned more than one row"


class JoinExpressions:
    """What is compiled once for a join: its condition and its comparison over pairs."""

    def __init__(self, node: HashJoin | MergeJoin | NestedLoopJoin) -> None:
        left, right = node.left.columns, node.right.columns
        self.condition = None if node.condition is None else PairPredicate(node.condition, left, right)
        self.compared = None if node.compared is None else PairPredicate(node.compared, left, right)
        used = columns_of(node.condition, node.compared)
        self.right_ordinals = [ordinal for ordinal, column in enumerate(right) if column.id in used]
        """The right columns that the two name."""
        self.candidates = CandidateExpressions(getattr(node, "branches", ()), left, right)


class PairPredicate:
    """An expression over both sides, evaluated on pairs; of the rows only the columns that it uses are copied."""

    def __init__(self, expression: Expression, left: tuple[Column, ...], right: tuple[Column, ...]) -> None:
        used = columns_of(expression)
        self._left = [ordinal for ordinal, column in enumerate(left) if column.id in used]
        self._right = [ordinal for ordinal, column in enumerate(right) if column.id in used]
        ids = [*(left[ordinal].id for ordinal in self._left), *(right[ordinal].id for ordinal in self._right)]
        self._evaluate = compile_predicate(expression, {id_: ordinal for ordinal, id_ in enumerate(ids)})

    def evaluate(
        self, left: pa.RecordBatch, right: pa.RecordBatch, pairs: Pairs, parameters: Parameters
    ) -> pa.BooleanArray:
        lefts, rights = pa.array(pairs.left_positions()), pa.array(pairs.right)
        arrays = [
            *(left.column(ordinal).take(lefts) for ordinal in self._left),
            *(right.column(ordinal).take(rights) for ordinal in self._right),
        ]
        return self._evaluate(positional(arrays, len(lefts)), parameters)


class JoinResult:
    """Turns pairs into batches for one execution of a join; `build` is the right side."""

    def __init__(
        self,
        node: HashJoin | MergeJoin | NestedLoopJoin,
        code: JoinExpressions,
        build: BuildRows,
        parameters: Parameters,
    ) -> None:
        self._kind = node.kind
        self._span = node.span
        self._columns = node.columns
        self._left_columns = node.left.columns
        self._code = code
        self._build = build
        self._parameters = parameters
        self._met = np.zeros(build.rows, np.bool_) if node.kind.keeps_right else None

    def of(self, left: pa.RecordBatch, found: Iterable[Pairs]) -> Iterator[RowBatch]:
        """Deliver the batches for a batch of left rows; pairs come for all of its rows, in order."""
        for pairs in found:
            yield self._paired(left, self.meeting(left, pairs))

    def of_table(
        self,
        left: pa.RecordBatch,
        table: PairFinder[Keys_contra],
        keys: Keys_contra,
        verified: Callable[[Iterator[Pairs]], Iterator[Pairs]] = lambda pairs: pairs,
    ) -> Iterator[RowBatch]:
        """Deliver the batches for a batch of left rows, whose matches are found by these keys."""
        if self._kind in TESTED:
            yield self.tested(left, lambda settled: verified(table.pairs_until(keys, settled)))
        else:
            yield from self.of(left, verified(table.pairs(keys)))

    def tested(self, left: pa.RecordBatch, find: Callable[[np.ndarray], Iterable[Pairs]]) -> RowBatch:
        """SEMI, ANTI and MARK: `find` gives pairs as long as there are rows for which what it gets is false."""
        true, unknown = np.zeros(left.num_rows, np.bool_), np.zeros(left.num_rows, np.bool_)
        compared = self._code.compared
        for all_of_them in find(true):
            pairs = self.meeting(left, all_of_them)
            positions = pairs.left_positions()
            if compared is None:
                true[positions] = True
            elif len(positions):
                result = compared.evaluate(left, self._build.batch, pairs, self._parameters)
                true[positions[_true(result)]] = True
                if result.null_count:
                    unknown[positions[result.is_null().to_numpy(zero_copy_only=False)]] = True
        if self._kind is JoinKind.MARK:
            return self.marked(left, true, None if compared is None else unknown)
        return self.selected(left, true)

    def selected(self, left: pa.RecordBatch, matched: np.ndarray) -> RowBatch:
        """Return the left rows that a SEMI or ANTI join keeps."""
        mask = matched if self._kind is JoinKind.SEMI else ~matched
        return ArrowBatch(self._columns, left if mask.all() else left.filter(pa.array(mask)))

    def marked(self, left: pa.RecordBatch, true: np.ndarray, unknown: np.ndarray | None) -> RowBatch:
        """Return the left rows of a MARK join, each with its mark."""
        mark = pa.array(true, mask=None if unknown is None else unknown & ~true)
        return ArrowBatch(self._columns, positional([*left.columns, mark]))

    def meeting(self, left: pa.RecordBatch, pairs: Pairs) -> Pairs:
        """Return the pairs that meet the condition."""
        if self._code.condition is None or not len(pairs.right):
            return pairs
        met = self._code.condition.evaluate(left, self._build.batch, pairs, self._parameters)
        if met.true_count == len(pairs.right):
            return pairs
        mask = _true(met)
        return pairs._replace(left=pairs.left_positions()[mask], right=pairs.right[mask])

    def _paired(self, left: pa.RecordBatch, pairs: Pairs) -> RowBatch:
        if self._met is not None:
            self._met[pairs.right] = True
        if self._kind is JoinKind.SINGLE and pairs.left is not None and (pairs.left[1:] == pairs.left[:-1]).any():
            raise too_many_rows(SEVERAL_ROWS, span=self._span)
        lefts, right = pairs.left, pa.array(pairs.right)
        if self._kind.keeps_left and lefts is not None:
            lefts, right = _with_unmatched(pairs, lefts)
        arrays = [
            *_taken(left, lefts, pairs),
            *(_take(array, right) for array in self._build.batch.columns),
        ]
        return ArrowBatch(self._columns, positional(arrays, len(right)))

    def unmatched_right_rows(self) -> RowBatch | None:
        """Return, at the end of a RIGHT or FULL join, the right rows that no left row met."""
        if self._met is None or self._met.all():
            return None
        unmatched = self._build.batch.filter(pa.array(~self._met))
        missing = [pa.nulls(unmatched.num_rows, column.type.arrow) for column in self._left_columns]
        return ArrowBatch(self._columns, positional([*missing, *unmatched.columns], unmatched.num_rows))


def _true(array: pa.BooleanArray) -> np.ndarray:
    mask: np.ndarray = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return mask


def _with_unmatched(pairs: Pairs, lefts: np.ndarray) -> tuple[np.ndarray | None, pa.Array]:
    """Add the left rows without a match, NULL for the right row, to the pairs, in the order of the left rows."""
    is_unmatched = np.ones(pairs.stop - pairs.first, np.bool_)
    is_unmatched[lefts - pairs.first] = False
    unmatched = np.flatnonzero(is_unmatched) + pairs.first
    if not len(unmatched):
        return lefts, pa.array(pairs.right)
    both = np.concatenate([lefts, unmatched])
    order = np.argsort(both, kind="stable")
    rights = np.concatenate([pairs.right, np.full(len(unmatched), -1, pairs.right.dtype)])[order]
    right = pa.array(rights, mask=rights < 0)
    return (None if len(both) == len(is_unmatched) else both[order]), right


def _taken(batch: pa.RecordBatch, positions: np.ndarray | None, pairs: Pairs) -> list[pa.Array]:
    if positions is None:
        return list(batch.slice(pairs.first, pairs.stop - pairs.first).columns)
    indices = pa.array(positions)
    return [_take(array, indices) for array in batch.columns]


def _take(array: pa.Array, positions: pa.Array) -> pa.Array:
    return _pyarrow_take(array, positions, boundscheck=False)


_pyarrow_take: Callable[..., pa.Array] = pc.take
