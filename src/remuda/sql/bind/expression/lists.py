"""Lists as values of parameters: `x IN (?)`, `x = ANY(?)`, `x <> ALL(?)`.

Each item becomes a literal, so that it is compared exactly, prunes partitions and is bound to an index as a written one
would be. The plan is for these values alone: it is made for each call, and not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import kind_of, not_supported, type_error
from remuda.expr import Call, Literal
from remuda.sql.bind.bind_context import literal_of
from remuda.sql.bind.expression.exact_comparison import adapt_literal, compare
from remuda.sql.parse.spans import span_of
from remuda.types import BOOLEAN, VARCHAR, is_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.errors import Span
    from remuda.expr import Expression
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

_NOT_GIVEN = object()


def bind_items(self: ExpressionBinder, operand: Expression, nodes: Iterable[Any]) -> list[Expression]:
    """Bind the values of IN (...); a parameter whose value is a list stands for its items."""
    bound: list[Expression] = []
    for node in nodes:
        items = items_of(_given(self, node))
        bound += [self.bind(node, operand.type)] if items is None else _literals(items, operand.type, span_of(node))
    return bound


def has_list(self: ExpressionBinder, nodes: Iterable[Any]) -> bool:
    return any(items_of(_given(self, node)) is not None for node in nodes)


def quantified_parameter(node: Any) -> tuple[str, Any] | None:
    """Return the word and the parameter of `ANY(?)` or `ALL(?)`; None for a sub-query and any other node."""
    is_call = isinstance(node, exp.Anonymous) and str(node.this).upper() == "ALL" and len(node.expressions) == 1
    if is_call:
        word, inner = "ALL", node.expressions[0]  # so sqlglot reads it
    elif isinstance(node, exp.Any | exp.All):
        word, inner = ("ALL" if isinstance(node, exp.All) else "ANY"), node.this
    else:
        return None
    parameter = inner.unnest()
    if isinstance(parameter, exp.Placeholder):
        return word, parameter
    if is_call or isinstance(inner, exp.Paren):
        raise not_supported(
            f"{word} takes a sub-query, or a parameter whose value is a list",
            span=span_of(inner),
            suggestion=f"Give the list as a parameter: {word}(?). IN (1, 2) is = ANY.",
        )
    return None


def bind_quantified_list(self: ExpressionBinder, node: Any, operator: str, quantified: tuple[str, Any]) -> Expression:
    """Bind `x < ANY(?)`, true if it holds for one item, or `x < ALL(?)`, true if it holds for each."""
    word, parameter = quantified
    value = _given(self, parameter)
    operand = self.bind(node.this)
    if value is _NOT_GIVEN:
        return Literal(None, BOOLEAN)  # the parameter has no type: the statement is bound again with its value
    items = items_of(value)
    if items is None:
        raise type_error(f"{word}(?) takes a list of values, not {kind_of(value)}", span=span_of(parameter))
    compared = [
        compare(operator, operand, item, span_of(node)) for item in _literals(items, operand.type, span_of(parameter))
    ]
    return combined(compared, "and" if word == "ALL" else "or")


def combined(conditions: list[Expression], operator: str) -> Expression:
    """Combine conditions by `and` or `or`; none of them is TRUE or FALSE."""
    if not conditions:
        return Literal(operator == "and", BOOLEAN)
    return conditions[0] if len(conditions) == 1 else Call(operator, tuple(conditions), BOOLEAN)


def items_of(value: object) -> list[Any] | None:
    """Return the items of a list, tuple, set, or one-dimensional array; None for any other value.

    >>> items_of((1, None)), items_of("ab")
    ([1, None], None)
    """
    if not is_list(value):
        return None
    items: Any = value.tolist() if hasattr(value, "tolist") else value
    return list(items)


def _given(self: ExpressionBinder, node: Any) -> object:
    if not isinstance(node, exp.Placeholder):
        return _NOT_GIVEN
    binding = self.binding
    return binding.values.get(binding.parameters.index_of(str(node.this)), _NOT_GIVEN)


def _literals(items: Iterable[Any], type_: SqlType, span: Span | None) -> list[Literal]:
    """Bind items as literals: a text is read as a value of the operand's type, as a parameter's text is."""
    return [
        adapt_literal(Literal(item, VARCHAR), type_, span) if isinstance(item, str) else literal_of(item, span)
        for item in items
    ]
