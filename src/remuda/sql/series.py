"""Table functions: generate_series and range, as rows written out or as a recursive query.

The numbers 1 to n are the nodes of a binary tree in which 2k and 2k + 1 stand below k: each level is computed from the
one before, so a million of them takes twenty steps, and they come in order. A series of months is added up one by one,
as PostgreSQL does: a month after 31 January is 29 February, and a month after that 29 March.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr import Call, Case, Column, Expression, Literal, call, coerce, fold
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.sql.expression import ExpressionBinder
from remuda.sql.functions import TABLE_FUNCTIONS
from remuda.sql.places import place_of
from remuda.sql.scope import QueryLevel, Scope
from remuda.sql.subqueries import Subquery, attach
from remuda.sql.values import one_row
from remuda.types import BIGINT, BOOLEAN, DATE, NULL, TIMESTAMP, TIMESTAMP_TZ, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.errors import Span
    from remuda.plan.logical import LogicalNode
    from remuda.sql.binding import Binding
    from remuda.types import SqlType

WRITTEN_OUT = 256
"""Series of so many constants at most are rows of the plan, whose number the optimizer knows."""


@dataclass(frozen=True, slots=True)
class _Series:
    start: Expression
    stop: Expression
    step: Expression
    includes_stop: bool
    span: Span | None

    def call(self, name: str, *arguments: Expression) -> Expression:
        made = call(name, *arguments, span=self.span)
        assert made is not None, "the arguments were checked"
        return fold(made)

    def value(self, number: Expression) -> Expression:
        """The value with this number, counted from 0."""
        return self.call("+", self.start, self.call("*", self.step, number))

    def is_within(self, value: Expression) -> Expression:
        forward, backward = ("<=", ">=") if self.includes_stop else ("<", ">")
        up = Call("and", (self.call(">", self.step, self._zero), self.call(forward, value, self.stop)), BOOLEAN)
        down = Call("and", (self.call("<", self.step, self._zero), self.call(backward, value, self.stop)), BOOLEAN)
        return fold(Call("or", (up, down), BOOLEAN))

    def count(self) -> Expression:
        """How many values there are, by a division that fails where the step is zero."""
        is_none = Call("not", (self.is_within(self.start),), BOOLEAN)
        is_moving = self.call("<>", self.step, self._zero)
        if self.step.type == BIGINT:
            length, step = self.call("-", self.stop, self.start), self.step
        else:
            assert isinstance(self.step, Literal)
            length, step = self.call("date_diff microsecond", self.start, self.stop), Literal(self.step.value, BIGINT)
        whole = self.call("/", length, step)
        if not self.includes_stop:
            is_exact = self.call("=", self.call("*", whole, step), length)
            whole = self.call("-", whole, Case(((is_exact, _number(1)),), _number(0), BIGINT))
        return fold(
            Case(
                ((Call("and", (is_moving, is_none), BOOLEAN), _number(0)),),
                self.call("+", whole, _number(1)),
                BIGINT,
            )
        )

    @property
    def _zero(self) -> Literal:
        return Literal(0, self.step.type)


def is_table_function(node: Any) -> bool:
    """Whether an entry of FROM, with LATERAL before it or not, is a function."""
    return isinstance(node, exp.Table | exp.Lateral) and isinstance(node.this, exp.Func)


def bind_table_function(binding: Binding, node: Any, level: QueryLevel) -> tuple[LogicalNode, Column, str]:
    """The rows of a function in FROM, their column, and the function's name."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if name not in TABLE_FUNCTIONS:
        raise parsing_error(
            "this function gives no rows",
            span=place_of(node),
            suggestion=f"Functions in FROM are {' and '.join(TABLE_FUNCTIONS)}.",
        )
    subqueries: list[Subquery] = []
    series = _bind_series(binding, node, name, level, subqueries)
    if subqueries:
        tree, column = _beside_arguments(binding, series, subqueries)
        return tree, column, name
    written = _written_out(series)
    if written is not None:
        column = binding.new_column(name, series.start.type, nullable=False)
        rows = tuple((Literal(value, column.type),) for value in written)
        return logical.Values((column,), rows), column, name
    tree, column = _computed(binding, series)
    return tree, column, name


def _computed(binding: Binding, series: _Series) -> tuple[LogicalNode, Column]:
    of_months = series.step.type.kind is Kind.INTERVAL_MONTHS
    return _added_up(binding, series) if of_months else _numbered(binding, series)


def _beside_arguments(binding: Binding, series: _Series, subqueries: Sequence[Subquery]) -> tuple[LogicalNode, Column]:
    """Arguments that are sub-queries are computed first, in a row; the series is one for that row."""
    parts = {part: binding.new_column("argument", part.type) for part in (series.start, series.stop, series.step)}
    given = {part: column for part, column in parts.items() if not isinstance(part, Literal)}
    row = attach(one_row(binding, joined=True), subqueries)
    arguments = logical.Project(row, tuple(Assignment(column, part) for part, column in given.items()))

    def outside(part: Expression) -> Expression:
        return replace(given[part], outer=True) if part in given else part

    over = replace(series, start=outside(series.start), stop=outside(series.stop), step=outside(series.step))
    tree, column = _computed(binding, over)
    return logical.Apply(JoinKind.INNER, arguments, tree), column


def _bind_series(binding: Binding, node: Any, name: str, level: QueryLevel, subqueries: list[Subquery]) -> _Series:
    span = place_of(node)
    nodes = list(node.expressions)
    least = 2 if name == "generate_series" else 1
    if not least <= len(nodes) <= 3:
        takes = "(start, stop [, step])" if least == 2 else "(stop) or (start, stop [, step])"
        raise parsing_error(f"{name} takes {takes}", span=span)
    binder = ExpressionBinder(binding, Scope((), level), clause=f"the arguments of {name}", subqueries=subqueries)
    bound = [binder.bind(part, _hint(nodes)) for part in nodes]
    if len(bound) == 1:
        bound.insert(0, _number(0))
    start, stop = bound[:2]
    step = bound[2] if len(bound) == 3 else None
    types = [part.type for part in bound]
    if all(type_.is_integer or type_ == NULL for type_ in types):
        first, last, by = (fold(coerce(part, BIGINT)) for part in (start, stop, step or _number(1)))
        series = _Series(first, last, by, name == "generate_series", span)
    else:
        series = _series_of_moments(start, stop, step, name, span)
    if isinstance(series.step, Literal) and series.step.value == 0:
        raise parsing_error(f"the step of {name} is zero", span=place_of(nodes[-1]))
    return series


def _hint(nodes: list[Any]) -> SqlType:
    """What a bare parameter is: a moment where the step is an INTERVAL."""
    return TIMESTAMP if len(nodes) == 3 and isinstance(nodes[2], exp.Interval) else BIGINT


def _series_of_moments(
    start: Expression, stop: Expression, step: Expression | None, name: str, span: Span | None
) -> _Series:
    given = [part.type for part in (start, stop) if part.type != NULL]
    if any(type_ not in {DATE, TIMESTAMP, TIMESTAMP_TZ} for type_ in given) or (step and not step.type.is_interval):
        types = ", ".join(str(part.type) for part in (start, stop, step) if part is not None)
        raise parsing_error(f"{name} does not take ({types})", span=span)
    if not isinstance(step, Literal) or step.value is None:
        raise parsing_error(f"{name} of moments needs a step that is an INTERVAL written here", span=span)
    type_ = TIMESTAMP_TZ if TIMESTAMP_TZ in given else TIMESTAMP
    first, last = fold(coerce(start, type_)), fold(coerce(stop, type_))
    return _Series(first, last, step, name == "generate_series", span)


def _written_out(series: _Series) -> range | None:
    """The values, where they are few and known."""
    parts = (series.start, series.stop, series.step)
    if not all(isinstance(part, Literal) for part in parts) or series.step.type.kind is Kind.INTERVAL_MONTHS:
        return None
    start, stop, step = (part.value for part in parts if isinstance(part, Literal))
    if None in (start, stop, step):
        return range(0)
    beyond = stop + (1 if step > 0 else -1) if series.includes_stop else stop
    values = range(start, beyond, step)
    return values if len(values) <= WRITTEN_OUT else None


def _numbered(binding: Binding, series: _Series) -> tuple[LogicalNode, Column]:
    """The numbers from 1 to the count, and the value that each stands for."""
    count = series.count()
    first = binding.new_column("number", BIGINT, nullable=False)
    begin = logical.Filter(one_row(binding, joined=True), series.call(">=", count, _number(1)))
    table = _next_table(binding)
    above = binding.new_column("number", BIGINT)
    bit = binding.new_column("bit", BIGINT, nullable=False)
    bits = logical.Values((bit,), ((_number(0),), (_number(1),)))
    below = series.call("+", series.call("*", above, _number(2)), bit)
    pairs = logical.Join(JoinKind.INNER, logical.WorkingTable(table, (above,)), bits)
    following = binding.new_column("number", BIGINT)
    step = logical.Project(logical.Filter(pairs, series.call("<=", below, count)), (Assignment(following, below),))
    number = binding.new_column("number", BIGINT)
    numbers = logical.Recursive(
        (logical.Project(begin, (Assignment(first, _number(1)),)), step),
        (number,),
        ((first,), (following,)),
        table,
        distinct=False,
    )
    value = series.value(series.call("-", number, _number(1)))
    column = binding.new_column("value", series.start.type)
    return logical.Project(numbers, (Assignment(column, value),)), column


def _added_up(binding: Binding, series: _Series) -> tuple[LogicalNode, Column]:
    """Each value from the one before it."""
    type_ = series.start.type
    first, before, after, value = (binding.new_column("value", type_) for _ in range(4))
    begin = logical.Filter(one_row(binding, joined=True), series.is_within(series.start))
    table = _next_table(binding)
    moved = series.call("+", before, series.step)
    step = logical.Filter(logical.WorkingTable(table, (before,)), series.is_within(moved))
    tree = logical.Recursive(
        (
            logical.Project(begin, (Assignment(first, series.start),)),
            logical.Project(step, (Assignment(after, moved),)),
        ),
        (value,),
        ((first,), (after,)),
        table,
        distinct=False,
    )
    return tree, value


def _next_table(binding: Binding) -> int:
    binding.tables += 1
    return binding.tables


def _number(value: int) -> Literal:
    return Literal(value, BIGINT)
