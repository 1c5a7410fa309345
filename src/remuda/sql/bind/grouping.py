"""GROUP BY: keys, ROLLUP, CUBE and GROUPING SETS, and GROUPING() that tells the sets apart."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import grouping_error, too_complex, unknown_function
from remuda.expr import Column, children
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.parse.spans import refuse_unknown_parts, span_of
from remuda.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from remuda.errors import Span
    from remuda.expr import Expression
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.sql.bind.scope import Scope
    from remuda.types import SqlType

MAXIMUM_SETS = 4096
_MAXIMUM_BITS = 63
_GROUP_PARTS = frozenset({"expressions", "all"})
_Set = tuple[Any, ...]
"""Nodes of the keys of one grouping set, in the order written."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys, and for each grouping set the places of its keys; a plain GROUP BY is one set of all keys."""

    keys: tuple[Expression, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ((),)

    @property
    def is_plain(self) -> bool:
        return len(self.sets) == 1


@dataclass(frozen=True, slots=True)
class PendingGrouping:
    """`GROUPING(a, b)`, for which `column` stands."""

    column: Column
    arguments: tuple[Expression, ...]
    span: Span | None

    def value_in(self, grouping: Grouping, number: int) -> int:
        """Compute GROUPING: one bit for each argument, the first the highest, set for keys outside the set."""
        value = 0
        for argument in self.arguments:
            if argument not in grouping.keys:
                raise grouping_error("GROUPING takes expressions of GROUP BY", span=self.span)
            value = 2 * value + (grouping.keys.index(argument) not in grouping.sets[number])
        return value


def bind_grouping(
    node: Any, bind_key: Callable[[Any], Expression], all_keys: Callable[[], list[Expression]]
) -> Grouping:
    """GROUP BY as grouping sets. `all_keys` gives what GROUP BY ALL groups by."""
    refuse_unknown_parts(node, _GROUP_PARTS)
    if node.args.get("all"):
        keys = tuple(dict.fromkeys(all_keys()))
        return Grouping(keys, (tuple(range(len(keys))),))
    sets: list[_Set] = [()]
    for entry in node.expressions:
        further = _sets_of(entry)
        if len(sets) * len(further) > MAXIMUM_SETS:
            raise too_complex(f"more than {MAXIMUM_SETS} grouping sets", span=span_of(entry))
        sets = [(*one, *other) for one in sets for other in further]
    bound: dict[int, Expression] = {}
    for part in (part for each in sets for part in each):
        if id(part) not in bound:
            bound[id(part)] = bind_key(part)
    keys = tuple(dict.fromkeys(bound.values()))
    ordinals = {key: ordinal for ordinal, key in enumerate(keys)}
    return Grouping(keys, tuple(tuple(dict.fromkeys(ordinals[bound[id(part)]] for part in each)) for each in sets))


def with_dependent_keys(grouping: Grouping, scope: Scope, expressions: Iterable[Expression]) -> Grouping:
    """Add the columns that depend on a map's whole key to the keys, so that the query may name them.

    They become keys themselves, which divides no group. As in PostgreSQL, not of ROLLUP and its kin.
    """
    if not grouping.is_plain or not grouping.keys:
        return grouping
    grouped = set(grouping.keys)
    dependent = {
        column
        for relation in scope.relations
        if relation.key and grouped.issuperset(relation.key)
        for column in relation.columns
    }
    named = dict.fromkeys(column for part in expressions for column in _named_outside(part, grouped))
    keys = (*grouping.keys, *(column for column in named if column in dependent and column not in grouped))
    return Grouping(keys, (tuple(range(len(keys))),))


def _named_outside(expression: Expression, keys: set[Expression]) -> Iterator[Column]:
    """Return the columns that an expression names outside of the parts that are keys."""
    if expression in keys:
        return
    if isinstance(expression, Column):
        yield expression
    for child in children(expression):
        yield from _named_outside(child, keys)


def _sets_of(node: Any) -> list[_Set]:
    """Return the grouping sets that one entry of GROUP BY stands for."""
    match node:
        case exp.Rollup():
            parts = [_parts_of(part) for part in node.expressions]
            return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_parts_of(part) for part in node.expressions]
            if 2 ** len(parts) > MAXIMUM_SETS:
                raise too_complex(f"more than {MAXIMUM_SETS} grouping sets", span=span_of(node))
            lengths = range(len(parts), -1, -1)
            return [_joined(chosen) for length in lengths for chosen in combinations(parts, length)]
        case exp.GroupingSets():
            return [one for part in node.expressions for one in _sets_of(part)]
        case _:
            return [_parts_of(node)]


def _parts_of(node: Any) -> _Set:
    """Return the parts of `a`, `(a)` or `(a, b)`."""
    while isinstance(node, exp.Paren):
        node = node.this
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def _joined(parts: Sequence[_Set]) -> _Set:
    return tuple(part for each in parts for part in each)


def _bind_grouping_call(binder: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    span = span_of(node)
    if binder.groupings is None:
        raise grouping_error(f"GROUPING is not allowed in {binder.clause}", span=span)
    arguments = tuple(binder.bind(part) for part in node.expressions)
    if not arguments:
        raise unknown_function("GROUPING needs an argument", span=span)
    if len(arguments) > _MAXIMUM_BITS:
        raise unknown_function(f"GROUPING takes {_MAXIMUM_BITS} arguments at most: its result is a BIGINT", span=span)
    column = binder.binding.new_column("grouping", BIGINT, nullable=False)
    binder.groupings.append(PendingGrouping(column, arguments, span))
    return column


NODES: Binders = {exp.Grouping: _bind_grouping_call}
PARTS: Parts = {exp.Grouping: COMMON_PARTS}
