"""The rewrite that removes sub-queries: every `Apply` becomes a join.

Four ways, the first that works:

1. A right side that names no column of the left is joined as it is.
2. A right side that has exactly one row (an aggregate without keys, a SELECT without FROM, and projections and filters
   over them) becomes columns beside the left row: `one_row`.
3. A series of each left row goes over the left side.
   Volatile functions are evaluated for each left row: a right side that calls one takes way 2 only where that computes
   it over the left row, and in way 4 the values of a unique key of the left side belong to the domain.
4. Otherwise what names the left's columns is pulled up into the join's condition (`pull_up`), and where that cannot be
   done the right side is computed for all values of those columns at once (`push_domain`).

Inner sub-queries come first. One that names columns of a query two levels out is then a join that still does, and is
freed of them with the sub-query around it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.expr import TRUE, Case, Column, Expression, Literal, conjunction, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.walk import change_inputs
from remuda.plan.windows import WindowCall
from remuda.rules.construct import NewColumns, filtered
from remuda.rules.decorrelate.extremes import compare_with_extremes
from remuda.rules.decorrelate.free_columns import free_columns
from remuda.rules.decorrelate.one_row import join_one_row
from remuda.rules.decorrelate.pull_up import Pulled, PullUp
from remuda.rules.decorrelate.push_domain import PushDomain, calls_volatile, without_limits
from remuda.rules.normalize.filter_join import turn_mark_join_semi
from remuda.rules.tree_properties import unique_keys
from remuda.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.logical import LogicalNode


def decorrelate(tree: logical.Root, next_column: int) -> tuple[logical.Root, int]:
    """Remove every Apply; return the tree and the first column id that is still free."""
    new_columns = NewColumns(next_column)
    result = _decorrelate(tree, new_columns)
    assert isinstance(result, logical.Root)
    return result, new_columns.next_id


def _decorrelate(node: Any, new_columns: NewColumns) -> LogicalNode:
    changed: LogicalNode = change_inputs(node, partial(_decorrelate, new_columns=new_columns))
    return _join(changed, new_columns) if isinstance(changed, logical.Apply) else changed


def _join(apply: logical.Apply, new_columns: NewColumns) -> LogicalNode:
    left_columns = {column.id: column for column in apply.left.columns}
    assert left_columns.keys().isdisjoint(column.id for column in apply.right.columns), (
        "a sub-query has its own columns"
    )
    apply = _own(apply, left_columns)
    right = _any_row(apply.right) if _asks_for_existence(apply) else apply.right
    free = free_columns(right)
    outer = [column for id_, column in left_columns.items() if id_ in free]
    if not outer:
        join = logical.Join(apply.kind, apply.left, right, apply.condition, apply.compared, apply.mark, apply.span)
        return compare_with_extremes(join, new_columns) or join
    if calls_volatile(right):
        return _join_volatile(replace(apply, right=right), outer, left_columns, new_columns)
    one = join_one_row(replace(apply, right=right), outer, new_columns)
    if one is not None:
        return one
    lifted = _lift_series(apply, left_columns, new_columns) if apply.kind is JoinKind.INNER else None
    if lifted is not None:
        return filtered(lifted, [] if apply.condition is None else [apply.condition])
    pull_up = PullUp(frozenset(column.id for column in outer), new_columns)
    pulled = pull_up.pull(right)
    if pulled is None and not apply.kind.delivers_right:
        right = loosen(right)
        pulled = pull_up.pull(right)
    if pulled is not None:
        return _join_pulled(apply, pulled, left_columns, new_columns)
    pushing = PushDomain(apply.left, outer, new_columns, apply.span)  # type: ignore[arg-type]
    pushed = pushing.push(right)
    condition = conjunction([*pushing.equalities(pushed), *([apply.condition] if apply.condition else [])])
    return logical.Join(apply.kind, apply.left, pushed.node, condition, apply.compared, apply.mark, apply.span)


def _join_volatile(
    apply: logical.Apply, outer: Sequence[Column], left_columns: dict[int, Column], new_columns: NewColumns
) -> LogicalNode:
    """Join a volatile right side: two left rows of equal values must not share its random()."""
    is_plain = apply.kind in {JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE} and apply.condition is None
    if is_plain and isinstance(apply.right, logical.Project) and _has_one_row(apply.right):
        return _project_row(replace(apply, kind=JoinKind.INNER), left_columns, new_columns)
    return _join_per_row(apply, outer, new_columns)


def _join_per_row(apply: logical.Apply, outer: Sequence[Column], new_columns: NewColumns) -> LogicalNode:
    """Join by the general way, with a domain that has each left row apart."""
    right = apply.right
    left, evaluated, identity = _identified(apply.left, new_columns)
    own = tuple(dict.fromkeys((*outer, *identity)))
    pushing = PushDomain(evaluated, own, new_columns, apply.span, per_row=True)
    pushed = pushing.push(right)
    condition = conjunction([*pushing.equalities(pushed), *([apply.condition] if apply.condition else [])])
    return logical.Join(apply.kind, left, pushed.node, condition, apply.compared, apply.mark, apply.span)


def _project_row(apply: logical.Apply, left_columns: dict[int, Column], new_columns: NewColumns) -> LogicalNode:
    """Apply(INNER, l, Project(x)) → Project(Apply(INNER, l, x)) for an x of one row: computed for each left row."""
    right = apply.right
    if not calls_volatile(right):
        return _join(apply, new_columns)
    if not isinstance(right, logical.Project):
        free = free_columns(right)
        return _join_per_row(apply, [column for id_, column in left_columns.items() if id_ in free], new_columns)
    below = _project_row(replace(apply, right=right.input), left_columns, new_columns)
    passed = (Assignment(column, column) for column in apply.left.columns)
    items = (Assignment(item.column, substitute(item.expression, left_columns)) for item in right.assignments)
    return logical.Project(below, (*passed, *items))


def _has_one_row(node: Any) -> bool:
    """Test whether a relation has exactly one row, whatever its tables hold."""
    match node:
        case logical.Project() | logical.Sort():
            return _has_one_row(node.input)
        case logical.Values(rows=(_,)) | logical.Aggregate(keys=()):
            return True
        case _:
            return False


def _identified(left: Any, new_columns: NewColumns) -> tuple[LogicalNode, LogicalNode, tuple[Column, ...]]:
    """Return the left side, the source of the domain, and columns whose values identify a left row.

    Without a key, equal rows are numbered: which of them has which number does not matter. The domain may have more
    numbers than the left side, for it has no LIMIT.
    """
    keys = unique_keys(left)
    if keys:
        shortest = min(keys, key=lambda key: (len(key), sorted(key)))
        return left, left, tuple(column for column in left.columns if column.id in shortest)
    number = new_columns.add("number", BIGINT, nullable=False)
    call = WindowCall(number, "row_number")
    numbered, evaluated = (logical.Window(node, left.columns, (), (call,)) for node in (left, without_limits(left)))
    return numbered, evaluated, (*left.columns, number)


def _own(apply: logical.Apply, left_columns: dict[int, Column]) -> logical.Apply:
    """Rename an Apply's condition and comparison to the left's columns, in place of those of an outer query."""
    return replace(
        apply,
        condition=None if apply.condition is None else substitute(apply.condition, left_columns),
        compared=None if apply.compared is None else substitute(apply.compared, left_columns),
    )


def _lift_series(apply: logical.Apply, left_columns: dict[int, Column], new_columns: NewColumns) -> LogicalNode | None:
    """Apply(INNER, l, Series(x)) → Series(Apply(INNER, l, x)), through projections and filters of the series too.

    Not for the kinds that ask whether a left row has a match: they would have to know it among the rows of all.
    """
    right = apply.right
    match right:
        case logical.Series(input=logical.Values(columns=(), rows=(_,))):
            return logical.Series(apply.left, right.call.with_meanings(left_columns))
        case logical.Series():
            below = _join(logical.Apply(JoinKind.INNER, apply.left, right.input, span=apply.span), new_columns)
            return logical.Series(below, right.call.with_meanings(left_columns))
        case logical.Filter() | logical.Project():
            lifted = _lift_series(replace(apply, right=right.input), left_columns, new_columns)
            if lifted is None:
                return None
            if isinstance(right, logical.Filter):
                return logical.Filter(lifted, substitute(right.condition, left_columns))
            passed = (Assignment(column, column) for column in apply.left.columns)
            items = (Assignment(item.column, substitute(item.expression, left_columns)) for item in right.assignments)
            return logical.Project(lifted, (*passed, *items))
        case _:
            return None


def _asks_for_existence(apply: logical.Apply) -> bool:
    """Test whether the right side's rows are only counted as some or none: EXISTS."""
    return not apply.kind.delivers_right and apply.compared is None and apply.condition is None


def _any_row(node: Any) -> LogicalNode:
    """Something simpler that has a row exactly where this has one."""
    match node:
        case logical.Project() | logical.Sort() | logical.Window():
            return _any_row(node.input)
        case logical.Limit(count=Literal(value=int(count)), offset=None) if count > 0:
            return _any_row(node.input)
        case logical.Aggregate() if node.keys:
            return _any_row(node.input)
        case _:
            return node  # type: ignore[no-any-return]


def loosen(node: Any) -> LogicalNode:
    """Return the same rows with fewer duplicates: EXISTS and IN ask whether a row is there, not how many times.

    A SEMI join (an inner sub-query) becomes an INNER one, through which predicates can be pulled up from both sides,
    and DISTINCT goes. Only where predicates have to pass: an INNER join multiplies rows, a chain of INTERSECTs of large
    tables by thousands.
    """
    tree: LogicalNode = node
    match tree:
        case logical.Filter():
            plain = turn_mark_join_semi(tree)
            return loosen(plain) if plain is not None else replace(tree, input=loosen(tree.input))
        case logical.Project():
            return replace(tree, input=loosen(tree.input))
        case logical.Sort():
            return loosen(tree.input)
        case logical.Aggregate(calls=()) if tree.keys:
            items = tuple(Assignment(column, column) for column in tree.keys)
            return logical.Project(loosen(tree.input), items)
        case logical.Join(kind=JoinKind.INNER | JoinKind.SEMI):
            return replace(tree, kind=JoinKind.INNER, left=loosen(tree.left), right=loosen(tree.right))
        case _:
            return tree


def _join_pulled(
    apply: logical.Apply, pulled: Pulled, left_columns: dict[int, Column], new_columns: NewColumns
) -> LogicalNode:
    """Join with what was pulled up; columns that the right side computed from left ones are computed after it.

    Where the join keeps left rows without a match they must be NULL for those: a column that is TRUE in every right
    row tells.
    """
    meanings = {id_: substitute(expression, left_columns) for id_, expression in pulled.meanings.items()}

    def meant(expression: Expression | None) -> Expression | None:
        return None if expression is None else substitute(expression, meanings)

    predicates = [substitute(predicate, left_columns) for predicate in pulled.predicates]
    own = meant(apply.condition)
    condition = conjunction(predicates if own is None else [*predicates, own])
    delivered = [column for column in apply.columns[len(apply.left.columns) :] if column.id in meanings]
    right = pulled.node
    if not apply.kind.delivers_right or not delivered:
        join = logical.Join(apply.kind, apply.left, right, condition, meant(apply.compared), apply.mark, apply.span)
        return compare_with_extremes(join, new_columns) or join
    present: Column | None = None
    if apply.kind.keeps_left:
        present = new_columns.add("present", BOOLEAN, nullable=False)
        passed = (Assignment(column, column) for column in right.columns)
        right = logical.Project(right, (*passed, Assignment(present, TRUE)))
    joined = logical.Join(apply.kind, apply.left, right, condition, span=apply.span)
    items = [Assignment(column, column) for column in joined.columns if column is not present]
    for column in delivered:
        value = meanings[column.id]
        if present is not None:
            value = Case(((present, value),), Literal(None, value.type), value.type)
        items.append(Assignment(column, value))
    return logical.Project(joined, tuple(items))
