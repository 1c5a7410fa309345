"""+ - * / % of DECIMAL, with the precision and scale that Spark gives their results.

The exact result is rounded once, half away from zero, to the scale of its type; what the type cannot hold is an error.
Short numbers are computed as 64-bit words (`decimal_words`). Of longer ones, Arrow's rules for + - * are the same as
long as 38 digits suffice, so there its kernels are used as they are. Beyond, its wider decimal computes the exact
result, and only where 76 digits do not suffice Python computes row by row.
"""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import division_error, overflow_error
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Datum, Overload, Signature
from remuda.expr.functions.decimal_words import by_words, from_unscaled, units_of
from remuda.types import LONG_DIGITS, MAXIMUM_PRECISION, Kind, SqlType, exact_digits
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ALL_BITS = 1 << 64
_PIECE = 18
"""Digits that are collected in one integer."""
MOST_DIGITS = 34
"""So that what is put together has at most the 76 digits of Arrow's wider decimal."""


def divide_to_digits(dividends: np.ndarray, divisors: np.ndarray, digits: int, scale: int) -> pa.Array:
    """Divide `dividends * 10**digits` by the divisors, rounded half away from zero, to the unscaled values of a scale.

    As on paper, over whole columns. 7 / 11 to four digits: 7 goes 0 times, 70 goes 6 times and 4 are left, 40 goes 3
    times, 70 6 times, 40 3 times: 0.6363. As many digits are taken at a time as keep the remainder within 64 bits. No
    divisor is 0, and all are below 10**18.
    """
    dividends, divisors = np.broadcast_arrays(dividends, divisors)
    negative = (dividends < 0) != (divisors < 0)
    divisor = np.abs(divisors).astype(np.uint64)
    whole, rest = np.divmod(np.abs(dividends).astype(np.uint64), divisor)
    step = _digits_at_a_time(int(divisor.max(initial=1)))
    pieces: list[tuple[np.ndarray, int]] = [(whole, digits)]
    left = digits
    while left:
        wanted = min(left, _PIECE)
        piece = np.zeros_like(rest)
        while wanted:
            count = min(step, wanted)
            power = np.uint64(10**count)
            taken, rest = np.divmod(rest * power, divisor)
            piece = piece * power + taken
            wanted -= count
            left -= count
        pieces.append((piece, left))
    last, _ = pieces[-1]
    pieces[-1] = (last + (rest >= divisor - rest), 0)
    total = _placed(*pieces[0], scale)
    for piece, power_of_ten in pieces[1:]:
        total = pc.add(total, _placed(piece, power_of_ten, scale))
    return pc.if_else(pa.array(negative), pc.negate(total), total)


def _digits_at_a_time(largest: int) -> int:
    """Return how many more digits fit at a time.

    >>> _digits_at_a_time(10**18), _digits_at_a_time(2**33)
    (1, 9)
    """
    count = 1
    while largest * 10 ** (count + 1) <= _ALL_BITS:
        count += 1
    return count


def _placed(integers: np.ndarray, power_of_ten: int, scale: int) -> pa.Array:
    """Return the integers times a power of ten, as unscaled values; none has more than 63 bits."""
    words = np.zeros((len(integers), 2), "<u8")
    words[:, 0] = integers
    array = pa.Array.from_buffers(pa.decimal128(38, scale), len(integers), [None, pa.py_buffer(words)])
    wide = pc.cast(array, pa.decimal256(38, scale))
    return pc.multiply(wide, pa.scalar(Decimal(10**power_of_ten), pa.decimal256(power_of_ten + 1, 0)))


OVERFLOW = "the result overflows {}"
DIVISION_BY_ZERO = "division by zero"

_WIDEST = 76
"""Digits of Arrow's wider decimal."""

_KEPT_SCALE = 6
"""Digits after the point that are kept where 38 digits are too few for all."""

SAFE_DIGITS = 9
_SAFE_DIVISOR = 2**32
"""Arrow 26 divides wrongly, now and then, by numbers of more than 32 bits: 10**73 - 1 by 10**26, for instance."""

_EXACT = Context(prec=160, rounding=ROUND_HALF_UP)
_TRUNCATING = Context(prec=160, rounding=ROUND_DOWN)
"""Twice the digits that any two operands have: every sum and product is exact, and a quotient exact enough to round."""

Digits = tuple[int, int]
"""Precision and scale."""


def fitted(precision: int, scale: int) -> SqlType:
    """Return the type of a result that would need so many digits: beyond 38, digits after the point are given up first.

    >>> str(fitted(20, 4)), str(fitted(50, 20)), str(fitted(60, 20)), str(fitted(77, 4))
    ('DECIMAL(20, 4)', 'DECIMAL(38, 8)', 'DECIMAL(38, 6)', 'DECIMAL(38, 4)')
    """
    if precision <= MAXIMUM_PRECISION:
        return SqlType(Kind.DECIMAL, precision, scale)
    kept = max(MAXIMUM_PRECISION - (precision - scale), min(scale, _KEPT_SCALE))
    return SqlType(Kind.DECIMAL, MAXIMUM_PRECISION, kept)


def digits_of_sum(left: Digits, right: Digits) -> Digits:
    scale = max(left[1], right[1])
    return max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale


def digits_of_product(left: Digits, right: Digits) -> Digits:
    return left[0] + right[0] + 1, left[1] + right[1]


def _digits_of_quotient(left: Digits, right: Digits) -> Digits:
    scale = max(_KEPT_SCALE, left[1] + right[0] + 1)
    return left[0] - left[1] + right[1] + scale, scale


def _digits_of_remainder(left: Digits, right: Digits) -> Digits:
    scale = max(left[1], right[1])
    return min(left[0] - left[1], right[0] - right[1]) + scale, scale


def _resolver(digits: Callable[[Digits, Digits], Digits]) -> Callable[[Sequence[SqlType]], Signature | None]:
    """Resolve two exact types, one of which is a DECIMAL (NULL takes the type of the other side)."""

    def resolve(given: Sequence[SqlType]) -> Signature | None:
        if len(given) != 2 or not any(type_.kind is Kind.DECIMAL for type_ in given):
            return None
        sides = [given[1 - number] if type_.kind is Kind.NULL else type_ for number, type_ in enumerate(given)]
        if not all(type_.is_exact for type_ in sides):
            return None
        left, right = (exact_digits(type_) for type_ in sides)
        arguments = (SqlType(Kind.DECIMAL, *left), SqlType(Kind.DECIMAL, *right))
        return Signature(arguments, fitted(*digits(left, right)))

    return resolve


def fit_row(result: SqlType) -> Callable[[Decimal], Decimal]:
    """Rounds to the scale of the result and refuses what has too many digits."""
    step, most = Decimal(1).scaleb(-result.scale), result.precision - result.scale
    zero = Decimal(0).quantize(step)

    def fit(value: Decimal) -> Decimal:
        try:
            rounded = value.quantize(step, context=_EXACT)
        except InvalidOperation:  # 1e300 has more digits than any result
            raise overflow_error(OVERFLOW.format(result)) from None
        if not rounded:
            return zero  # and not -0.00
        if rounded.adjusted() >= most:
            raise overflow_error(OVERFLOW.format(result))
        return rounded

    return fit


def fit_batch(value: Datum, result: SqlType) -> Datum:
    """Fit Arrow's decimals, of any width and scale, into the type."""
    try:
        return pc.cast(round_batch(value, result.scale), result.arrow)
    except pa.ArrowInvalid as error:
        raise overflow_error(OVERFLOW.format(result)) from error


def round_batch(value: Datum, scale: int) -> Datum:
    """Half away from zero; the type keeps a digit more, which is 0."""
    return pc.round(_shortened(value, scale + 1), ndigits=scale, round_mode="half_towards_infinity")


def _shortened(value: Datum, scale: int) -> Datum:
    """Cuts digits off down to a scale, nine at a time: Arrow divides wrongly by numbers of more than 32 bits."""
    width = pa.decimal256 if value.type.bit_width > 128 else pa.decimal128
    while value.type.scale > scale:
        step = min(SAFE_DIGITS, value.type.scale - scale)
        value = pc.cast(value, width(max(value.type.precision - step, 1), value.type.scale - step), safe=False)
    return value


def _fitted_row(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Signature], Callable[..., Decimal]]:
    def for_signature(signature: Signature) -> Callable[..., Decimal]:
        fit = fit_row(signature.result)
        return lambda left, right: fit(operation(left, right))

    return for_signature


def _divide_exactly(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise division_error(DIVISION_BY_ZERO)
    return _TRUNCATING.divide(left, right)


def _remainder_exactly(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise division_error(DIVISION_BY_ZERO)
    return _EXACT.remainder(left, right)


def negate_row(value: Decimal) -> Decimal:
    """Negate exactly: Python's minus rounds to the 28 digits of its context."""
    return _EXACT.minus(value)


def wide_enough(precision: int) -> Callable[[int], pa.DataType]:
    """Return the smallest Arrow decimal for so many digits, with all digits of the scale that fit."""
    if precision <= MAXIMUM_PRECISION:
        return lambda scale: pa.decimal128(MAXIMUM_PRECISION, scale)
    return lambda scale: pa.decimal256(_WIDEST, scale)


def _wide(value: Datum, type_: SqlType, scale: int | None = None, width: Any = pa.decimal256) -> Datum:
    scale = type_.scale if scale is None else scale
    return pc.cast(value, width(type_.precision - type_.scale + scale, scale))


def _exact_batch(
    kernel: Callable[[Datum, Datum], Datum],
    operation: np.ufunc,
    digits: Callable[[Digits, Digits], Digits],
    row: Callable[[Signature], Callable[..., Any]],
) -> Callable[[Signature], Callable[..., Datum]]:
    """Compute by a kernel of Arrow, whose result has exactly `digits`, where numpy's operation does not do."""

    def for_signature(signature: Signature) -> Callable[..., Datum]:
        left_type, right_type = signature.arguments
        precision, scale = digits(exact_digits(left_type), exact_digits(right_type))
        if precision <= MAXIMUM_PRECISION:
            return by_words(operation, signature, scale, kernel)
        if precision > _WIDEST:
            return by_words(operation, signature, scale, by_rows(row(signature), signature))

        def wide(left: Datum, right: Datum) -> Datum:
            return fit_batch(kernel(_wide(left, left_type), _wide(right, right_type)), signature.result)

        return by_words(operation, signature, scale, wide)

    return for_signature


def divide_batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    """Arrow cuts a quotient off at the scale `s1 + p2 - s2 + 1`: the dividend is given the scale that leaves one digit
    more than is wanted, which is all that rounding needs."""
    left_type, right_type = signature.arguments
    (precision, scale), (right_precision, right_scale) = exact_digits(left_type), exact_digits(right_type)
    dividend_scale = max(scale, signature.result.scale + right_scale - right_precision)
    quotient_scale = max(4, dividend_scale + right_precision - right_scale + 1)
    quotient_precision = precision - scale + right_scale + quotient_scale
    width = pa.decimal128 if quotient_precision <= MAXIMUM_PRECISION else pa.decimal256
    as_on_paper = _divide_as_on_paper(signature)

    def divide(left: Datum, right: Datum) -> Datum:
        if quotient_precision > _WIDEST or _largest(right) >= _SAFE_DIVISOR:
            return as_on_paper(left, right)
        dividend = _wide(left, left_type, dividend_scale, width)
        return fit_batch(pc.divide(dividend, _wide(right, right_type, None, width)), signature.result)

    return divide


def _divide_as_on_paper(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    """Divide by divisors by which Arrow does not divide rightly: 18 digits at most by numpy, more row by row."""
    left_type, right_type = signature.arguments
    one_by_one = by_rows(_fitted_row(_divide_exactly)(signature), signature)
    digits = signature.result.scale + right_type.scale - left_type.scale

    def divide(left: Datum, right: Datum) -> Datum:
        short = max(_largest(left), _largest(right)) < 10**LONG_DIGITS
        is_column = isinstance(left, pa.Array) or isinstance(right, pa.Array)
        if not (0 <= digits <= MOST_DIGITS and short and is_column):
            return one_by_one(left, right)
        divisors = units_of(right, right_type.scale, 1)
        if not divisors.all():
            return one_by_one(left, right)  # which finds out whether a zero meets a NULL
        quotients = divide_to_digits(units_of(left, left_type.scale, 0), divisors, digits, signature.result.scale)
        valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
        return fit_batch(pc.if_else(valid, quotients, pa.scalar(None, quotients.type)), signature.result)

    return divide


def _largest(value: Datum) -> int:
    """Return the largest unscaled value, without its sign; 0 where there is none."""
    size = pc.abs(value)
    largest = (size if isinstance(size, pa.Scalar) else pc.max(size)).as_py()
    return 0 if largest is None else int(largest.scaleb(value.type.scale, _EXACT))


def _residual_batch(signature: Signature) -> Callable[..., Datum]:
    """Compute remainders of up to 18 digits by numpy, as 64-bit integers of the larger scale."""
    one_by_one = by_rows(_fitted_row(_remainder_exactly)(signature), signature)
    scale = max(type_.scale for type_ in signature.arguments)
    if any(type_.precision - type_.scale + scale > LONG_DIGITS for type_ in signature.arguments):
        return one_by_one

    def remainder(left: Datum, right: Datum) -> Datum:
        if not isinstance(left, pa.Array) or (isinstance(right, pa.Scalar) and not right.is_valid):
            return one_by_one(left, right)
        divisors = units_of(right, scale, 1)
        if not divisors.all():
            return one_by_one(left, right)  # which finds out whether a zero meets a NULL
        result = from_unscaled(np.fmod(units_of(left, scale, 0), divisors), signature.result)
        return pc.if_else(pc.and_(pc.is_valid(left), pc.is_valid(right)), result, pa.scalar(None, result.type))

    return remainder


_ADD, _SUBTRACT, _MULTIPLY = _fitted_row(_EXACT.add), _fitted_row(_EXACT.subtract), _fitted_row(_EXACT.multiply)

_EXACT_SUM = _exact_batch(pc.add, np.add, digits_of_sum, _ADD)
_EXACT_DIFFERENCE = _exact_batch(pc.subtract, np.subtract, digits_of_sum, _SUBTRACT)
_EXACT_PRODUCT = _exact_batch(pc.multiply, np.multiply, digits_of_product, _MULTIPLY)

OVERLOADS = {
    "+": Overload(_resolver(digits_of_sum), _EXACT_SUM, _ADD),
    "-": Overload(_resolver(digits_of_sum), _EXACT_DIFFERENCE, _SUBTRACT),
    "*": Overload(_resolver(digits_of_product), _EXACT_PRODUCT, _MULTIPLY),
    "/": Overload(_resolver(_digits_of_quotient), divide_batch, _fitted_row(_divide_exactly)),
    "%": Overload(_resolver(_digits_of_remainder), _residual_batch, _fitted_row(_remainder_exactly)),
}
