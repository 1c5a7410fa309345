"""The general way to free a sub-query of outer columns: it is computed for all their values at once.

The *domain* is the set of combinations of values that the outer columns have: Aggregate(left side, those columns).
`push(R)` gives the rows of R for each combination, with the combination as columns: {(d, r) | d in domain, r in R(d)}.
Joined with the left side on equal values (NULL equal to NULL), that is what R is for each left row.

    SELECT o.id, (SELECT MAX(price) FROM items WHERE price < o.amount) FROM orders AS o

    domain:  d = the different amounts
    push:    Aggregate by d of Filter(domain × items, price < d)
    join:    orders with that on amount IS NOT DISTINCT FROM d

A relation that names no outer column is the same for all: the cross product with the domain. Where both sides of a join
are correlated, each has the domain's columns, and the join compares them. The rules turn cross product and filter into
a join, so the domain costs what a join with the different outer values costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import not_supported
from remuda.expr import Call, Column, Expression, conjunction, is_volatile, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.walk import change_inputs, walk
from remuda.rules.decorrelate.free_columns import expressions_of, free_columns, with_defaults
from remuda.rules.decorrelate.pull_up import first_of_each
from remuda.rules.normalize.trim import trim
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.errors import Span
    from remuda.plan.logical import LogicalNode
    from remuda.rules.construct import NewColumns


@dataclass(frozen=True, slots=True)
class Pushed:
    """`node` has the columns of the relation and, in `domain`, those of the combination that each row is for."""

    node: LogicalNode
    domain: tuple[Column, ...]


class PushDomain:
    """`outer` are the columns of the left side, `left`, that the right side names.

    `per_row` says that they tell the left rows apart: then volatile functions are called for each of their values.
    """

    def __init__(
        self,
        left: LogicalNode,
        outer: Sequence[Column],
        new_columns: NewColumns,
        span: Span | None = None,
        *,
        per_row: bool = False,
    ) -> None:
        self._per_row = per_row
        self._left = without_limits(left)
        self._outer = tuple(outer)
        self._refuse_drawn_domain(span)
        self._outer_ids = frozenset(column.id for column in outer)
        self._new_columns = new_columns
        self._tables: set[int] = set()

    def _refuse_drawn_domain(self, span: Span | None) -> None:
        """Refuse a volatile left side: it is evaluated twice, for the domain and for itself."""
        evaluated = trim(self._left, {column.id for column in self._outer})
        if calls_volatile(evaluated):
            message = "this sub-query cannot depend on values of random() or on rows chosen by it"
            raise not_supported(message, span=span)

    def push(self, node: Any) -> Pushed:
        if not self._depends(node):
            domain = self._domain()
            return Pushed(logical.Join(JoinKind.INNER, domain.node, node), domain.domain)
        match node:
            case logical.Filter():
                below = self.push(node.input)
                return Pushed(logical.Filter(below.node, self._inner(node.condition, below)), below.domain)
            case logical.Project():
                below = self.push(node.input)
                items = (Assignment(item.column, self._inner(item.expression, below)) for item in node.assignments)
                return Pushed(logical.Project(below.node, (*_same(below.domain), *items)), below.domain)
            case logical.Aggregate():
                return self._aggregate(node)
            case logical.Sort():
                return self.push(node.input)
            case logical.Limit():
                below = self.push(node.input)
                return Pushed(first_of_each(below.node, node, below.domain, self._new_columns), below.domain)
            case logical.Window():
                return self._window(node)
            case logical.Join():
                return self._join(node)
            case logical.Union():
                return self._union(node)
            case logical.Expand():
                return self._expand(node)
            case logical.Series():
                below = self.push(node.input)
                return Pushed(logical.Series(below.node, node.call.with_meanings(self._names(below))), below.domain)
            case logical.Values():
                return self._values(node)
            case logical.Recursive():
                return self._recursive(node)
            case logical.WorkingTable():
                domain_columns = self._copies()
                return Pushed(replace(node, columns=(*domain_columns, *node.columns)), domain_columns)
            case _:
                raise AssertionError(f"{type(node).__name__} in a sub-query")

    def equalities(self, pushed: Pushed) -> list[Expression]:
        """Return the equalities that make a row of `pushed` one for a given left row."""
        return _equal(self._outer, pushed.domain)

    def _depends(self, node: Any) -> bool:
        """Test whether the rows differ between combinations, or are labelled with one already."""
        if self._outer_ids & free_columns(node).keys() or (self._per_row and calls_volatile(node)):
            return True
        return bool(self._tables) and any(
            isinstance(part, logical.WorkingTable) and part.table in self._tables for part in walk(node)
        )

    def _domain(self) -> Pushed:
        columns = self._copies()
        items = tuple(Assignment(new, old) for new, old in zip(columns, self._outer, strict=True))
        return Pushed(logical.Aggregate(logical.Project(self._left, items), columns, ()), columns)

    def _copies(self) -> tuple[Column, ...]:
        return tuple(self._new_columns.copy(column) for column in self._outer)

    def _inner(self, expression: Expression, pushed: Pushed) -> Expression:
        """Replace the outer columns of an expression by the domain's."""
        return substitute(expression, self._names(pushed))

    def _names(self, pushed: Pushed) -> dict[int, Expression]:
        return {old.id: new for old, new in zip(self._outer, pushed.domain, strict=True)}

    def _column(self, column: Column, pushed: Pushed) -> Column:
        inner = self._inner(column, pushed)
        assert isinstance(inner, Column)
        return inner

    def _aggregate(self, node: logical.Aggregate) -> Pushed:
        below = self.push(node.input)
        grouped = self.group(node, below)
        if node.keys:
            return Pushed(grouped, below.domain)
        # One row for each combination, also where nothing was found for it.
        all_ = self._domain()
        defaulted, inner = with_defaults(grouped, node.calls, self._new_columns)
        condition = conjunction(_equal(all_.domain, below.domain))
        joined = logical.Join(JoinKind.LEFT, all_.node, defaulted, condition)
        return Pushed(logical.Project(joined, (*_same(all_.domain), *inner)), all_.domain)

    def group(self, node: logical.Aggregate, below: Pushed) -> logical.Aggregate:
        keys = tuple(self._column(column, below) for column in node.keys)
        calls = tuple(
            replace(
                call,
                argument=None if call.argument is None else self._column(call.argument, below),
                second=None if call.second is None else self._column(call.second, below),
            )
            for call in node.calls
        )
        own = tuple(column for column in below.domain if column not in keys)
        return logical.Aggregate(below.node, (*own, *keys), calls)

    def _window(self, node: logical.Window) -> Pushed:
        below = self.push(node.input)
        partition = (*below.domain, *(self._column(column, below) for column in node.partition))
        calls = tuple(
            replace(call, arguments=tuple(self._inner(argument, below) for argument in call.arguments))
            for call in node.calls
        )
        window = logical.Window(below.node, tuple(dict.fromkeys(partition)), node.order, calls)
        return Pushed(window, below.domain)

    def _join(self, node: logical.Join) -> Pushed:
        """Push the domain to the side that needs it, and to a side that keeps rows without a match.

        Not to the right side of a LEFT join alone: a left row is kept once for each combination without a match.
        """
        left_depends, right_depends = self._depends(node.left), self._depends(node.right)
        if node.kind is JoinKind.INNER:
            to_left, to_right = left_depends or not right_depends, right_depends
        elif node.kind is JoinKind.RIGHT:
            to_left, to_right = left_depends, True
        elif node.kind is JoinKind.FULL:
            to_left, to_right = True, True
        else:
            to_left, to_right = True, right_depends
        left = self.push(node.left) if to_left else None
        right = self.push(node.right) if to_right else None
        main = right if left is None or node.kind is JoinKind.RIGHT else left
        assert main is not None
        conditions = [] if left is None or right is None else _equal(left.domain, right.domain)
        if node.condition is not None:
            conditions.append(self._inner(node.condition, main))
        joined = replace(
            node,
            left=node.left if left is None else left.node,
            right=node.right if right is None else right.node,
            condition=conjunction(conditions),
            compared=None if node.compared is None else self._inner(node.compared, main),
        )
        if node.kind is not JoinKind.FULL or left is None or right is None:
            return Pushed(joined, main.domain)
        both = self._copies()
        merged = (
            Assignment(column, Call("coalesce", (one, other), column.type))
            for column, one, other in zip(both, left.domain, right.domain, strict=True)
        )
        return Pushed(logical.Project(joined, (*merged, *_same(node.columns))), both)

    def _union(self, node: logical.Union) -> Pushed:
        parts = [self.push(part) for part in node.inputs]
        domain = self._copies()
        sources = tuple(
            (*part.domain, *(self._column(column, part) for column in source))
            for part, source in zip(parts, node.sources, strict=True)
        )
        return Pushed(logical.Union(tuple(part.node for part in parts), (*domain, *node.columns), sources), domain)

    def _expand(self, node: logical.Expand) -> Pushed:
        below = self.push(node.input)
        domain = self._copies()
        projections = tuple(
            (*below.domain, *(self._inner(expression, below) for expression in projection))
            for projection in node.projections
        )
        return Pushed(logical.Expand(below.node, (*domain, *node.columns), projections), domain)

    def _values(self, node: logical.Values) -> Pushed:
        """Join rows that name outer columns as a projection of the domain for each row."""
        domain = self._domain()
        rows = [
            logical.Project(
                domain.node,
                (
                    *_same(domain.domain),
                    *(
                        Assignment(column, self._inner(value, domain))
                        for column, value in zip(node.columns, row, strict=True)
                    ),
                ),
            )
            for row in node.rows
        ]
        if len(rows) == 1:
            return Pushed(rows[0], domain.domain)
        columns = (*domain.domain, *node.columns)
        union_columns = tuple(self._new_columns.copy(column) for column in domain.domain)
        return Pushed(
            logical.Union(tuple(rows), (*union_columns, *node.columns), (columns,) * len(rows)), union_columns
        )

    def _recursive(self, node: logical.Recursive) -> Pushed:
        """Push the domain into a recursion: the working table carries it, so every combination recurses on its own."""
        self._tables.add(node.table)
        parts = [self.push(part) for part in node.inputs]
        domain = self._copies()
        first, step = (
            (*part.domain, *(self._column(column, part) for column in source))
            for part, source in zip(parts, node.sources, strict=True)
        )
        inputs = (parts[0].node, parts[1].node)
        return Pushed(replace(node, inputs=inputs, columns=(*domain, *node.columns), sources=(first, step)), domain)


def calls_volatile(node: Any) -> bool:
    """Test whether a tree calls a volatile function."""
    return any(is_volatile(part) for each in walk(node) for part in expressions_of(each))


def without_limits(node: Any) -> Any:
    """Remove LIMITs where that gives more rows and changes none: a domain may have too many values.

    Evaluated a second time, `LIMIT 10` may choose ten other rows among equals, and a left row would find nothing. Below
    an aggregate or a window a LIMIT stays: without it there would be other values.
    """
    match node:
        case logical.Limit() | logical.Sort():
            return without_limits(node.input)
        case (
            logical.Filter()
            | logical.Project()
            | logical.Union()
            | logical.Expand()
            | logical.Series()
            | logical.Aggregate(calls=())
        ):
            return change_inputs(node, without_limits)
        case logical.Join(kind=JoinKind.INNER):
            return replace(node, left=without_limits(node.left), right=without_limits(node.right))
        case logical.Join() if not node.kind.keeps_right:
            return replace(node, left=without_limits(node.left))
        case _:
            return node


def _equal(left: Iterable[Column], right: Iterable[Column]) -> list[Expression]:
    """Pairs of columns that are equal, NULL to NULL; a plain comparison where there can be no NULL."""
    return [
        Call("is not distinct from" if one.nullable and other.nullable else "=", (one, other), BOOLEAN)
        for one, other in zip(left, right, strict=True)
    ]


def _same(columns: Iterable[Column]) -> tuple[Assignment, ...]:
    return tuple(Assignment(column, column) for column in columns)
