"""Joins: kinds, conditions, and the columns that USING and NATURAL merge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import ambiguous_column, column_twice, nearest, not_supported, parsing_error, unknown_column
from remuda.expr import call, coerce, conjunction, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment, LogicalNode
from remuda.sql.bind.expression.exact_comparison import compare
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import Subquery, attach
from remuda.sql.bind.scope import Scope, ScopeRelation, over_join
from remuda.sql.parse.spans import refuse_unknown_parts, span_of, unsupported
from remuda.types import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.errors import Span
    from remuda.expr import Column, Expression
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.scope import QueryLevel

Relations = tuple[ScopeRelation, ...]

_PARTS = frozenset({"this", "side", "kind", "method", "on", "using"})
_SIDES = {"LEFT": JoinKind.LEFT, "RIGHT": JoinKind.RIGHT, "FULL": JoinKind.FULL}
_KINDS = {"SEMI": JoinKind.SEMI, "ANTI": JoinKind.ANTI}


def join_kind(node: Any) -> JoinKind:
    kind, side = str(node.args.get("kind") or "").upper(), str(node.args.get("side") or "").upper()
    if kind in _KINDS:
        if side:
            raise unsupported(node, f"{side} {kind} JOIN")
        return _KINDS[kind]
    if kind not in {"", "INNER", "OUTER", "CROSS"} or (kind == "CROSS" and side):
        raise unsupported(node, f"{side} {kind} JOIN".lstrip())
    return _SIDES.get(side, JoinKind.INNER)


def is_comma(node: Any) -> bool:
    """Test whether a join is `a, b`, which sqlglot distinguishes from `a JOIN b` only by its first word."""
    return node.meta.get("word", ",") == "," and all(node.args.get(part) is None for part in _PARTS - {"this"})


def bind_join(
    binding: BindContext,
    node: Any,
    level: QueryLevel,
    left: LogicalNode,
    left_relations: Relations,
    right: LogicalNode,
    right_relations: Relations,
    *,
    lateral: bool,
) -> tuple[LogicalNode, Relations]:
    """Bind `left JOIN right`; both trees are bound, the right one perhaps in terms of the left (LATERAL)."""
    refuse_unknown_parts(node, _PARTS)
    kind = join_kind(node)
    method = str(node.args.get("method") or "").upper()
    if method not in {"", "NATURAL"}:
        raise unsupported(node, f"{method} JOIN")
    _refuse_wrong_condition(node, method)
    if lateral and kind not in {JoinKind.INNER, JoinKind.LEFT}:
        raise not_supported(f"LATERAL cannot be the right side of {kind.value} JOIN", span=span_of(node.this))
    pairs = _merged_pairs(node, method, left_relations, right_relations)
    both = (*left_relations, *right_relations)
    condition = _Condition(None, ())
    if pairs:
        condition = _Condition(conjunction([pair.equality for pair in pairs]), ())
    elif node.args.get("on") is not None:
        condition = _bind_condition(binding, node.args["on"], Scope(both, level))
    tree = _joined(kind, left, right, condition, lateral=lateral, node=node)
    if not kind.delivers_right:
        return tree, left_relations
    relations = over_join(both, tree)
    return _merge(binding, kind, tree, relations, pairs) if pairs else (tree, relations)


def _refuse_wrong_condition(node: Any, method: str) -> None:
    has_condition = node.args.get("on") is not None or bool(node.args.get("using"))
    is_cross = str(node.args.get("kind") or "").upper() == "CROSS" or is_comma(node)
    if (is_cross or method == "NATURAL") and has_condition:
        raise parsing_error(f"{method or 'CROSS'} JOIN takes no condition", span=span_of(node))
    if not is_cross and method != "NATURAL" and not has_condition:
        raise parsing_error("JOIN needs ON or USING", span=span_of(node))


@dataclass(frozen=True, slots=True)
class _Condition:
    expression: Expression | None
    subqueries: tuple[Subquery, ...]


def _bind_condition(binding: BindContext, node: Any, scope: Scope) -> _Condition:
    binder = ExpressionBinder(binding, scope, clause="ON", subqueries=[])
    bound = binder.bind_condition(node)
    return _Condition(bound, tuple(binder.subqueries or ()))


def _joined(
    kind: JoinKind, left: LogicalNode, right: LogicalNode, condition: _Condition, *, lateral: bool, node: Any
) -> LogicalNode:
    """Evaluate sub-queries of the condition below the join, on the side whose columns they need."""
    of_left, of_right, of_both = _by_side(condition.subqueries, left, right)
    if not of_both:
        join = logical.Apply if lateral else logical.Join
        return join(kind, attach(left, of_left), attach(right, of_right), condition.expression)
    assert condition.expression is not None
    if kind is JoinKind.INNER:
        pairs = (logical.Apply if lateral else logical.Join)(kind, left, right)
        return logical.Filter(attach(pairs, condition.subqueries), condition.expression)
    if kind is JoinKind.RIGHT:
        kind, left, right, of_left, of_right = JoinKind.LEFT, right, left, of_right, of_left
    if kind not in {JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}:
        raise unsupported(node.args["on"], f"a sub-query over both sides of a {kind.value} JOIN")
    # For each left row, the right rows that meet the condition.
    left = attach(left, of_left)
    marked = {column.id: replace(column, outer=True) for column in left.columns}
    matching = attach(right, [*of_right, *of_both], lambda part: _outside(part, marked))
    return logical.Apply(kind, left, logical.Filter(matching, _outside(condition.expression, marked)))


def _outside(expression: Expression, marked: dict[int, Column]) -> Expression:
    return substitute(expression, marked)


def _by_side(
    subqueries: Sequence[Subquery], left: LogicalNode, right: LogicalNode
) -> tuple[list[Subquery], list[Subquery], list[Subquery]]:
    left_ids, right_ids = ({column.id for column in side.columns} for side in (left, right))
    sides: tuple[list[Subquery], list[Subquery], list[Subquery]] = ([], [], [])
    for subquery in subqueries:
        needed = set(subquery.needed)
        if not needed & left_ids:
            sides[1].append(subquery)
            right_ids.update(column.id for column in subquery.columns)
        elif not needed & right_ids:
            sides[0].append(subquery)
            left_ids.update(column.id for column in subquery.columns)
        else:
            sides[2].append(subquery)
    return sides


@dataclass(frozen=True, slots=True)
class _MergedPair:
    """A column name of both sides that USING or NATURAL makes one column of."""

    left: Column
    right: Column
    equality: Expression
    span: Span | None


def _merged_pairs(node: Any, method: str, left: Relations, right: Relations) -> list[_MergedPair]:
    if method == "NATURAL":
        of_right = {column.name.casefold() for column in Scope(right).star(None)}
        names = [(column.name, span_of(node)) for column in Scope(left).star(None)]
        names = [(name, span) for name, span in dict(names).items() if name.casefold() in of_right]
    else:
        names = [(identifier.name, span_of(identifier)) for identifier in node.args.get("using") or []]
        _refuse_named_twice(names)
    pairs: list[_MergedPair] = []
    for name, span in names:
        one, other = _side_column(name, left, "left", span), _side_column(name, right, "right", span)
        pairs.append(_MergedPair(one, other, compare("=", one, other, span), span))
    return pairs


def _refuse_named_twice(names: Sequence[tuple[str, Span | None]]) -> None:
    seen: set[str] = set()
    for name, span in names:
        if name.casefold() in seen:
            raise column_twice(f"USING names {name} twice", span=span)
        seen.add(name.casefold())


def _side_column(name: str, relations: Relations, side: str, span: Span | None) -> Column:
    folded = name.casefold()
    columns = Scope(relations).star(None)
    found = [column for column in columns if column.name.casefold() == folded]
    if not found:
        hint = nearest(name, [column.name for column in columns])
        raise unknown_column(f"the {side} side of the join has no column {name}", span=span, suggestion=hint)
    if len(found) > 1:
        raise ambiguous_column(f"the column {name} is ambiguous in the {side} side of the join", span=span)
    return found[0]


def _merge(
    binding: BindContext, kind: JoinKind, tree: LogicalNode, relations: Relations, pairs: Sequence[_MergedPair]
) -> tuple[LogicalNode, Relations]:
    """Merge the columns of USING: first in `*`, once each, with the value of the side that is never missing."""
    delivered = {column.id: column for column in tree.columns}
    merged: list[Column] = []
    computed: list[Assignment] = []
    for pair in pairs:
        left, right = delivered[pair.left.id], delivered[pair.right.id]
        if kind is not JoinKind.FULL:
            merged.append(right if kind is JoinKind.RIGHT else left)
            continue
        shared = common_type(left.type, right.type)
        assert shared is not None, "they were compared"
        value = call("coalesce", coerce(left, shared), coerce(right, shared))
        assert value is not None
        column = binding.new_column(left.name, shared)
        computed.append(Assignment(column, value))
        merged.append(column)
    if computed:
        tree = logical.Project(tree, (*(Assignment(column, column) for column in tree.columns), *computed))
    hidden = frozenset(column.id for pair in pairs for column in (pair.left, pair.right))
    rest = tuple(replace(relation, merged=relation.merged | hidden) for relation in relations if not relation.is_merge)
    # What an earlier USING merged, and is not merged again, stays.
    kept = [
        column
        for relation in relations
        if relation.is_merge
        for column in relation.columns
        if column.id not in hidden and column.id not in relation.merged
    ]
    return tree, (ScopeRelation("", (*merged, *kept), is_merge=True), *rest)
