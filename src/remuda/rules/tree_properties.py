"""What can be known of a relation's rows from its tree: unique columns, how many rows, which columns are never NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.expr import Call, Column, Literal, conjuncts, is_constant
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.rules.join_keys import split_condition
from remuda.rules.nulls import rejects_nulls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from remuda.expr import Expression

UniqueKeys = tuple[frozenset[int], ...]
"""Sets of columns of which no two rows have the same values, NULL being a value. The empty set: at most one row."""

_MAXIMUM_KEYS = 8
"""Beyond it only the shortest keys are followed: a chain of joins has a key for each choice of a side."""


def is_unique(node: Any, columns: Iterable[int]) -> bool:
    """Test whether no two rows have the same values in these columns."""
    grouped = frozenset(columns)
    return any(key <= grouped for key in unique_keys(node))


def has_at_most_one_row(node: Any) -> bool:
    return is_unique(node, ())


def unique_keys(node: Any) -> UniqueKeys:
    match node:
        case logical.Scan():
            return _less_fixed(_scan_keys(node), node.filter)
        case logical.Values():
            return (frozenset(),) if len(node.rows) <= 1 else ()
        case logical.Filter():
            return _less_fixed(unique_keys(node.input), node.condition)
        case logical.Project():
            return _renamed(unique_keys(node.input), node)
        case logical.Aggregate():
            own = frozenset(column.id for column in node.keys)
            return (*(key for key in unique_keys(node.input) if key < own), own)
        case logical.Limit(count=Literal(value=0 | 1)):
            return (frozenset(),)
        case logical.Sort() | logical.Limit() | logical.Window():
            return unique_keys(node.input)
        case logical.Series():
            return tuple(key | {node.call.column.id} for key in unique_keys(node.input))
        case logical.Join():
            return _join_keys(node)
        case logical.Recursive(distinct=True):
            return (frozenset(column.id for column in node.columns),)
        case _:
            return ()


def _scan_keys(node: logical.Scan) -> UniqueKeys:
    ids = {column.name: column.id for column in node.columns}
    return (frozenset(ids[name] for name in node.map.key),) if all(name in ids for name in node.map.key) else ()


def _less_fixed(keys: UniqueKeys, condition: Expression | None) -> UniqueKeys:
    """Remove fixed columns: a column that has one value distinguishes no rows."""
    fixed = fixed_columns(condition)
    return tuple(key - fixed for key in keys) if fixed else keys


def fixed_columns(condition: Expression | None) -> frozenset[int]:
    """Return the columns that equal a constant wherever the condition holds."""
    fixed: set[int] = set()
    for part in conjuncts(condition):
        match part:
            case Call(function="=", arguments=(Column() as column, other)) if is_constant(other):
                fixed.add(column.id)
            case Call(function="=", arguments=(other, Column() as column)) if is_constant(other):
                fixed.add(column.id)
            case Call(function="is null", arguments=(Column() as column,)):
                fixed.add(column.id)
    return frozenset(fixed)


def _renamed(keys: UniqueKeys, node: logical.Project) -> UniqueKeys:
    names: Mapping[int, int] = {
        item.expression.id: item.column.id for item in reversed(node.assignments) if isinstance(item.expression, Column)
    }
    return tuple(frozenset(names[id_] for id_ in key) for key in keys if all(id_ in names for id_ in key))


def _join_keys(node: logical.Join) -> UniqueKeys:
    left = unique_keys(node.left)
    if not node.kind.delivers_right or node.kind is JoinKind.SINGLE:
        return left
    if node.kind is JoinKind.FULL:
        return ()
    right = unique_keys(node.right)
    found: set[frozenset[int]] = {one | other for one in left for other in right}
    left_columns, right_columns = _equal_columns(node)
    if not node.kind.keeps_right and any(key <= right_columns for key in right):
        found.update(left)
    if not node.kind.keeps_left and any(key <= left_columns for key in left):
        found.update(right)
    return tuple(sorted(found, key=lambda key: (len(key), sorted(key)))[:_MAXIMUM_KEYS])


def matches_at_most_once(node: logical.Join) -> bool:
    """Test whether a left row has at most one match: the compared right columns are unique."""
    return is_unique(node.right, _equal_columns(node)[1])


def _equal_columns(node: logical.Join) -> tuple[frozenset[int], frozenset[int]]:
    """Return the columns of the left and of the right side that the condition compares for equality."""
    equalities, _ = split_condition(node.condition, node.left.columns, node.right.columns)
    return (
        frozenset(equality.left.id for equality in equalities if isinstance(equality.left, Column)),
        frozenset(equality.right.id for equality in equalities if isinstance(equality.right, Column)),
    )


def has_exactly_one_row(node: Any) -> bool:
    match node:
        case logical.Aggregate():
            return not node.keys
        case logical.Values():
            return len(node.rows) == 1
        case logical.Project() | logical.Sort() | logical.Window():
            return has_exactly_one_row(node.input)
        case logical.Join(condition=None, kind=JoinKind.INNER):
            return has_exactly_one_row(node.left) and has_exactly_one_row(node.right)
        case logical.Join(kind=JoinKind.MARK | JoinKind.SINGLE):
            return has_exactly_one_row(node.left)
        case _:
            return False


def not_null_columns(node: Any) -> frozenset[int]:
    """Return the columns that are never NULL: declared so, or refused by a filter where they are."""
    match node:
        case logical.Scan():
            return _refused(node.filter) | _declared(node)
        case logical.Filter():
            return _refused(node.condition) | not_null_columns(node.input)
        case logical.Sort() | logical.Limit():
            return not_null_columns(node.input)
        case logical.Window():
            return not_null_columns(node.input) | {call.column.id for call in node.calls if not call.column.nullable}
        case logical.Series():
            return not_null_columns(node.input) | {node.call.column.id}
        case logical.Aggregate():
            return (not_null_columns(node.input) & {column.id for column in node.keys}) | _declared(node)
        case logical.Project():
            below = not_null_columns(node.input)
            return _declared(node) | {
                item.column.id
                for item in node.assignments
                if (isinstance(item.expression, Column) and item.expression.id in below)
                or (isinstance(item.expression, Literal) and item.expression.value is not None)
            }
        case logical.Join():
            return _not_null_of_join(node)
        case _:
            return _declared(node)


def _declared(node: Any) -> frozenset[int]:
    return frozenset(column.id for column in node.columns if not column.nullable)


def _not_null_of_join(node: logical.Join) -> frozenset[int]:
    """Return the never-NULL columns of a join: of sides that are never missing, and those its condition refuses."""
    found: frozenset[int] = frozenset()
    if not node.kind.keeps_right:
        found |= not_null_columns(node.left)
    if not node.kind.keeps_left and node.kind.delivers_right:
        found |= not_null_columns(node.right)
    if node.kind in {JoinKind.INNER, JoinKind.SEMI}:
        found |= _refused(node.condition)
    if node.mark is not None and not node.mark.nullable:
        found |= {node.mark.id}
    return found


def _refused(condition: Expression | None) -> frozenset[int]:
    refused: set[int] = set()
    for part in conjuncts(condition):
        refused.update(id_ for id_ in _candidates(part) if rejects_nulls(part, (id_,)))
    return frozenset(refused)


def _candidates(part: Expression) -> Iterable[int]:
    """Return the columns of simple predicates: looking through every long OR for every column would cost too much."""
    match part:
        case Call(function="in", arguments=(Column() as column, *_)):
            return (column.id,)
        case Call(arguments=arguments) if len(arguments) <= 2:
            return tuple(argument.id for argument in arguments if isinstance(argument, Column))
        case _:
            return ()
