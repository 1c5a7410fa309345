"""Comparisons of rows: `(a, b) > (1, 2)`, decided by the first pair of values that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.catalog.definitions import GENERATED_KEY
from remuda.expr import Call, Expression, conjuncts, is_constant
from remuda.sql.bind.expression.exact_comparison import compare
from remuda.sql.bind.scope import table_of
from remuda.sql.parse.spans import span_of
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.errors import Span
    from remuda.expr import Column
    from remuda.sql.bind.scope import Scope

LONGEST_OR = 100
"""Rows of IN (...) that become an OR of their comparisons. More are joined as those of VALUES are: of an OR each row of
a map is compared with every part, where none of its columns is looked up by."""

_OR_EQUAL = {"<": "<=", "<=": "<=", ">": ">=", ">=": ">="}


def is_row(node: Any) -> bool:
    """Test whether a node is `(a, b)` or `ROW(a, b)`; its values are the node's `expressions`."""
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() == "ROW"
    return (named or isinstance(node, exp.Tuple)) and bool(node.expressions)


def key_row(scope: Scope, node: Any) -> tuple[Column, ...] | None:
    """Return the columns of `__key` where a key has several; None for any other node."""
    if not isinstance(node, exp.Column) or node.name.casefold() != GENERATED_KEY:
        return None
    if scope.has(node.name) or not any(relation.key for relation in scope.relations):
        return None
    key = scope.key(table_of(node), span_of(node))
    return key if len(key) > 1 else None


def compare_rows(operator: str, pairs: Sequence[tuple[Expression, Expression]], span: Span | None) -> Expression:
    """Compare rows pair by pair, with NULLs as the standard has them.

    `(a, b) > (1, 2)` is `a >= 1 AND (a > 1 OR b > 2)`: what `a > 1 OR (a = 1 AND b > 2)` says, for NULLs too, with a
    condition in front that an index can be asked for. `b` is evaluated only where `a` does not decide.
    """
    if operator in _OR_EQUAL:
        return _compare_in_order(operator, pairs, span)
    parts = tuple(compare(operator, *pair, span) for pair in pairs)
    if len(parts) == 1:
        return parts[0]
    return Call("and" if operator == "=" else "or", parts, BOOLEAN)


def equal_rows(
    comparisons: Sequence[Expression],
) -> tuple[tuple[Expression, ...], tuple[tuple[Expression, ...], ...]] | None:
    """Return what the rows of `(a, b) IN ((1, 2), (3, 4))` are compared with, and the rows, each once.

    None where a value is not constant or not of the type of the others in its place: `a = 1` and `CAST(a AS DOUBLE) =
    0.1` compare different values of the row.
    """
    rows = [conjuncts(comparison) for comparison in comparisons]
    equalities = [part for row in rows for part in row if isinstance(part, Call) and part.function == "="]
    if len({len(row) for row in rows}) > 1 or len(equalities) < len(rows) * len(rows[0]):
        return None
    width = len(rows[0])
    operands = tuple(part.arguments[0] for part in equalities[:width])
    values = [part.arguments[1] for part in equalities]
    are_alike = all(part.arguments[0] == operands[ordinal % width] for ordinal, part in enumerate(equalities))
    if not are_alike or not all(map(is_constant, values)):
        return None
    return operands, tuple(dict.fromkeys(zip(*(values[place::width] for place in range(width)), strict=True)))


def _compare_in_order(operator: str, pairs: Sequence[tuple[Expression, Expression]], span: Span | None) -> Expression:
    first, *others = pairs
    if not others:
        return compare(operator, *first, span)
    not_before = compare(_OR_EQUAL[operator], *first, span)
    beyond = compare(operator[0], *first, span)
    rest = _compare_in_order(operator, others, span)
    return Call("and", (not_before, Call("or", (beyond, rest), BOOLEAN)), BOOLEAN)
