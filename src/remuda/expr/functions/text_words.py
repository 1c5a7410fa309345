"""Text taken apart and put together by characters and words: SPLIT_PART, TRANSLATE, OVERLAY, INITCAP, CONTAINS, ..."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.expr.cancellation import check_cancelled
from remuda.expr.evaluate.by_rows import plain_function
from remuda.expr.function import Datum, Function, Overload, fixed, overloaded
from remuda.expr.functions.text_sizes import refuse_length
from remuda.types import BIGINT, BOOLEAN, VARBINARY, VARCHAR

_WORD = re.compile(r"[^\W_]+")


def _split_part(text: str, separator: str, number: int) -> str:
    """From the end where the number is negative; nothing where there is no such part."""
    if number == 0:
        raise data_error("parts are counted from 1, or from -1 at the end")
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _split_part_constant(value: Datum, separator: str, number: int) -> Datum | None:
    """The parts of all texts lie one after the other: that of a text is found by the place of its first."""
    if not separator or number == 0 or isinstance(value, pa.Scalar):
        return None
    lists = pc.split_pattern(value, separator)
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    firsts = np.asarray(lists.offsets)[:-1].astype(np.int64)
    chosen = number - 1 if number > 0 else counts + number
    found = (chosen >= 0) & (chosen < counts)
    places = pa.array(np.where(found, firsts + chosen, 0), mask=~found)
    parts = pc.fill_null(lists.values.take(places), "")
    return pc.if_else(pc.is_valid(value), parts, pa.scalar(None, pa.string()))


@lru_cache(maxsize=256)
def _translation(old: str, new: str) -> dict[int, int | None]:
    """The first meaning of a character counts; those without a counterpart are left out."""
    table: dict[int, int | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), ord(new[place]) if place < len(new) else None)
    return table


def _translate(text: str, old: str, new: str) -> str:
    return text.translate(_translation(old, new))


def _overlay(text: str, part: str, start: int, length: int | None = None) -> str:
    """As many characters are replaced as there are new ones, unless a length is given."""
    if start < 1:
        raise data_error("characters are counted from 1")
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
    """The number of characters to insert, remove or replace, row by row of the usual table."""
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
