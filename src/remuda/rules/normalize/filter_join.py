"""Normalise rules for a Filter over a Join."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import replace
from remuda.expr import TRUE, Call, Column, Expression, Literal, columns_of, conjunction, conjuncts
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.rules.construct import filtered
from remuda.rules.nulls import is_never_null, rejects_nulls
from remuda.rules.tree_properties import not_null_columns

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode

_FILTERS_RIGHT = frozenset({JoinKind.INNER, JoinKind.RIGHT})


def push_filter_below_join(node: LogicalNode) -> LogicalNode | None:
    """Filter(Join(l, r), p(l) AND q(r) AND s) → Filter(Join(Filter(l, p), Filter(r, q)), s).

    Legal for a side of which every row that comes out stands for itself: both of an INNER join, the left of LEFT, SEMI,
    ANTI, MARK and SINGLE, the right of RIGHT. Not `r.a IS NULL` over a LEFT join: rows without a match pass it, and
    below the join there are none such.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Join)):
        return None
    join = node.input
    left_ids = {column.id for column in join.left.columns}
    right_ids = {column.id for column in join.right.columns} if join.kind.delivers_right else set()
    to_left: list[Expression] = []
    to_right: list[Expression] = []
    above: list[Expression] = []
    for part in conjuncts(node.condition):
        named = columns_of(part).keys()
        if not join.kind.keeps_right and named <= left_ids:
            to_left.append(part)
        elif join.kind in _FILTERS_RIGHT and named <= right_ids:
            to_right.append(part)
        else:
            above.append(part)
    if not to_left and not to_right:
        return None
    left, right = filtered(join.left, to_left), filtered(join.right, to_right)  # type: ignore[arg-type]
    return filtered(replace(join, left=left, right=right), above)


def push_filter_into_join(node: LogicalNode) -> LogicalNode | None:
    """Filter(Join INNER(l, r, c), p(l, r)) → Join INNER(l, r, c AND p), so that the join can look up by p.

    Not for outer joins: there a pair that fails the condition leaves a row with NULLs, one that fails the filter none.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Join)):
        return None
    join = node.input
    if join.kind is not JoinKind.INNER:
        return None
    return replace(join, condition=conjunction([*conjuncts(join.condition), node.condition]))


def turn_outer_join_inner(node: LogicalNode) -> LogicalNode | None:
    """Filter(Join LEFT(l, r), p) → Filter(Join INNER(l, r), p) where p cannot be true for NULLs in r; FULL likewise.

    `r.a = 5` and `r.a IS NOT NULL` are such, `r.a IS NULL` and `COALESCE(r.a, 5) = 5` are not.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Join)):
        return None
    kind = inner_kind(node.input, node.condition)
    return None if kind is None else replace(node, input=replace(node.input, kind=kind))


def inner_kind(join: logical.Join, condition: Expression) -> JoinKind | None:
    """Return the kind of join that drops only rows which the condition refuses; None for the same kind."""
    if join.kind not in {JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL}:
        return None
    parts = conjuncts(condition)
    kind: JoinKind = join.kind
    if kind.keeps_left and _rejects(parts, join.right.columns):
        kind = JoinKind.RIGHT if kind is JoinKind.FULL else JoinKind.INNER
    if kind.keeps_right and _rejects(parts, join.left.columns):
        kind = JoinKind.LEFT if kind is JoinKind.FULL else JoinKind.INNER
    return None if kind is join.kind else kind


def _rejects(parts: tuple[Expression, ...], columns: tuple[Column, ...]) -> bool:
    missing = {column.id for column in columns}
    return any(rejects_nulls(part, missing) for part in parts if not missing.isdisjoint(columns_of(part)))


def turn_left_join_anti(node: LogicalNode) -> LogicalNode | None:
    """Filter(Join LEFT(l, r, c), r.k IS NULL) → Join ANTI(l, r, c) and NULLs for r, where k of r is never NULL.

    Only rows without a match have NULL there. Not where k can be NULL in r itself.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Join)):
        return None
    join = node.input
    if join.kind is not JoinKind.LEFT:
        return None
    tested = [
        part.arguments[0].id
        for part in conjuncts(node.condition)
        if isinstance(part, Call) and part.function == "is null" and isinstance(part.arguments[0], Column)
    ]
    if not tested or not not_null_columns(join.right).intersection(tested):
        return None
    anti = logical.Join(JoinKind.ANTI, join.left, join.right, join.condition)
    missing = (Assignment(column, Literal(None, column.type)) for column in join.columns[len(join.left.columns) :])
    kept = (Assignment(column, column) for column in join.left.columns)
    return logical.Filter(logical.Project(anti, (*kept, *missing)), node.condition)


def turn_mark_join_semi(node: LogicalNode) -> LogicalNode | None:
    """Filter(Join MARK(l, r, c, compared), mark) → Join SEMI(l, r, c AND compared), above which the mark is true.

    Legal whether or not the mark can be NULL: the filter keeps neither NULL nor false. Not under an OR.
    """
    return _without_mark(node, JoinKind.SEMI, Literal(True, TRUE.type))


def turn_mark_join_anti(node: LogicalNode) -> LogicalNode | None:
    """Filter(Join MARK(l, r, c, compared), NOT mark) → Join ANTI(l, r, c AND compared), above which it is false.

    Legal for EXISTS, and for IN where neither side can be NULL. `x NOT IN (1, NULL)` is never true: with a NULL the
    mark is needed.
    """
    return _without_mark(node, JoinKind.ANTI, Literal(False, TRUE.type))


def _without_mark(node: LogicalNode, kind: JoinKind, value: Literal) -> LogicalNode | None:
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Join)):
        return None
    join = node.input
    if join.mark is None:
        return None
    parts = conjuncts(node.condition)
    pushed = [part for part in parts if _is_mark_test(part, join, kind)]
    if not pushed:
        return None
    rest = [part for part in parts if part not in pushed]
    condition = conjunction([*conjuncts(join.condition), *conjuncts(join.compared)])
    without = logical.Join(kind, join.left, join.right, condition)
    kept = (Assignment(column, column) for column in join.left.columns)
    return filtered(logical.Project(without, (*kept, Assignment(join.mark, value))), rest)


def _is_mark_test(part: Expression, join: logical.Join, kind: JoinKind) -> bool:
    """Test whether a conjunct keeps exactly the rows that a SEMI or an ANTI join keeps."""
    if kind is JoinKind.SEMI:
        return part == join.mark or part == Call("is true", (join.mark,), TRUE.type)  # type: ignore[arg-type]
    if part != Call("not", (join.mark,), TRUE.type):  # type: ignore[arg-type]
        return False
    if join.compared is None:
        return True
    return is_never_null(join.compared, not_null_columns(join.left) | not_null_columns(join.right))
