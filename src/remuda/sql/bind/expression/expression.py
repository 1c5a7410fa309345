"""Binding of scalar expressions: one small function for each kind of node that sqlglot gives, in one table."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, UntypedParametersError, not_supported, parsing_error, type_error, unknown_function
from remuda.expr import FUNCTIONS, Expression, Function, Parameter, call, coerce, hints_of
from remuda.sql.bind import grouping
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.bind.expression import arithmetic, casts, literals, predicates, subqueries
from remuda.sql.bind.functions import aggregate_binding, functions, window_calls
from remuda.sql.bind.scope import table_of
from remuda.sql.parse.spans import readable, refuse_unknown_parts, span_of, unsupported
from remuda.types import BOOLEAN, NULL, VARCHAR, Kind, SqlType, common_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.errors import Span
    from remuda.expr import Column
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.expression.subqueries import Subquery
    from remuda.sql.bind.functions.aggregate_binding import PendingCall
    from remuda.sql.bind.functions.window_calls import PendingWindow
    from remuda.sql.bind.grouping import PendingGrouping
    from remuda.sql.bind.scope import Scope


@dataclass(frozen=True, slots=True)
class Alias:
    """An expression of the select list that other clauses may name, and the aliases that it may name itself."""

    node: Any
    before: dict[str, Alias]


@dataclass(slots=True)
class ExpressionBinder:
    """Binds expressions against a scope.

    Aggregates, windows, GROUPING() and sub-queries are collected, each in its list: computing them is the work of
    operators below the one that evaluates the expression. Where a list is absent, there they are not allowed.
    """

    binding: BindContext
    scope: Scope
    calls: list[PendingCall] | None = None
    clause: str = "this clause"
    inside_aggregate: bool = False
    windows: list[PendingWindow] | None = None
    groupings: list[PendingGrouping] | None = None
    subqueries: list[Subquery] | None = None
    named_windows: dict[str, Any] = field(default_factory=dict)
    """What WINDOW has named, by folded name."""
    volatile: dict[int, Column] = field(default_factory=dict)
    """The columns that stand for calls of random(), by the identity of the node."""
    aliases: dict[str, Alias] = field(default_factory=dict)
    """What the select list has named, by folded name: what a name means that no column has, here or around."""

    def bind(self, node: exp.Expression, expected: SqlType | None = None) -> Expression:
        """Bind an expression; `expected` is the type that a bare parameter takes."""
        bind_node = _NODES.get(type(node))
        if bind_node is None:
            raise unsupported(node, readable(node))
        refuse_unknown_parts(node, _PARTS.get(type(node), COMMON_PARTS))
        return self.binding.folding.fold(bind_node(self, node, expected))

    def bind_condition(self, node: exp.Expression) -> Expression:
        bound = self.bind(node, BOOLEAN)
        if bound.type.kind not in {Kind.BOOLEAN, Kind.NULL}:
            raise type_error(f"a condition must be BOOLEAN, this is {bound.type}", span=span_of(node))
        return coerce(bound, BOOLEAN)

    def bind_pair(self, first: exp.Expression, second: exp.Expression) -> tuple[Expression, Expression]:
        """Bind two expressions, each of which may give a bare parameter or a text on the other side its type."""
        is_told = literals.is_untyped_text(first) and not isinstance(second, exp.Placeholder)
        if is_told or isinstance(first, exp.Placeholder):
            right = self.bind(second)
            return self.bind(first, right.type), right
        left = self.bind(first)
        return left, self.bind(second, left.type)

    def bind_alike(self, nodes: Sequence[Any], expected: SqlType | None = None) -> list[Expression]:
        """Expressions that become one type: a text takes the type that the others share, as in PostgreSQL.

        `expected` is the type of a bare parameter, and of a text where all are texts.
        """
        typed = [None if literals.is_untyped_text(node) else self.bind(node, expected) for node in nodes]
        wanted = _shared_type([value for value in typed if value is not None]) or expected
        return [self.bind(node, wanted) if value is None else value for node, value in zip(nodes, typed, strict=True)]

    def refuse_untyped(self, arguments: Sequence[Expression]) -> None:
        for argument in arguments:
            if isinstance(argument, Parameter) and argument.type.kind is Kind.NULL:
                raise untyped(self.binding.parameters.spans[argument.index])

    def call(self, name: str, node: exp.Expression, *arguments: Expression) -> Expression:
        bound = call(name, *arguments, span=span_of(node))
        if bound is None:
            self.refuse_untyped(arguments)
            registered, name = name, FUNCTIONS[name].symbol or name
            types = ", ".join(str(argument.type) for argument in arguments)
            hint = _what_it_takes(FUNCTIONS[registered], arguments)
            raise unknown_function(f"{name} does not take ({types})", span=span_of(node), suggestion=hint)
        return bound

    def call_with(
        self, name: str, node: exp.Expression, written: Iterable[Any], expected: SqlType | None = None
    ) -> Expression:
        """Bind a call of the registry's function and its arguments.

        `expected` is the type of the result, and so of a bare parameter, where the arguments have the result's type.
        """
        function = FUNCTIONS[name]
        hints = hints_of(function)
        if function.keeps_type and expected is not None and expected.is_numeric:
            hints = (expected,)
        nodes = list(written)
        if hints:
            arguments = [self.bind(each, hints[min(ordinal, len(hints) - 1)]) for ordinal, each in enumerate(nodes)]
            return self.call(name, node, *arguments)
        if name in _OF_ANY_TYPES:
            return self.call(name, node, *(self.bind(each) for each in nodes))
        bound: dict[int, Expression] = {}
        first = expected
        for ordinal, each in enumerate(nodes):
            if not literals.is_untyped_text(each):
                bound[ordinal] = self.bind(each, first)
                first = next(iter(bound.values())).type
        shared = _shared_type(list(bound.values())) or first
        return self.call(
            name, node, *(bound.get(ordinal) or self.bind(each, shared) for ordinal, each in enumerate(nodes))
        )


def _what_it_takes(function: Function, arguments: Sequence[Expression]) -> str | None:
    """Say what the arguments should be, where that is known."""
    types = [argument.type for argument in arguments]
    if (
        function.name in {"+", "-"}
        and len(types) == 2
        and types[0].is_temporal
        and types[1].is_numeric
        and not types[0].is_interval
    ):
        return f"Use an INTERVAL: {function.name} INTERVAL '1' DAY."
    if function.name == "+" and VARCHAR in types:
        return "Texts are joined by ||."
    hints = hints_of(function)
    is_of_text = bool(hints) and hints[0] == VARCHAR and function.symbol != "AT TIME ZONE"
    if is_of_text and 0 < len(types) <= len(hints) and types[0] not in {VARCHAR, NULL}:
        return "Its first argument is a text: use CAST(... AS VARCHAR)."
    return f"It takes ({', '.join(map(str, hints))})." if hints and function.symbol is None else None


_OF_ANY_TYPES = frozenset({"xxhash64"})
"""Functions whose arguments have nothing to do with each other."""


def _shared_type(values: Sequence[Expression]) -> SqlType | None:
    """Return the common type of values; None where there is none, or where all are NULL."""
    shared: SqlType | None = NULL
    for value in values:
        shared = None if shared is None else common_type(shared, value.type)
    return None if shared == NULL else shared


def untyped(span: Span) -> UntypedParametersError:
    return UntypedParametersError(
        ErrorCode.PARSING,
        "the type of this parameter cannot be told",
        span=span,
        suggestion="Use CAST(? AS type).",
    )


def _bind_column(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if isinstance(node.this, exp.Star):
        raise parsing_error("* is not a value here", span=span_of(node))
    span = span_of(node)
    alias = None if node.table else self.aliases.get(node.name.casefold())
    if alias is not None and self.scope.find(node.name, None, span) is None:
        return _bind_alias(self, alias, node)
    quoted = node.this.args.get("quoted") and not node.table
    is_text = quoted or (not node.table and _stands_for_value(node))
    text = node.name.strip("\u2018\u2019\u201c\u201d")  # quotes of word processors
    hint = f"Text is written in single quotes: '{text}'." if is_text else None
    column = self.scope.resolve(node.name, table_of(node), span, hint)
    if span is not None:
        self.binding.spans[column.id] = span
    return column


def _stands_for_value(node: Any) -> bool:
    """Test whether a name stands where a value is likely: `customer = C1`, `IN (A, B)`, `VALUES (1, x)`."""
    parent = node.parent
    if isinstance(parent, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Like | exp.ILike):
        return parent.expression is node and isinstance(parent.this, exp.Column)
    return isinstance(parent, exp.Tuple | exp.In) and parent.this is not node


def _bind_alias(self: ExpressionBinder, alias: Alias, node: Any) -> Expression:
    """Bind an alias as if its expression were written here.

    It sees the aliases before its own: `x + 1 AS x` does not name itself.
    """
    aliases, self.aliases = self.aliases, alias.before
    known = len(self.subqueries or ())
    try:
        bound = self.bind(alias.node)
    finally:
        self.aliases = aliases
    if any(subquery.volatile is not None for subquery in (self.subqueries or [])[known:]):
        message = f"{node.name} has another value each time: name it in a query around this one"
        raise not_supported(message, span=span_of(node))
    return bound


def _bind_placeholder(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    return self.binding.parameter(str(node.this), expected)


def _refuse_parameter(_self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Refuse `$1` and `@name`."""
    raise parsing_error("a parameter is written ? or :name", span=span_of(node))


def _bind_parentheses(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    return self.bind(node.this, expected)


_MODULES = (literals, arithmetic, predicates, casts, functions, aggregate_binding, grouping, window_calls, subqueries)

_PARTS: Parts = {
    exp.Column: frozenset({"this", "table", "db"}),
    **{node: parts for module in _MODULES for node, parts in module.PARTS.items()},
}
_NODES: Binders = {
    exp.Column: _bind_column,
    exp.Placeholder: _bind_placeholder,
    exp.Parameter: _refuse_parameter,
    exp.Paren: _bind_parentheses,
    **{node: bind for module in _MODULES for node, bind in module.NODES.items()},
}
