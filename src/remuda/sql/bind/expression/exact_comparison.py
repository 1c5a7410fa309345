"""Comparisons between types, kept exact: `int_col > 1.5` is `int_col > 1`, `int_col = 1.5` is never true.

A DECIMAL is an integer of units of its last digit: `price > 9.755` of a DECIMAL(10, 2) is `price > 9.75`.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import Any

from remuda.errors import Span, SqlError, moment_error, shown, text_error, type_error
from remuda.expr import Call, Case, Cast, Expression, Literal, call, evaluate_constant, is_constant
from remuda.expr.column_comparison import MIRRORED
from remuda.expr.constant import FALSE, TRUE
from remuda.types import (
    BOOLEAN,
    INTEGER_RANGES,
    INTERVAL_TIME,
    MAXIMUM_PRECISION,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
    to_stored,
    type_of_value,
    written_form,
)


def compare(operator: str, left: Expression, right: Expression, span: Span | None) -> Expression:
    """Brings both sides to one type without changing what the comparison means."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right, operator = right, left, MIRRORED[operator]
    if isinstance(right, Literal) and right.value is not None:
        right = adapt_literal(right, left.type, span)
        if left.type.is_integer and right.type.is_numeric and not right.type.is_integer:
            return _compare_integer(operator, left, right.value, span)
        if left.type.is_integer and right.type.is_integer:
            return _within_range(operator, left, right.value, span)
        if left.type.kind is Kind.DECIMAL and right.type.is_exact:
            return _compare_decimal(operator, left, right.value, span)
        if left.type.is_floating and right.type.is_exact:
            return _compare_floating(operator, left, right.value, span)
        if left.type == right.type == VARCHAR:
            return Call(operator, (left, right), BOOLEAN, span)
    if is_constant(left) and not is_constant(right):
        left, right, operator = right, left, MIRRORED[operator]
    if is_constant(right) and not is_constant(left):
        operator, right = _as_moment(operator, right, left.type)
    compared = call(operator, left, right, span=span)
    if compared is None:
        hint = _comparable(left.type, right.type)
        raise type_error(f"{left.type} cannot be compared with {right.type}", span=span, suggestion=hint)
    return compared


def _comparable(left: SqlType, right: SqlType) -> str | None:
    """Say how values of two types are compared that are not comparable by themselves."""
    if BOOLEAN in {left, right}:
        return "A BOOLEAN is a condition by itself: write x, or NOT x."
    if left.is_temporal != right.is_temporal and (left.is_numeric or right.is_numeric):
        return "Convert seconds since 1970 by to_timestamp(x), or the moment by epoch(x)."
    return None


def adapt_literal(literal: Literal, target: SqlType, span: Span | None) -> Literal:
    """Convert a literal to the type of the column it meets where that keeps its value: '2024-01-01' becomes a DATE."""
    if literal.type == target or target.kind is Kind.NULL:
        return literal
    if literal.value is None or target.kind in {Kind.VARBINARY, Kind.NULL}:
        return literal
    if literal.type == VARCHAR and (target.kind is not Kind.VARCHAR or target.json):
        return _read(literal, target, span)
    if target.json:
        return _as_json(literal)
    if target.is_floating and literal.type.is_exact:
        stored = _nearest(target, literal.value)
        return Literal(stored, target) if not _is_lost(stored, literal.value) else literal
    if target.kind is Kind.DECIMAL and literal.type.is_exact and _scale(literal.value) <= target.scale:
        return Literal(to_stored(target, literal.value), target) if _digits_fit(literal.value, target) else literal
    return literal


def _read(literal: Literal, target: SqlType, span: Span | None) -> Literal:
    """Read the value of a string as a `target`; every digit of a DECIMAL is kept."""
    if target.kind is Kind.DECIMAL:
        exact = decimal(MAXIMUM_PRECISION, min(_scale_of_text(literal.value), MAXIMUM_PRECISION))
        value = _cast(literal, exact, span).value
        return adapt_literal(Literal(value, type_of_value(value)), target, span)
    if target.is_temporal:
        try:
            return Literal(to_stored(target, literal.value), target)
        except SqlError as error:
            raise _not_a_value(literal, target, span) from error
    return _cast(literal, target, span)


def _as_json(literal: Literal) -> Literal:
    """Write a number or a date as a JSON value, as `to_json` does."""
    written = call("to_json", literal)
    return literal if written is None else Literal(evaluate_constant(written), written.type)


def _cast(literal: Literal, target: SqlType, span: Span | None) -> Literal:
    try:
        return Literal(evaluate_constant(Cast(literal, target)), target)
    except SqlError as error:
        raise _not_a_value(literal, target, span) from error


def _not_a_value(literal: Literal, target: SqlType, span: Span | None) -> SqlError:
    kind = moment_error if target.is_temporal else text_error
    message = f"{shown(literal.value)} is not a value of type {target}"
    hint = _FORM_FIRST if target.is_temporal and "%" in str(literal.value) else written_form(target)
    return kind(message, span=span, suggestion=hint)


_FORM_FIRST = "The form comes second: strftime(ts, '%Y')."
"""SQLite has it first."""


def _scale_of_text(text: str) -> int:
    """Digits after the point, as written."""
    try:
        return _scale(Decimal(text.strip()))
    except ArithmeticError:
        return 0


def _scale(value: Any) -> int:
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _digits_fit(value: Any, target: SqlType) -> bool:
    """Test whether the type has enough digits before the point. `abs` would round a Decimal to 28 digits."""
    size = value.copy_abs() if isinstance(value, Decimal) else abs(value)
    return bool(size < 10 ** (target.precision - target.scale))


def _compare_integer(operator: str, left: Expression, value: Any, span: Span | None) -> Expression:
    """Compare an integer column with a fraction: the comparison with the number rounded down is equivalent."""
    if isinstance(value, float) and not math.isfinite(value):
        below = value == -math.inf
        return _unless_null(left, TRUE if operator in _TRUE_BEYOND[not below] else FALSE)
    floor = math.floor(value)
    if floor == value:
        return _within_range(operator, left, floor, span)
    if operator in {"=", "<>"}:
        return _unless_null(left, TRUE if operator == "<>" else FALSE)
    return _within_range("<=" if operator in {"<", "<="} else ">", left, floor, span)


def _compare_decimal(operator: str, left: Expression, value: Any, span: Span | None) -> Expression:
    """Compare a DECIMAL with a number of any digits: rounded down to the column's scale, the order keeps its meaning.

    The comparison stays in the column's type, so that indexes, zone maps and pruning can use it.
    """
    below = _rounded_down(value, left.type)
    if not _digits_fit(below, left.type):
        return _unless_null(left, TRUE if operator in _TRUE_BEYOND[below > 0] else FALSE)
    if below == value:
        return Call(operator, (left, Literal(below, left.type)), BOOLEAN, span)
    if operator in {"=", "<>"}:
        return _unless_null(left, TRUE if operator == "<>" else FALSE)
    return Call("<=" if operator in {"<", "<="} else ">", (left, Literal(below, left.type)), BOOLEAN, span)


def _rounded_down(value: Any, target: SqlType) -> Decimal:
    """Return the greatest number of the type's scale that is not above the value; it may have too many digits."""
    with localcontext() as context:
        context.prec = 2 * MAXIMUM_PRECISION + 2
        return Decimal(value).quantize(Decimal(1).scaleb(-target.scale), ROUND_FLOOR)


def _nearest(target: SqlType, value: Any) -> float:
    try:
        return float(to_stored(target, value))
    except SqlError:  # too large for a REAL
        return math.copysign(math.inf, value)


def _is_lost(stored: float, value: Any) -> bool:
    """Test whether a floating-point number stands for another whole number: 2**53 for 2**53 + 1.

    A fraction is what its digits are read as: 0.1 is the DOUBLE nearest to it, in a column as in a literal.
    """
    return value == int(value) and (math.isinf(stored) or int(stored) != int(value))


def _compare_floating(operator: str, left: Expression, value: Any, span: Span | None) -> Expression:
    """Compare a floating-point column with an integer that no double equals, by its nearest double."""
    if operator in {"=", "<>"}:
        return _unless_null(left, TRUE if operator == "<>" else FALSE)
    nearest = _nearest(left.type, value)
    below = operator in {"<", "<="}
    if nearest > value:
        return Call("<" if below else ">=", (left, Literal(nearest, left.type)), BOOLEAN, span)
    return Call("<=" if below else ">", (left, Literal(nearest, left.type)), BOOLEAN, span)


def _as_moment(operator: str, value: Expression, target: SqlType) -> tuple[str, Expression]:
    """Return a constant as a moment of the column's type, so that an index on the column can be used.

    Both TIMESTAMPs have the same instants. A DATE is before a TIMESTAMP where it is not after the last day that began
    before it: `made < TIMESTAMP '2024-01-02 10:00:00'` is `made <= DATE '2024-01-02'`.
    """
    kinds = (target.kind, value.type.kind)
    if set(kinds) == {Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}:
        return operator, Cast(value, target)
    if kinds not in {(Kind.DATE, Kind.TIMESTAMP), (Kind.DATE, Kind.TIMESTAMP_TZ)} or operator in {"=", "<>"}:
        return operator, value
    if operator in {"<=", ">"}:
        return operator, Cast(value, target)
    before = call("-", value, Literal(1, INTERVAL_TIME))
    assert before is not None, "an INTERVAL can be taken from every TIMESTAMP"
    return "<=" if operator == "<" else ">", Cast(before, target)


_TRUE_BEYOND = {True: {"<", "<=", "<>"}, False: {">", ">=", "<>"}}
"""Which comparisons hold for every value of a type with a number above (True) or below (False) its range."""


def _within_range(operator: str, left: Expression, value: int, span: Span | None) -> Expression:
    low, high = INTEGER_RANGES[left.type.kind]
    if not low <= value <= high:
        return _unless_null(left, TRUE if operator in _TRUE_BEYOND[value > high] else FALSE)
    return Call(operator, (left, Literal(value, left.type)), BOOLEAN, span)


def _unless_null(left: Expression, result: Literal) -> Expression:
    """Return `result` for rows in which the column has a value, and NULL for the others.

    A column that is never NULL in its map may be NULL here: HAVING asks the rows that ROLLUP makes. Where it is not, a
    rule removes the question. It asks for IS NOT NULL, as a query may also group by `left IS NULL`: that key is NULL in
    the rows that ROLLUP makes, and would be taken for a column that has a value.
    """
    return Case(((Call("is not null", (left,), BOOLEAN), result),), Literal(None, BOOLEAN), BOOLEAN)
