"""Explore rules: other trees with the same rows, which may or may not be cheaper. The search decides, by cost.

A rule gets a tree and gives others with the same columns. Orders of joins are explored apart from these, all at once
(`optimizer/join/join_order.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.expr import Call, Cast, Column, Expression, Literal, conjunction, conjuncts, disjuncts, is_constant
from remuda.plan import logical
from remuda.plan.checker import check_logical
from remuda.plan.joins import JoinKind
from remuda.plan.traits import SortKey
from remuda.rules.explore import explore_aggregate
from remuda.rules.explore.aggregate_below_join import aggregate_below_join
from remuda.rules.extensions import NO_EXTENSIONS, Extensions
from remuda.rules.join_keys import split_condition
from remuda.types import BIGINT, BOOLEAN, is_widening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.catalog import MapDefinition
    from remuda.rules.rule_context import ExploreContext

MAXIMUM_BRANCHES = 8
_COMPARISONS = {"=", "<", "<=", ">", ">=", "in", "like", "is null"}


def split_disjunction(node: Any) -> logical.Union | None:
    """Scan(m, f = 1 OR g = 2) → Union(Scan(m, f = 1), Scan(m, g = 2 AND (f = 1) IS NOT TRUE)).

    Each branch can then go through an index of its own, and each row comes from the first branch that it meets.
    Not where some branch names no column that leads an index or is the key: that branch would read the map anyway.
    """
    if not isinstance(node, logical.Scan) or node.filter is None:
        return None
    leading = _leading_columns(node.map)
    parts = conjuncts(node.filter)
    for part in parts:
        branches = disjuncts(part)
        if not 1 < len(branches) <= MAXIMUM_BRANCHES or not all(_is_served(branch, leading) for branch in branches):
            continue
        if len({_led_by(branch, leading) for branch in branches}) == 1 and not any(
            len(conjuncts(branch)) > 1 for branch in branches
        ):
            continue  # one column throughout: one index serves the whole
        rest = [other for other in parts if other is not part]
        scans: list[logical.Scan] = []
        for ordinal, branch in enumerate(branches):
            earlier = [Call("is not true", (other,), BOOLEAN) for other in branches[:ordinal]]
            scans.append(logical.Scan(node.map, node.columns, conjunction([branch, *rest, *earlier])))
        return logical.Union(tuple(scans), node.columns, (node.columns,) * len(scans))
    return None


def _leading_columns(definition: MapDefinition) -> frozenset[str]:
    """Return the columns by which rows can be found: those that lead an index, and a key of one column."""
    leading = {index.columns[0] for index in definition.indexes}
    return frozenset(leading | (set(definition.key) if len(definition.key) == 1 else set()))


def _is_served(branch: Expression, leading: frozenset[str]) -> bool:
    return _led_by(branch, leading) is not None


def _led_by(branch: Expression, leading: frozenset[str]) -> str | None:
    """Return the leading column that a conjunct of the branch compares with a constant."""
    for part in conjuncts(branch):
        if isinstance(part, Call) and part.function in _COMPARISONS:
            columns = [argument for argument in part.arguments if isinstance(argument, Column)]
            others = [argument for argument in part.arguments if not isinstance(argument, Column)]
            if len(columns) == 1 and columns[0].name in leading and all(map(is_constant, others)):
                return columns[0].name
    return None


def find_extremes_by_order(node: Any) -> logical.Aggregate | None:
    """MIN(f), MAX(g) over a Scan → the same over Union(first row by f, last row by g), NULLs left out.

    Legal because the row that has the extreme is among the rows, and all of them are rows of the scan. An index in
    that order reads one row of each segment. Not with keys, and not beside another aggregate: SUM needs every row.
    """
    if not isinstance(node, logical.Aggregate) or node.keys or not node.calls:
        return None
    scan = node.input
    if not isinstance(scan, logical.Scan):
        return None
    ordered_columns = {name for index in scan.map.indexes if index.type.serves.order for name in index.columns}
    ends: dict[tuple[Column, bool], logical.Limit] = {}
    for call in node.calls:
        argument = call.argument
        if call.function not in {"min", "max"} or argument is None or argument.name not in ordered_columns:
            return None
        last = call.function == "max"
        present = Call("is not null", (argument,), BOOLEAN)
        filter_ = conjunction([*conjuncts(scan.filter), present])
        ends[argument, last] = logical.Limit(
            logical.Scan(scan.map, scan.columns, filter_),
            Literal(1, BIGINT),
            None,
            (SortKey(argument.id, descending=last, nulls_first=not last),),
        )
    rows = tuple(ends.values())
    source: Any = rows[0] if len(rows) == 1 else logical.Union(rows, scan.columns, (scan.columns,) * len(rows))
    return logical.Aggregate(source, node.keys, node.calls)


def look_up_semi_join(node: Any) -> logical.Project | None:
    """Join SEMI(Scan, r, key = r.x) → Project(Join INNER(Aggregate(r, x), Scan, key = r.x), columns of the scan).

    Legal because each value of `x` comes once, so that a row of the scan has one match at most. An INNER join can begin
    with the few values and look up the rows in an index; a SEMI join reads its whole left side. `x` may be widened, as
    in `id = CAST(r.x AS BIGINT)`: different values stay different. Not with a condition beside the equalities, of which
    another row with the same `x` may be the one that meets it.
    """
    if not isinstance(node, logical.Join) or not isinstance(node.left, logical.Scan):
        return None
    return semi_join_as_inner(node, node.left)


def semi_join_as_inner(join: logical.Join, scan: logical.Scan) -> logical.Project | None:
    """Apply `semi_join_as_inner` where the left side of the join is known to be the scan."""
    if join.kind is not JoinKind.SEMI:
        return None
    equalities, rest = split_condition(join.condition, join.left.columns, join.right.columns)
    columns = [_widened_column(each.right) for each in equalities]
    keys = {column.id: column for column in columns if column is not None}
    names = {each.left.name for each in equalities if isinstance(each.left, Column) and not each.null_safe}
    if rest is not None or None in columns:
        return None
    if not (names.issuperset(scan.map.key) or any(index.columns[0] in names for index in scan.map.indexes)):
        return None
    distinct = logical.Aggregate(join.right, tuple(keys.values()), ())
    inner = logical.Join(JoinKind.INNER, distinct, join.left, join.condition)
    return logical.Project(inner, tuple(logical.Assignment(column, column) for column in join.columns))


def _widened_column(side: Expression) -> Column | None:
    """Return the column of which a side of an equality has as many values; None where it is something else."""
    if isinstance(side, Cast) and isinstance(side.argument, Column) and is_widening(side.argument.type, side.type):
        return side.argument
    return side if isinstance(side, Column) else None


SIMPLE_RULES: tuple[Callable[[Any], Any], ...] = (
    split_disjunction,
    find_extremes_by_order,
    look_up_semi_join,
)
"""Rules that give one tree, or None, and need no new columns."""

AGGREGATE_RULES: tuple[Callable[[Any, ExploreContext], Iterator[Any]], ...] = (
    aggregate_below_join,
    explore_aggregate.aggregate_below_union,
    explore_aggregate.aggregate_distinct_in_two_steps,
)


def explore(
    node: Any, context: ExploreContext, disabled: frozenset[str], extensions: Extensions = NO_EXTENSIONS
) -> Iterator[tuple[str, Any]]:
    """Yield trees beside this one, each with the name of its rule."""
    for rule in SIMPLE_RULES:
        if rule.__name__ not in disabled:
            other = rule(node)
            if other is not None:
                yield rule.__name__, other
    for aggregate_rule in AGGREGATE_RULES if isinstance(node, logical.Aggregate) else ():
        if aggregate_rule.__name__ not in disabled:
            for other in aggregate_rule(node, context):
                yield aggregate_rule.__name__, other
    for added_rule in extensions.rules_of("explore", type(node)):
        if added_rule.__name__ not in disabled:
            for other in added_rule(node, context):
                check_logical(other)
                assert {*other.columns} == {*node.columns}, f"{added_rule.__name__} keeps the columns of a tree"
                yield added_rule.__name__, other
