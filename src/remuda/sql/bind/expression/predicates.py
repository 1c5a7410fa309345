"""Binding of comparisons, AND, OR, NOT, IS, IN, BETWEEN and CASE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.catalog.definitions import GENERATED_KEY
from remuda.errors import parsing_error, type_error
from remuda.expr import Call, Case, Column, Expression, Literal, coerce
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.bind.expression.exact_comparison import compare
from remuda.sql.bind.expression.lists import (
    bind_items,
    bind_quantified_list,
    combined,
    has_list,
    quantified_parameter,
)
from remuda.sql.bind.expression.literals import is_untyped_text
from remuda.sql.bind.expression.row_comparison import LONGEST_OR, compare_rows, equal_rows, is_row, key_row
from remuda.sql.bind.expression.subqueries import bind_in_query, bind_in_rows, bind_quantified, bind_row_query
from remuda.sql.bind.scope import table_of
from remuda.sql.parse.spans import refuse_unknown_parts, span_of, unsupported
from remuda.types import BOOLEAN, VARCHAR, SqlType, common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.bind.expression.expression import ExpressionBinder

# Binding of what matches text: LIKE, ILIKE, with ESCAPE, SIMILAR TO, and the regular expressions of `~`.


_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.SimilarTo: "similar to",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
}


def _bind_match(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return _matched(self, node, self.bind(node.expression, VARCHAR))


def _bind_escape(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Rewrite the pattern with the escape character that LIKE has without an ESCAPE clause."""
    inner = node.this
    if not isinstance(inner, exp.Like | exp.ILike | exp.SimilarTo):
        raise unsupported(node, "ESCAPE here")
    written = [self.bind(inner.expression, VARCHAR), self.bind(node.expression, VARCHAR)]
    return _matched(self, inner, self.call("like pattern", node, *written))


def _matched(self: ExpressionBinder, node: Any, pattern: Expression) -> Expression:
    matched = self.call(_OPERATORS[type(node)], node, self.bind(node.this, VARCHAR), pattern)
    return Call("not", (matched,), BOOLEAN) if node.args.get("negate") else matched


COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def _bind_comparison(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    operator = COMPARISONS[type(node)]
    quantified = quantified_parameter(node.expression)
    if quantified is not None:
        return bind_quantified_list(self, node, operator, quantified)
    if isinstance(node.expression, exp.Any | exp.All):
        return bind_quantified(self, node, operator)
    if is_row(node.this) and isinstance(node.expression, exp.Subquery):
        return bind_row_query(self, node, operator)
    if is_row(node.this) or is_row(node.expression):
        return compare_rows(operator, _bind_row_pairs(self, node, node.this, node.expression), span_of(node))
    left, right = self.bind_pair(node.this, node.expression)
    return compare(operator, left, right, span_of(node))


def _bind_row_pairs(self: ExpressionBinder, node: Any, left: Any, right: Any) -> list[tuple[Expression, Expression]]:
    """Bind the values of two rows that are compared, pair by pair; `__key` is the row of all key columns."""
    sides = (_row_parts(self, left), _row_parts(self, right))
    if len(sides[0]) != len(sides[1]):
        raise type_error("rows are compared with rows of the same length", span=span_of(node))
    return [_bind_row_pair(self, *pair) for pair in zip(*sides, strict=True)]


def _bind_row_pair(self: ExpressionBinder, left: Any, right: Any) -> tuple[Expression, Expression]:
    """Bind a pair of values; a key column is bound already."""
    if isinstance(left, Column):
        return left, right if isinstance(right, Column) else self.bind(right, left.type)
    return (self.bind(left, right.type), right) if isinstance(right, Column) else self.bind_pair(left, right)


def _row_parts(self: ExpressionBinder, node: Any) -> list[Any]:
    """Return the values of a row as written, or the bound key columns where it is `__key`."""
    if isinstance(node, exp.Column) and node.name.casefold() == GENERATED_KEY:
        refuse_unknown_parts(node, frozenset({"this", "table", "db"}))
        return list(self.scope.key(table_of(node), span_of(node)))
    if not is_row(node):
        raise type_error("a row can be compared only with a row", span=span_of(node))
    return list(node.expressions)


def _bind_logic(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind a chain of one connector as one call: sqlglot nests it to the left, as deep as it is long."""
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
    if node.args.get("query") is not None:
        return bind_in_query(self, node, node.args["query"])
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        return bind_in_query(self, node, node.expressions[0])
    if is_row(node.this) or key_row(self.scope, node.this) is not None:
        return _bind_row_in(self, node)
    if not node.expressions:
        raise parsing_error("IN needs at least one value", span=span_of(node))
    span = span_of(node)
    if has_list(self, node.expressions):
        operand = self.bind(node.this)
        values = bind_items(self, operand, node.expressions)
    else:
        operand, *values = _bind_beside(self, node.this, node.expressions)
    equalities = [compare("=", operand, value, span) for value in values]
    plain = all(isinstance(part, Call) and part.arguments[0] == operand for part in equalities)
    if plain and len(equalities) > 1:
        # Every value already has the column's type: the list stays a list.
        candidates = tuple(part.arguments[1] for part in equalities if isinstance(part, Call))
        return Call("in", (operand, *dict.fromkeys(candidates)), BOOLEAN, span)
    return combined(equalities, "or")


def _bind_beside(self: ExpressionBinder, operand: Any, values: Sequence[Any]) -> list[Expression]:
    """Bind an operand and the values that it is compared with; a text as the operand has their type."""
    if is_untyped_text(operand) and not all(
        is_untyped_text(value) or isinstance(value, exp.Placeholder) for value in values
    ):
        return self.bind_alike([operand, *values])
    bound = self.bind(operand)
    return [bound, *(self.bind(value, bound.type) for value in values)]


def _bind_row_in(self: ExpressionBinder, node: Any) -> Expression:
    """Bind `(a, b) IN ((1, 2), (3, 4))`."""
    choices: list[Expression] = []
    operand = _row_parts(self, node.this)
    for row in node.expressions:
        written = row.expressions if is_row(row) else [row]
        if len(written) != len(operand):
            message = f"rows of {len(operand)} values are expected, this one has {len(written)}"
            raise parsing_error(message, span=span_of(row))
        pairs = [_bind_row_pair(self, *pair) for pair in zip(operand, written, strict=True)]
        choices.append(compare_rows("=", pairs, span_of(row)))
    if len(choices) > LONGEST_OR and self.clause == "WHERE":
        compared = equal_rows(choices)
        if compared is not None:
            return bind_in_rows(self, *compared, span_of(node))
    return choices[0] if len(choices) == 1 else Call("or", tuple(choices), BOOLEAN)


def _bind_between(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if is_row(node.this):
        return _bind_row_between(self, node)
    operand, low, high = _bind_beside(self, node.this, [node.args["low"], node.args["high"]])
    span = span_of(node)
    between = Call("and", (compare(">=", operand, low, span), compare("<=", operand, high, span)), BOOLEAN)
    if not node.args.get("symmetric"):
        return between
    turned = Call("and", (compare(">=", operand, high, span), compare("<=", operand, low, span)), BOOLEAN)
    return Call("or", (between, turned), BOOLEAN)


def _bind_row_between(self: ExpressionBinder, node: Any) -> Expression:
    """Bind `(a, b) BETWEEN (1, 2) AND (3, 4)`."""
    low, high = (_bind_row_pairs(self, node, node.this, node.args[side]) for side in ("low", "high"))
    span = span_of(node)
    between = Call("and", (compare_rows(">=", low, span), compare_rows("<=", high, span)), BOOLEAN)
    if not node.args.get("symmetric"):
        return between
    turned = Call("and", (compare_rows(">=", high, span), compare_rows("<=", low, span)), BOOLEAN)
    return Call("or", (between, turned), BOOLEAN)


def _bind_case(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    subject = node.this
    conditions: list[Expression] = []
    for branch in node.args["ifs"]:
        if subject is None:
            conditions.append(self.bind_condition(branch.this))
        else:
            conditions.append(compare("=", *self.bind_pair(subject, branch.this), span_of(branch)))
    results = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    *values, otherwise = self.bind_alike([*results, exp.Null() if default is None else default], expected)
    branches = list(zip(conditions, values, strict=True))
    shared: SqlType | None = otherwise.type
    for _, value in branches:
        shared = None if shared is None else common_type(shared, value.type)
    if shared is None:
        raise type_error("the branches of CASE have different types", span=span_of(node))
    return Case(tuple((when, coerce(then, shared)) for when, then in branches), coerce(otherwise, shared), shared)


def _bind_distinct(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    negated = isinstance(node, exp.NullSafeEQ)
    if is_row(node.this) or is_row(node.expression):
        pairs = _bind_row_pairs(self, node, node.this, node.expression)
        parts = tuple(_distinct(self, node, *pair, negated=negated) for pair in pairs)
        return Call("and" if negated else "or", parts, BOOLEAN)
    return _distinct(self, node, *self.bind_pair(node.this, node.expression), negated=negated)


def _distinct(self: ExpressionBinder, node: Any, left: Expression, right: Expression, *, negated: bool) -> Expression:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal) and one.value is None:
            return Call("is null" if negated else "is not null", (other,), BOOLEAN)
    return self.call("is not distinct from" if negated else "is distinct from", node, left, right)


NODES: Binders = {
    **dict.fromkeys(COMPARISONS, _bind_comparison),
    exp.And: _bind_logic,
    exp.Or: _bind_logic,
    exp.Not: _bind_not,
    exp.Is: _bind_is,
    exp.In: _bind_in,
    exp.Between: _bind_between,
    exp.Case: _bind_case,
    exp.NullSafeEQ: _bind_distinct,
    exp.NullSafeNEQ: _bind_distinct,
    **dict.fromkeys(_OPERATORS, _bind_match),
    exp.Escape: _bind_escape,
}
PARTS: Parts = {
    exp.In: COMMON_PARTS | {"query"},
    exp.Is: COMMON_PARTS | {"negate"},
    exp.Between: COMMON_PARTS | {"low", "high", "symmetric"},
    exp.Case: COMMON_PARTS | {"ifs", "default"},
    **dict.fromkeys(_OPERATORS, COMMON_PARTS | {"negate"}),
}
