"""Functions that take text apart and put it together. Characters are code points, counted from 1, as in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.expr.by_rows import by_rows
from remuda.expr.cast import can_cast
from remuda.expr.function import Datum, Function, Overload, Signature, fixed, overloaded
from remuda.types import BIGINT, BOOLEAN, VARCHAR, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LONGEST = 1 << 26
"""Characters that LPAD, RPAD and REPEAT make at most."""


def _constants(arguments: Sequence[Datum]) -> list[Any] | None:
    """The values of arguments that are all the same for every row and not NULL; None where some are not."""
    known = all(isinstance(argument, pa.Scalar) and argument.is_valid for argument in arguments)
    return [argument.as_py() for argument in arguments] if known else None


def _with_constants(
    row: Callable[..., Any], constant: Callable[..., Datum | None]
) -> Callable[[Signature], Callable[..., Datum]]:
    """Arrow's kernel where all but the first argument are constants (and `constant` has one), else row by row."""

    def for_signature(signature: Signature) -> Callable[..., Datum]:
        one_by_one = by_rows(row, signature)

        def kernel(value: Datum, *others: Datum) -> Datum:
            constants = _constants(others)
            result = None if constants is None else constant(value, *constants)
            return one_by_one(value, *others) if result is None else result

        return kernel

    return for_signature


def _function(
    name: str,
    arguments: Sequence[SqlType],
    result: SqlType,
    row: Callable[..., Any],
    constant: Callable[..., Datum | None] = lambda *_: None,
    optional: int = 0,
    can_fail: bool = False,
) -> Function:
    """The last `optional` arguments may be left out: `row` and `constant` have defaults for them."""
    counts = range(len(arguments) - optional, len(arguments) + 1)
    overloads = [
        Overload(fixed(arguments[:count], result), _with_constants(row, constant), lambda _: row) for count in counts
    ]
    return overloaded(name, *overloads, can_fail=can_fail)


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Positions before the first count too: SUBSTRING('hello' FROM -1 FOR 3) is 'h'."""
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise data_error("the length of a substring must not be negative")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _substring_constant(value: Datum, start: int, length: int | None = None) -> Datum | None:
    if length is not None and length < 0:
        return None
    stop = None if length is None else max(start - 1 + length, 0)
    return pc.utf8_slice_codeunits(value, max(start - 1, 0), stop)


def _left_constant(value: Datum, count: int) -> Datum:
    return pc.utf8_slice_codeunits(value, 0, count)


def _right(text: str, count: int) -> str:
    return text[-count:] if count else ""


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _replace_constant(value: Datum, old: str, new: str) -> Datum:
    return pc.replace_substring(value, old, new) if old else value


def _position(text: str, wanted: str) -> int:
    return text.find(wanted) + 1


def _fill(text: str, length: int, fill: str) -> str:
    """What a padded text lacks."""
    if length > LONGEST:
        raise data_error(f"a text of {length} characters is too long to make")
    missing = length - len(text)
    return (fill * (missing // len(fill) + 1))[:missing] if missing > 0 and fill else ""


def _pad_left(text: str, length: int, fill: str = " ") -> str:
    return _fill(text, length, fill) + text[: max(length, 0)]


def _pad_right(text: str, length: int, fill: str = " ") -> str:
    return text[: max(length, 0)] + _fill(text, length, fill)


def _repeat(text: str, times: int) -> str:
    if len(text) * times > LONGEST:
        raise data_error(f"a text of {len(text) * times} characters is too long to make")
    return text * times


def _trim(name: str, row: Callable[[str, str], str], kernel: Callable[..., Datum]) -> Function:
    """Spaces, where no characters are given."""
    return _function(
        name,
        [VARCHAR, VARCHAR],
        VARCHAR,
        lambda text, characters=" ": row(text, characters),
        lambda value, characters=" ": kernel(value, characters=characters),
        optional=1,
    )


def _resolve_concat(given: Sequence[SqlType]) -> Signature | None:
    """Anything that has a text."""
    if not given or not all(can_cast(type_, VARCHAR) for type_ in given):
        return None
    return Signature((VARCHAR,) * len(given), VARCHAR)


def _resolve_concat_ws(given: Sequence[SqlType]) -> Signature | None:
    return _resolve_concat(given) if len(given) > 1 else None


def _concat(*texts: str | None) -> str:
    return "".join([text for text in texts if text is not None])


def _concat_ws(separator: str | None, *texts: str | None) -> str | None:
    return None if separator is None else separator.join([text for text in texts if text is not None])


def _joined(*texts: Datum) -> Datum:
    """Arrow's way to skip NULLs loses the rows that have nothing else: they are replaced by nothing."""
    return pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement="")


def _resolve_operator(given: Sequence[SqlType]) -> Signature | None:
    """One side is text; the other anything that has a text."""
    return _resolve_concat(given) if len(given) == 2 and any(type_ == VARCHAR for type_ in given) else None


FUNCTIONS = (
    _function(
        "substring",
        [VARCHAR, BIGINT, BIGINT],
        VARCHAR,
        _substring,
        _substring_constant,
        optional=1,
        can_fail=True,
    ),
    _function("left", [VARCHAR, BIGINT], VARCHAR, lambda text, count: text[:count], _left_constant),
    _function("right", [VARCHAR, BIGINT], VARCHAR, _right),
    _function("replace", [VARCHAR, VARCHAR, VARCHAR], VARCHAR, _replace, _replace_constant),
    _function("position", [VARCHAR, VARCHAR], BIGINT, _position),
    _function(
        "starts_with",
        [VARCHAR, VARCHAR],
        BOOLEAN,
        lambda text, prefix: text.startswith(prefix),
        pc.starts_with,
    ),
    _function("reverse", [VARCHAR], VARCHAR, lambda text: text[::-1], pc.utf8_reverse),
    _function("repeat", [VARCHAR, BIGINT], VARCHAR, _repeat, can_fail=True),
    _function("lpad", [VARCHAR, BIGINT, VARCHAR], VARCHAR, _pad_left, optional=1, can_fail=True),
    _function("rpad", [VARCHAR, BIGINT, VARCHAR], VARCHAR, _pad_right, optional=1, can_fail=True),
    _trim("trim", str.strip, pc.utf8_trim),
    _trim("ltrim", str.lstrip, pc.utf8_ltrim),
    _trim("rtrim", str.rstrip, pc.utf8_rtrim),
    Function("concat", _resolve_concat, lambda _: _joined, lambda _: _concat, strict=False),
    Function(
        "concat_ws",
        _resolve_concat_ws,
        lambda signature: by_rows(_concat_ws, signature, strict=False),
        lambda _: _concat_ws,
        strict=False,
    ),
    Function(
        "||",
        _resolve_operator,
        lambda _: lambda left, right: pc.binary_join_element_wise(left, right, ""),
        lambda _: lambda left, right: left + right,
        symbol="||",
    ),
)
