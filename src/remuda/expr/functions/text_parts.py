"""Functions that take text apart and put it together. Characters are code points, counted from 1, as in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.expr.cast.cast import can_cast
from remuda.expr.evaluate.by_rows import by_rows, plain_function
from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.text_sizes import (
    LONGEST,
    bytes_of_texts,
    exact_bytes,
    refuse_length,
    refuse_longest,
    refuse_size,
    room_for_texts,
    rows_of_datums,
)
from remuda.types import BIGINT, BOOLEAN, VARCHAR, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BEYOND = 1 << 31
"""A place that no text reaches: Arrow's strings are shorter."""


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
    stop = None if length is None else min(max(start - 1 + length, 0), _BEYOND)
    return pc.utf8_slice_codeunits(value, min(max(start - 1, 0), _BEYOND), stop)


def _left_constant(value: Datum, count: int) -> Datum:
    return pc.utf8_slice_codeunits(value, 0, count)


def _right(text: str, count: int) -> str:
    return text[-count:] if count else ""


def _right_constant(value: Datum, count: int) -> Datum:
    if count == 0:
        return pc.utf8_slice_codeunits(value, 0, 0)
    return pc.utf8_slice_codeunits(value, max(min(-count, _BEYOND), -_BEYOND))


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(new) > len(old) and len(text) // len(old) * len(new) > LONGEST:
        refuse_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _replace_constant(value: Datum, old: str, new: str) -> Datum:
    if not old:
        return value
    growth = max(len(new.encode()) - len(old.encode()), 0)
    size = bytes_of_texts(value, 1)
    if size + size // len(old) * growth > room_for_texts():
        counts = pc.count_substring(value, old)
        count = (counts if isinstance(value, pa.Scalar) else pc.sum(counts, min_count=0)).as_py()
        refuse_size(exact_bytes(value) + (count or 0) * growth)
    return refuse_longest(pc.replace_substring(value, old, new))


def _position(text: str, wanted: str) -> int:
    return text.find(wanted) + 1


def _position_constant(value: Datum, wanted: str) -> Datum | None:
    """Arrow counts bytes: right where every character is one."""
    ascii_only = pc.string_is_ascii(value)
    if not (ascii_only if isinstance(value, pa.Scalar) else pc.all(ascii_only)).as_py():
        return None
    return pc.cast(pc.add(pc.find_substring(value, wanted), 1), pa.int64())


def _fill(text: str, length: int, fill: str) -> str:
    """What a padded text lacks."""
    refuse_length(length)
    missing = length - len(text)
    return (fill * (missing // len(fill) + 1))[:missing] if missing > 0 and fill else ""


def _pad_left(text: str, length: int, fill: str = " ") -> str:
    return _fill(text, length, fill) + text[: max(length, 0)]


def _pad_right(text: str, length: int, fill: str = " ") -> str:
    return text[: max(length, 0)] + _fill(text, length, fill)


def _pad(name: str, row: Callable[..., str], kernel: Callable[..., Datum]) -> Function:
    def constant(value: Datum, length: int, fill: str = " ") -> Datum | None:
        """Arrow pads with one character, and cuts nothing off."""
        if len(fill) != 1 or not 0 < length <= LONGEST:
            return None
        rows = rows_of_datums(value)
        refuse_size(bytes_of_texts(value, rows) + rows * length * len(fill.encode()))
        return pc.utf8_slice_codeunits(kernel(value, length, fill), 0, length)

    return plain_function(name, [VARCHAR, BIGINT, VARCHAR], VARCHAR, row, constant, optional=1, can_fail=True)


def _repeat_constant(value: Datum, times: int) -> Datum | None:
    longest = pc.utf8_length(value)
    longest = (longest if isinstance(value, pa.Scalar) else pc.max(longest)).as_py()
    if longest is None or longest * times > LONGEST:
        return None
    if bytes_of_texts(value, 1) * times > room_for_texts():
        refuse_size(exact_bytes(value) * times)
    return pc.binary_repeat(value, min(max(times, 0), LONGEST))


def _repeat(text: str, times: int) -> str:
    refuse_length(len(text) * times)
    return text * times


def _trim(name: str, row: Callable[[str, str], str], kernel: Callable[..., Datum]) -> Function:
    """Spaces, where no characters are given."""
    return plain_function(
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
    refuse_length(sum(len(text) for text in texts if text is not None))
    return "".join([text for text in texts if text is not None])


def _concat_ws(separator: str | None, *texts: str | None) -> str | None:
    if separator is None:
        return None
    present = [text for text in texts if text is not None]
    refuse_length(sum(map(len, present)) + len(separator) * max(len(present) - 1, 0))
    return separator.join(present)


def _append(left: str, right: str) -> str:
    if len(left) + len(right) > LONGEST:
        refuse_length(len(left) + len(right))
    return left + right


def _appended(left: Datum, right: Datum) -> Datum:
    rows = rows_of_datums(left, right)
    refuse_size(bytes_of_texts(left, rows) + bytes_of_texts(right, rows))
    return refuse_longest(pc.binary_join_element_wise(left, right, ""))


def _joined(*texts: Datum) -> Datum:
    """Arrow's way to skip NULLs loses the rows that have nothing else: they are replaced by nothing."""
    rows = rows_of_datums(*texts)
    refuse_size(sum(bytes_of_texts(text, rows) for text in texts))
    return refuse_longest(pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement=""))


def _resolve_operator(given: Sequence[SqlType]) -> Signature | None:
    """One side is text; the other anything that has a text."""
    return _resolve_concat(given) if len(given) == 2 and any(type_ == VARCHAR for type_ in given) else None


FUNCTIONS = (
    plain_function(
        "substring",
        [VARCHAR, BIGINT, BIGINT],
        VARCHAR,
        _substring,
        _substring_constant,
        optional=1,
        can_fail=True,
    ),
    plain_function("left", [VARCHAR, BIGINT], VARCHAR, lambda text, count: text[:count], _left_constant),
    plain_function("right", [VARCHAR, BIGINT], VARCHAR, _right, _right_constant),
    plain_function("replace", [VARCHAR, VARCHAR, VARCHAR], VARCHAR, _replace, _replace_constant),
    plain_function("position", [VARCHAR, VARCHAR], BIGINT, _position, _position_constant),
    plain_function(
        "starts_with",
        [VARCHAR, VARCHAR],
        BOOLEAN,
        lambda text, prefix: text.startswith(prefix),
        pc.starts_with,
    ),
    plain_function("reverse", [VARCHAR], VARCHAR, lambda text: text[::-1], pc.utf8_reverse),
    plain_function("repeat", [VARCHAR, BIGINT], VARCHAR, _repeat, _repeat_constant, can_fail=True),
    _pad("lpad", _pad_left, pc.utf8_lpad),
    _pad("rpad", _pad_right, pc.utf8_rpad),
    _trim("trim", str.strip, pc.utf8_trim),
    _trim("ltrim", str.lstrip, pc.utf8_ltrim),
    _trim("rtrim", str.rstrip, pc.utf8_rtrim),
    Function("concat", _resolve_concat, lambda _: _joined, lambda _: _concat, strict=False, hints=(VARCHAR,)),
    Function(
        "concat_ws",
        _resolve_concat_ws,
        lambda signature: by_rows(_concat_ws, signature, strict=False),
        lambda _: _concat_ws,
        strict=False,
        hints=(VARCHAR,),
    ),
    Function(
        "||",
        _resolve_operator,
        lambda _: _appended,
        lambda _: _append,
        symbol="||",
    ),
)
