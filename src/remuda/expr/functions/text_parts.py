"""Functions that take text apart and put it together. Characters are code points, counted from 1, as in PostgreSQL."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import option_error, substring_error
from remuda.expr.cancellation import check_cancelled
from remuda.expr.cast.cast import can_cast
from remuda.expr.evaluate.by_rows import by_rows, plain_function
from remuda.expr.evaluate.text_sizes import (
    LONGEST,
    bytes_of_texts,
    exact_bytes,
    refuse_length,
    refuse_longest,
    refuse_size,
    room_for_texts,
    rows_of_datums,
)
from remuda.expr.function import Datum, Function, Overload, Signature, fixed, overloaded
from remuda.types import BIGINT, BOOLEAN, VARBINARY, VARCHAR, SqlType
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_BEYOND = 1 << 31
"""A position that no text reaches: Arrow's strings are shorter."""


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Positions before the first count too: SUBSTRING('hello' FROM -1 FOR 3) is 'h'."""
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise substring_error("the length of a substring must not be negative")
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
    """Return the filling of a padded text."""
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
    """Replace NULLs by nothing: Arrow's way to skip them loses the rows that have nothing else."""
    rows = rows_of_datums(*texts)
    refuse_size(sum(bytes_of_texts(text, rows) for text in texts))
    return refuse_longest(pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement=""))


def _resolve_operator(given: Sequence[SqlType]) -> Signature | None:
    """Resolve `||`: one side is text, the other anything that has a text."""
    return _resolve_concat(given) if len(given) == 2 and any(type_ == VARCHAR for type_ in given) else None


_WORD = re.compile(r"[^\W_]+")


def _split_part(text: str, separator: str, number: int) -> str:
    """Return a part of a split text, from the end where the number is negative, or no text."""
    if number == 0:
        raise option_error("parts are counted from 1, or from -1 at the end")
    parts = text.split(separator) if separator else [text]
    position = number - 1 if number > 0 else len(parts) + number
    return parts[position] if 0 <= position < len(parts) else ""


def _split_part_constant(value: Datum, separator: str, number: int) -> Datum | None:
    """Return one part of each text of a column.

    The parts of all texts lie one after the other: that of a text is found by the position of its first.
    """
    if not separator or number == 0 or isinstance(value, pa.Scalar):
        return None
    lists = pc.split_pattern(value, separator)
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    firsts = np.asarray(lists.offsets)[:-1].astype(np.int64)
    chosen = number - 1 if number > 0 else counts + number
    found = (chosen >= 0) & (chosen < counts)
    positions = pa.array(np.where(found, firsts + chosen, 0), mask=~found)
    parts = pc.fill_null(lists.values.take(positions), "")
    return pc.if_else(pc.is_valid(value), parts, pa.scalar(None, pa.string()))


@lru_cache(maxsize=256)
def _translation(old: str, new: str) -> dict[int, int | None]:
    """Return the translation table: the first meaning of a character counts, one without a counterpart is removed."""
    table: dict[int, int | None] = {}
    for position, character in enumerate(old):
        table.setdefault(ord(character), ord(new[position]) if position < len(new) else None)
    return table


def _translate(text: str, old: str, new: str) -> str:
    return text.translate(_translation(old, new))


def _overlay(text: str, part: str, start: int, length: int | None = None) -> str:
    """Overlay a text: as many characters are replaced as there are new ones, unless a length is given."""
    if start < 1:
        raise option_error("characters are counted from 1")
    refuse_length(len(text) + len(part))
    after = start - 1 + (len(part) if length is None else length)
    return text[: start - 1] + part + text[max(after, 0) :]


def _capitalised(text: str) -> str:
    """Letters are changed one by one: "ß" has no single capital and stays."""
    return _WORD.sub(lambda word: _upper(word[0][0]) + "".join(map(_lower, word[0][1:])), text)


def _upper(character: str) -> str:
    other = character.upper()
    return other if len(other) == 1 else character


def _lower(character: str) -> str:
    other = character.lower()
    return other if len(other) == 1 else character


def _levenshtein(left: str, right: str) -> int:
    """Return the number of characters to insert, remove or replace, row by row of the usual table."""
    previous = list(range(len(right) + 1))
    for row, character in enumerate(left, 1):
        check_cancelled()
        current = [row]
        for column, other in enumerate(right, 1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (character != other)))
        previous = current
    return previous[-1]


def _byte_count(value: Datum) -> Datum:
    return pc.cast(pc.binary_length(value), pa.int64())


def _bytes_of_text(text: str) -> int:
    return len(text.encode())


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
    plain_function("split_part", [VARCHAR, VARCHAR, BIGINT], VARCHAR, _split_part, _split_part_constant, can_fail=True),
    plain_function("translate", [VARCHAR, VARCHAR, VARCHAR], VARCHAR, _translate),
    plain_function("overlay", [VARCHAR, VARCHAR, BIGINT, BIGINT], VARCHAR, _overlay, optional=1, can_fail=True),
    plain_function("initcap", [VARCHAR], VARCHAR, _capitalised),
    plain_function("levenshtein", [VARCHAR, VARCHAR], BIGINT, _levenshtein),
    plain_function("ends_with", [VARCHAR, VARCHAR], BOOLEAN, lambda text, end: text.endswith(end), pc.ends_with),
    plain_function("contains", [VARCHAR, VARCHAR], BOOLEAN, lambda text, part: part in text, pc.match_substring),
    overloaded(
        "octet_length",
        Overload(fixed([VARCHAR], BIGINT), lambda _: _byte_count, lambda _: _bytes_of_text),
        Overload(fixed([VARBINARY], BIGINT), lambda _: _byte_count, lambda _: len),
        hints=(VARCHAR,),
    ),
    Function(
        "bit_length",
        fixed([VARCHAR], BIGINT),
        lambda _: lambda value: pc.multiply(_byte_count(value), 8),
        lambda _: lambda text: 8 * _bytes_of_text(text),
    ),
)
