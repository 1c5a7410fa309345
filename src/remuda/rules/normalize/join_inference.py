"""Normalise rules for what follows from a join's condition for one of its sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Call, Column, Expression, columns_of, conjunction, conjuncts, is_constant, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.walk import inputs, with_inputs
from remuda.rules.join_keys import split_condition
from remuda.rules.normalize.simplify import implied_by_sides

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from remuda.plan.logical import LogicalNode

# Bringing a consequence of a join's condition to the scan that it is about.
#
# The rules for it would never end if they put a filter anywhere: it sinks, changes its form, and would be found
# missing again. So it goes straight to the scans, and only where it is not there yet.


_COMPARISONS = frozenset({"=", "<", "<=", ">", ">=", "in"})


def restrict(node: Any, predicate: Expression) -> Any | None:
    """Push the predicate into the scans of the tree; None where that changes nothing.

    Legal where rows that fail the predicate matter to no operator above.
    """
    match node:
        case logical.Scan():
            known = conjuncts(node.filter)
            return None if predicate in known else replace(node, filter=conjunction([*known, predicate]))
        case logical.Filter() | logical.Sort():
            return _restrict_inputs(node, [predicate])
        case logical.Project():
            names = {item.column.id: item.expression for item in node.assignments}
            if not all(isinstance(names[id_], Column) for id_ in columns_of(predicate)):
                return None
            return _restrict_inputs(node, [substitute(predicate, names)])
        case logical.Aggregate():
            return _restrict_inputs(node, [predicate]) if _is_over(predicate, node.keys) else None
        case logical.Window():
            return _restrict_inputs(node, [predicate]) if _is_over(predicate, node.partition) else None
        case logical.Series():
            return _restrict_inputs(node, [predicate]) if _is_over(predicate, node.input.columns) else None
        case logical.Union():
            renamed: list[Mapping[int, Expression]] = [
                {column.id: old for column, old in zip(node.columns, source, strict=True)} for source in node.sources
            ]
            return _restrict_inputs(node, [substitute(predicate, names) for names in renamed])
        case logical.Join():
            return _restrict_join(node, predicate)
        case _:
            return None


def _restrict_join(node: logical.Join, predicate: Expression) -> Any | None:
    if not node.kind.keeps_right and _is_over(predicate, node.left.columns):
        left = restrict(node.left, predicate)
        return None if left is None else replace(node, left=left)
    if node.kind in {JoinKind.INNER, JoinKind.RIGHT} and _is_over(predicate, node.right.columns):
        right = restrict(node.right, predicate)
        return None if right is None else replace(node, right=right)
    return None


def _restrict_inputs(node: Any, predicates: list[Expression]) -> Any | None:
    old = inputs(node)
    new = [restrict(part, predicate) for part, predicate in zip(old, predicates, strict=True)]
    if all(part is None for part in new):
        return None
    return with_inputs(node, tuple(before if after is None else after for before, after in zip(old, new, strict=True)))


def known_predicates(node: Any, columns: frozenset[int]) -> list[Expression]:
    """Comparisons of one of these columns with constants that every row of the relation meets."""
    match node:
        case logical.Scan():
            return [part for part in conjuncts(node.filter) if _compares(part, columns)]
        case logical.Filter():
            own = [part for part in conjuncts(node.condition) if _compares(part, columns)]
            return own + known_predicates(node.input, columns)
        case logical.Sort() | logical.Limit() | logical.Window() | logical.Series():
            return known_predicates(node.input, columns)
        case logical.Aggregate():
            return known_predicates(node.input, columns & {column.id for column in node.keys})
        case logical.Project():
            new_names = {
                item.expression.id: item.column
                for item in reversed(node.assignments)
                if isinstance(item.expression, Column) and item.column.id in columns
            }
            below = known_predicates(node.input, frozenset(new_names))
            return [substitute(predicate, new_names) for predicate in below]
        case logical.Join():
            return _known_of_join(node, columns)
        case _:
            return []


def _known_of_join(node: logical.Join, columns: frozenset[int]) -> list[Expression]:
    known: list[Expression] = []
    if not node.kind.keeps_right:
        known += known_predicates(node.left, columns & {column.id for column in node.left.columns})
    if node.kind in {JoinKind.INNER, JoinKind.RIGHT}:
        known += known_predicates(node.right, columns & {column.id for column in node.right.columns})
    return known


def _compares(part: Expression, columns: frozenset[int]) -> bool:
    """Test for `column = constant` and the like, as an index or pruning can use it."""
    if not columns or not isinstance(part, Call):
        return False
    if part.function == "or":
        named = columns_of(part)
        return len(named) == 1 and named.keys() <= columns and all(_is_simple(branch) for branch in part.arguments)
    return _is_simple(part) and columns_of(part).keys() <= columns


def _is_simple(part: Expression) -> bool:
    if not (isinstance(part, Call) and part.function in _COMPARISONS):
        return False
    first, *others = part.arguments
    if isinstance(first, Column):
        return all(is_constant(other) for other in others)
    return is_constant(first) and len(others) == 1 and isinstance(others[0], Column)


def _is_over(predicate: Expression, columns: Iterable[Column]) -> bool:
    return columns_of(predicate).keys() <= {column.id for column in columns}


RIGHT_MUST_MATCH = frozenset(JoinKind) - {JoinKind.RIGHT, JoinKind.FULL}
"""Kinds in which a right row that meets no left row's condition is as if it were not there."""
LEFT_MUST_MATCH = frozenset({JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI})


def infer_transitive_equality(node: LogicalNode) -> LogicalNode | None:
    """Join(Scan(l, a = 5), Scan(r), l.a = r.b) → Join(Scan(l, a = 5), Scan(r, b = 5), l.a = r.b), and for < and IN.

    A row of r with another b has no match, so it need not be read: r is pruned and looked up as l is. From left to
    right for every kind that drops right rows without a match, from right to left for INNER, RIGHT and SEMI.
    """
    if not isinstance(node, logical.Join):
        return None
    equalities, _ = split_condition(node.condition, node.left.columns, node.right.columns)
    pairs = [
        (equality.left, equality.right)
        for equality in equalities
        if isinstance(equality.left, Column) and isinstance(equality.right, Column) and not equality.null_safe
    ]
    for predicate in _carried(node.left, pairs) if node.kind in RIGHT_MUST_MATCH else ():
        right = restrict(node.right, predicate)
        if right is not None:
            return replace(node, right=right)
    turned = [(right, left) for left, right in pairs]
    for predicate in _carried(node.right, turned) if node.kind in LEFT_MUST_MATCH else ():
        left = restrict(node.left, predicate)
        if left is not None:
            return replace(node, left=left)
    return None


def _carried(source: object, pairs: list[tuple[Column, Column]]) -> Iterable[Expression]:
    for here, there in pairs:
        for predicate in known_predicates(source, frozenset({here.id})):
            yield substitute(predicate, {here.id: there})


def infer_side_of_or(node: LogicalNode) -> LogicalNode | None:
    """Join(l, r, (l.a = 1 AND r.b = 2) OR (l.a = 3 AND r.b = 4)) → the same over Scan(l, a = 1 OR a = 3), and r.

    The condition stays; what it says of one side alone filters that side first.
    """
    if not isinstance(node, logical.Join) or node.condition is None:
        return None
    if node.kind in RIGHT_MUST_MATCH:
        for implied in implied_by_sides(node.condition, {column.id for column in node.right.columns}):
            right = restrict(node.right, implied)
            if right is not None:
                return replace(node, right=right)
    if node.kind in LEFT_MUST_MATCH:
        for implied in implied_by_sides(node.condition, {column.id for column in node.left.columns}):
            left = restrict(node.left, implied)
            if left is not None:
                return replace(node, left=left)
    return None
