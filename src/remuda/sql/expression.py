"""Binding of scalar expressions: one small function for each kind of node that sqlglot gives, in one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.catalog.definitions import GENERATED_KEY
from remuda.errors import SqlError, nearest, parsing_error
from remuda.expr import (
    FUNCTIONS,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Parameter,
    call,
    can_cast,
    coerce,
    find_function,
    fold,
)
from remuda.plan.aggregates import AGGREGATES
from remuda.sql.aggregates import AGGREGATE_NODES, bind_aggregate
from remuda.sql.comparison import adapt_literal, compare
from remuda.sql.functions import FUNCTION_NODES, PARTS, SPECIAL_NODES, bind_function, bind_registered
from remuda.sql.intervals import bind_interval
from remuda.sql.places import place_of, readable, refuse_unknown_parts, unsupported
from remuda.sql.types import type_named
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL_TIME,
    NULL,
    TIMESTAMP,
    VARBINARY,
    VARCHAR,
    Kind,
    SqlType,
    common_type,
    to_stored,
    type_of_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.errors import Span
    from remuda.sql.binding import Binding, Scope

BINARY: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


@dataclass(slots=True)
class ExpressionBinder:
    """Binds expressions against a scope. Aggregates are collected in `calls` where they are allowed at all."""

    binding: Binding
    scope: Scope
    calls: list[tuple[str, Expression | None, bool, Column]] | None = None
    clause: str = "this clause"
    inside_aggregate: bool = field(default=False)

    def bind(self, node: exp.Expression, expected: SqlType | None = None) -> Expression:
        """`expected` is the type that a bare parameter takes in this place."""
        bind_node = _NODES.get(type(node))
        if bind_node is None:
            raise unsupported(node, readable(node))
        refuse_unknown_parts(node, _PARTS.get(type(node), _COMMON_PARTS))
        return fold(bind_node(self, node, expected))

    def bind_condition(self, node: exp.Expression) -> Expression:
        bound = self.bind(node, BOOLEAN)
        if bound.type.kind not in {Kind.BOOLEAN, Kind.NULL}:
            raise parsing_error(f"a condition must be BOOLEAN, this is {bound.type}", span=place_of(node))
        return coerce(bound, BOOLEAN)

    def bind_pair(self, first: exp.Expression, second: exp.Expression) -> tuple[Expression, Expression]:
        """Two expressions of which one may give a bare parameter on the other side its type."""
        if isinstance(first, exp.Placeholder):
            right = self.bind(second)
            return self.bind(first, right.type), right
        left = self.bind(first)
        return left, self.bind(second, left.type)

    def refuse_untyped(self, arguments: Sequence[Expression]) -> None:
        for argument in arguments:
            if isinstance(argument, Parameter) and argument.type.kind is Kind.NULL:
                raise untyped(self.binding.parameters.spans[argument.index])

    def call(self, name: str, node: exp.Expression, *arguments: Expression) -> Expression:
        bound = call(name, *arguments, span=place_of(node))
        if bound is None:
            self.refuse_untyped(arguments)
            name = FUNCTIONS[name].symbol or name
            types = ", ".join(str(argument.type) for argument in arguments)
            raise parsing_error(f"{name} does not take ({types})", span=place_of(node))
        return bound


def untyped(span: Span) -> SqlError:
    return parsing_error("the type of this parameter cannot be told", span=span, suggestion="Use CAST(? AS type).")


def _bind_column(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if isinstance(node.this, exp.Star):
        raise parsing_error("* is not a value here", span=place_of(node))
    span = place_of(node)
    column = self.scope.resolve(node.name, node.table or None, span)
    if span is not None:
        self.binding.places[column.id] = span
    return column


def _bind_literal(_: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    if node.is_string:
        literal = Literal(node.this, VARCHAR)
        return adapt_literal(literal, expected, place_of(node)) if expected is not None else literal
    try:
        return number_literal(node.this)
    except SqlError:
        raise parsing_error("a number has 38 digits at most", span=place_of(node)) from None
    except (ValueError, ArithmeticError):
        raise parsing_error(f"{node.this} is not a number", span=place_of(node)) from None


def number_literal(text: str) -> Literal:
    """
    >>> str(number_literal("7").type), str(number_literal("1.50").type), str(number_literal("1e3").type)
    ('INTEGER', 'DECIMAL(3, 2)', 'DOUBLE')
    """
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    if "." in text:
        value = Decimal(text)
        return Literal(value, type_of_value(value))
    whole = int(text)
    natural = INTEGER if abs(whole) < 2**31 else type_of_value(whole)
    return Literal(whole if natural.is_integer else Decimal(whole), natural)


def _bind_constant(_: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    return Literal(bool(node.this), BOOLEAN) if isinstance(node, exp.Boolean) else Literal(None, NULL)


def _bind_bytes(_: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    digits = str(node.this)
    if len(digits) % 2:
        raise parsing_error("bytes are written with two digits each", span=place_of(node))
    return Literal(bytes.fromhex(digits), VARBINARY)


def _bind_placeholder(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    return self.binding.parameter(str(node.this), expected)


def _bind_parentheses(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    return self.bind(node.this, expected)


def _bind_arithmetic(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if isinstance(node.this, exp.Placeholder):
        right = self.bind(node.expression)
        left = self.bind(node.this, _beside(right.type, node))
    else:
        left = self.bind(node.this)
        right = self.bind(node.expression, _beside(left.type, node))
    left, right = _adapt_number(left, right.type), _adapt_number(right, left.type)
    return self.call(BINARY[type(node)], node, left, right)


def _beside(other: SqlType, node: Any) -> SqlType:
    """The type of a parameter beside a value: mostly the same, but what is added to a moment is no moment."""
    if other.is_interval:
        return BIGINT if isinstance(node, exp.Mul) else TIMESTAMP
    if other.is_temporal and isinstance(node, exp.Add):
        return BIGINT if other.kind is Kind.DATE else INTERVAL_TIME
    return other


def _adapt_number(expression: Expression, other: SqlType) -> Expression:
    """In `amount * 1.5` the literal is a DOUBLE, as the column is; in `price * 2` it is a DECIMAL of one digit."""
    if not isinstance(expression, Literal) or expression.value is None or not expression.type.is_exact:
        return expression
    if other.is_floating:
        return Literal(to_stored(other, expression.value), other)
    if other.kind is Kind.DECIMAL and expression.type.is_integer:
        value = Decimal(expression.value)
        return Literal(value, type_of_value(value))
    return expression


def _bind_negation(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    operand = self.bind(node.this, expected)
    if isinstance(operand, Literal) and operand.type.is_numeric and operand.value is not None:
        opposite = operand.value.copy_negate() if isinstance(operand.value, Decimal) else -operand.value
        return Literal(opposite, operand.type)
    return self.call("negate", node, operand)


def _bind_comparison(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    operator = COMPARISONS[type(node)]
    if isinstance(node.expression, exp.Tuple):
        return _bind_row_comparison(self, node, operator)
    left, right = self.bind_pair(node.this, node.expression)
    return compare(operator, left, right, place_of(node))


def _bind_row_comparison(self: ExpressionBinder, node: Any, operator: str) -> Expression:
    """`(a, b) = (1, 2)` is `a = 1 AND b = 2`; `__key` is the row of all key columns."""
    sides = (_row_parts(self, node.this), _row_parts(self, node.expression))
    if operator != "=" or len(sides[0]) != len(sides[1]):
        raise parsing_error("rows are compared by = with rows of the same length", span=place_of(node))
    parts: list[Expression] = []
    for left, right in zip(*sides, strict=True):
        if isinstance(left, Column):
            parts.append(compare("=", left, self.bind(right, left.type), place_of(node)))
        else:
            parts.append(compare("=", *self.bind_pair(left, right), place_of(node)))
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN)


def _row_parts(self: ExpressionBinder, node: Any) -> list[Any]:
    """The parts of a row as written, or the bound key columns where it is `__key`."""
    if isinstance(node, exp.Column) and node.name.casefold() == GENERATED_KEY:
        return list(self.scope.key(node.table or None, place_of(node)))
    if not isinstance(node, exp.Tuple):
        raise parsing_error("a row can be compared only with a row", span=place_of(node))
    return list(node.expressions)


def _bind_logic(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """A chain of the same connector is one call: sqlglot nests it to the left, as deep as it is long."""
    kind, parts = type(node), []
    while isinstance(node, kind):
        parts.append(node.expression)
        node = node.this
    conditions = tuple(self.bind_condition(part) for part in reversed([*parts, node]))
    return Call("and" if kind is exp.And else "or", conditions, BOOLEAN)


def _bind_not(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Is):
        return _bind_is_test(self, inner, negated=not inner.args.get("negate"))
    return Call("not", (self.bind_condition(inner),), BOOLEAN)


def _bind_is(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return _bind_is_test(self, node, negated=bool(node.args.get("negate")))


def _bind_is_test(self: ExpressionBinder, node: Any, *, negated: bool) -> Expression:
    operand = self.bind(node.this)
    test = node.expression
    if isinstance(test, exp.Null):
        return Call("is not null" if negated else "is null", (operand,), BOOLEAN)
    if isinstance(test, exp.Boolean):
        name = f"is {'not ' if negated else ''}{'true' if test.this else 'false'}"
        return self.call(name, node, operand)
    raise unsupported(node, "this form of IS")


def _bind_in(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if isinstance(node.this, exp.Tuple):
        raise unsupported(node, "IN with rows")
    if not node.expressions:
        raise parsing_error("IN needs at least one value", span=place_of(node))
    operand = self.bind(node.this)
    span = place_of(node)
    values = [self.bind(value, operand.type) for value in node.expressions]
    equalities = [compare("=", operand, value, span) for value in values]
    plain = all(isinstance(part, Call) and part.arguments[0] == operand for part in equalities)
    if plain and len(equalities) > 1:
        # Every value already has the column's type: the list stays a list.
        candidates = tuple(part.arguments[1] for part in equalities if isinstance(part, Call))
        return Call("in", (operand, *dict.fromkeys(candidates)), BOOLEAN, span)
    return equalities[0] if len(equalities) == 1 else Call("or", tuple(equalities), BOOLEAN)


def _bind_between(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    operand = self.bind(node.this)
    low, high = self.bind(node.args["low"], operand.type), self.bind(node.args["high"], operand.type)
    span = place_of(node)
    between = Call("and", (compare(">=", operand, low, span), compare("<=", operand, high, span)), BOOLEAN)
    if not node.args.get("symmetric"):
        return between
    turned = Call("and", (compare(">=", operand, high, span), compare("<=", operand, low, span)), BOOLEAN)
    return Call("or", (between, turned), BOOLEAN)


def _bind_like(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    left, right = self.bind(node.this, VARCHAR), self.bind(node.expression, VARCHAR)
    matched = self.call(name, node, left, right)
    return Call("not", (matched,), BOOLEAN) if node.args.get("negate") else matched


def _bind_concatenation(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.call("||", node, self.bind(node.this, VARCHAR), self.bind(node.expression, VARCHAR))


def _bind_cast(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    target = _cast_target(node)
    operand = self.bind(node.this, target)
    span = place_of(node)
    if isinstance(operand, Literal) and operand.type == VARCHAR and target.is_temporal:
        return adapt_literal(operand, target, span)
    if not can_cast(operand.type, target):
        raise parsing_error(f"{operand.type} cannot be cast to {target}", span=span)
    cast = operand if operand.type == target else Cast(operand, target, span)
    if target == VARCHAR and node.to.expressions:
        return self.call("left", node, cast, Literal(int(node.to.expressions[0].name), BIGINT))
    return cast


def _cast_target(node: Any) -> SqlType:
    if isinstance(node.to, exp.Interval) or node.to.this == exp.DataType.Type.INTERVAL:
        raise unsupported(node, "CAST to INTERVAL")
    # PostgreSQL has no TINYINT: written in its dialect it would be a SMALLINT.
    is_tiny = node.to.this == exp.DataType.Type.TINYINT
    written = "TINYINT" if is_tiny else node.to.sql("postgres").upper()
    name, _, rest = written.partition("(")
    arguments = [part.strip() for part in rest.rstrip(")").split(",")] if rest else []
    if not all(argument.isdecimal() for argument in arguments):
        raise parsing_error(f"unknown type: {written}", span=place_of(node))
    return type_named(name.strip(), [int(argument) for argument in arguments], place_of(node))


def _bind_case(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    subject = node.this
    branches: list[tuple[Expression, Expression]] = []
    for branch in node.args["ifs"]:
        if subject is None:
            condition = self.bind_condition(branch.this)
        else:
            condition = compare("=", *self.bind_pair(subject, branch.this), place_of(branch))
        branches.append((condition, self.bind(branch.args["true"], expected)))
    default = node.args.get("default")
    otherwise = Literal(None, NULL) if default is None else self.bind(default, expected)
    shared: SqlType | None = otherwise.type
    for _, value in branches:
        shared = None if shared is None else common_type(shared, value.type)
    if shared is None:
        raise parsing_error("the branches of CASE have different types", span=place_of(node))
    return Case(tuple((when, coerce(then, shared)) for when, then in branches), coerce(otherwise, shared), shared)


def _bind_other_function(self: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    function = find_function(node.name)
    if function is not None and function.symbol is None and function.name.isidentifier():
        return bind_registered(self, function.name, node)
    known = [*(name for name in FUNCTIONS if name.isidentifier()), *AGGREGATES]
    raise parsing_error(f"unknown function: {node.name}", span=place_of(node), suggestion=nearest(node.name, known))


_COMMON_PARTS = frozenset({"this", "expression", "expressions"})
_PARTS: dict[type[exp.Expression], frozenset[str]] = {
    exp.Column: frozenset({"this", "table"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Is: _COMMON_PARTS | {"negate"},
    exp.Like: _COMMON_PARTS | {"negate"},
    exp.ILike: _COMMON_PARTS | {"negate"},
    exp.Between: _COMMON_PARTS | {"low", "high", "symmetric"},
    exp.Interval: _COMMON_PARTS | {"unit", "fraction_in_string"},
    **PARTS,
    exp.Div: _COMMON_PARTS | {"typed"},
    exp.DPipe: _COMMON_PARTS | {"safe"},
    exp.Cast: _COMMON_PARTS | {"to", "_type"},
    exp.Case: _COMMON_PARTS | {"ifs", "default"},
    exp.Count: _COMMON_PARTS | {"big_int"},
}
"""What a node may consist of; anything else that sqlglot found in the text would be lost if it were not refused."""

_NODES: dict[type[exp.Expression], Callable[[ExpressionBinder, Any, SqlType | None], Expression]] = {
    exp.Column: _bind_column,
    exp.Literal: _bind_literal,
    exp.Boolean: _bind_constant,
    exp.Null: _bind_constant,
    exp.HexString: _bind_bytes,
    exp.Placeholder: _bind_placeholder,
    exp.Paren: _bind_parentheses,
    exp.Neg: _bind_negation,
    exp.And: _bind_logic,
    exp.Or: _bind_logic,
    exp.Not: _bind_not,
    exp.Is: _bind_is,
    exp.In: _bind_in,
    exp.Between: _bind_between,
    exp.Like: _bind_like,
    exp.ILike: _bind_like,
    exp.DPipe: _bind_concatenation,
    exp.Cast: _bind_cast,
    exp.Case: _bind_case,
    exp.Anonymous: _bind_other_function,
    exp.Interval: bind_interval,
    **SPECIAL_NODES,
    **dict.fromkeys(BINARY, _bind_arithmetic),
    **dict.fromkeys(COMPARISONS, _bind_comparison),
    **dict.fromkeys(FUNCTION_NODES, bind_function),
    **dict.fromkeys(AGGREGATE_NODES, bind_aggregate),
}
