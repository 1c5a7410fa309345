"""Row joins, for few rows on both sides: starting Arrow's kernels would cost more than the whole join.

A node's `row_cutover` says up to how many rows, for kinds that need not know in the end which right rows met none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import too_many_rows
from remuda.exec.batch import Tuple, layout_of
from remuda.exec.join.join_result import SEVERAL_ROWS
from remuda.expr import compile_row
from remuda.plan.joins import JoinKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from remuda.expr import Expression, RowExpression
    from remuda.plan.physical import HashJoin, NestedLoopJoin


class RowTable:
    """Right rows by key. Keys are equal as SQL says: NaN to itself, NULL to NULL only where the key is null-safe."""

    def __init__(self, rows: Sequence[Tuple], ordinals: Sequence[int], null_safe: Sequence[bool]) -> None:
        self._null_safe = tuple(null_safe)
        self._may_be_null = all(null_safe)
        self.rows = rows
        self._by_key: dict[Any, list[Tuple]] = {}
        for row in rows:
            key = self._key(row, ordinals)
            if key is not None:
                self._by_key.setdefault(key, []).append(row)

    def _key(self, row: Tuple, ordinals: Sequence[int]) -> Any:
        """Return the key of a row; None where it equals no key."""
        key = tuple([row[ordinal] for ordinal in ordinals])
        if None in key and not self._may_be_null:
            for value, safe in zip(key, self._null_safe, strict=True):
                if value is None and not safe:
                    return None
        if any(value != value for value in key):
            return tuple(["NaN" if value != value else value for value in key])
        return key

    def lookup(self, ordinals: Sequence[int]) -> Callable[[Tuple], Sequence[Tuple]]:
        """Return a function from a left row, with its key at these ordinals, to its matches."""
        by_key = self._by_key

        def find(row: Tuple) -> Sequence[Tuple]:
            key = self._key(row, ordinals)
            return () if key is None else by_key.get(key, ())

        return find


class RowJoin:
    """What is compiled once for a join of rows."""

    def __init__(self, node: HashJoin | NestedLoopJoin) -> None:
        layout = layout_of((*node.left.columns, *node.right.columns))
        self._kind = node.kind
        self._span = node.span
        self._missing = (None,) * len(node.right.columns)
        self._condition = _compiled(node.condition, layout)
        self._compared = _compiled(node.compared, layout)

    def joined(
        self, lefts: Sequence[Tuple], find: Callable[[Tuple], Sequence[Tuple]], parameters: Tuple
    ) -> list[Tuple]:
        return [row for left in lefts for row in self._of(left, self._met(left, find(left), parameters), parameters)]

    def _met(self, left: Tuple, rights: Sequence[Tuple], parameters: Tuple) -> Sequence[Tuple]:
        condition = self._condition
        if condition is None:
            return rights
        return [right for right in rights if condition(left + right, parameters)]

    def _of(self, left: Tuple, rights: Sequence[Tuple], parameters: Tuple) -> Iterator[Tuple]:
        match self._kind:
            case JoinKind.SEMI:
                if rights:
                    yield left
            case JoinKind.ANTI:
                if not rights:
                    yield left
            case JoinKind.MARK:
                yield (*left, self._mark(left, rights, parameters))
            case kind:
                if kind is JoinKind.SINGLE and len(rights) > 1:
                    raise too_many_rows(SEVERAL_ROWS, span=self._span)
                for right in rights:
                    yield left + right
                if not rights and kind.keeps_left:
                    yield left + self._missing

    def _mark(self, left: Tuple, rights: Sequence[Tuple], parameters: Tuple) -> bool | None:
        compared = self._compared
        if compared is None:
            return bool(rights)
        unknown = False
        for right in rights:
            result = compared(left + right, parameters)
            if result:
                return True
            unknown = unknown or result is None
        return None if unknown else False


def _compiled(expression: Expression | None, layout: dict[int, int]) -> RowExpression | None:
    return None if expression is None else compile_row(expression, layout)
