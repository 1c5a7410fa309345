"""Regular expressions, in the dialect of RE2, which Arrow has: one row asks Arrow too, so both evaluations agree.

RE2 has no back-references and no look-around; `.` does not match a line break unless the option `s` is given.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError, pattern_error
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.evaluate.text_sizes import (
    LONGEST,
    bytes_of_texts,
    exact_bytes,
    refuse_longest,
    refuse_size,
    room_for_texts,
    rows_of_datums,
)
from remuda.expr.function import Datum, Function, Overload, Signature, fixed, overloaded
from remuda.expr.nodes import Literal
from remuda.types import BIGINT, BOOLEAN, VARCHAR
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr.nodes import Expression
    from remuda.types import SqlType


def has_values(datum: Datum) -> bool:
    return bool(datum.is_valid) if isinstance(datum, pa.Scalar) else datum.null_count < len(datum)


def fails_unless_constant(row: Callable[..., Any]) -> Callable[[tuple[Expression, ...]], bool]:
    """Test whether a call can fail: one whose pattern and options are constants fails for every text or for none."""

    def can_fail(arguments: tuple[Expression, ...]) -> bool:
        constants = [argument.value for argument in arguments[1:] if isinstance(argument, Literal)]
        if len(constants) < len(arguments) - 1:
            return True
        try:
            _ = None in constants or row("", *constants)
        except SqlError:
            return True
        return False

    return can_fail


def by_pattern(
    name: str,
    arguments: Sequence[SqlType],
    result: SqlType,
    kernel: Callable[..., Datum],
    optional: int = 0,
    symbol: str | None = None,
) -> Function:
    """Define a function by its pattern; `kernel` takes the text, a column or one value, and the other arguments."""

    def asked(value: Datum, *constants: Any) -> Datum:
        try:
            return kernel(value, *constants)
        except pa.ArrowInvalid as error:
            raise pattern_error(str(error).splitlines()[0]) from None

    def row(text: str, *constants: Any) -> Any:
        return asked(pa.scalar(text, pa.string()), *constants).as_py()

    def batch(signature: Signature) -> Callable[..., Datum]:
        one_by_one = by_rows(row, signature)

        def evaluate(value: Datum, *others: Datum) -> Datum:
            if not has_values(value) or any(isinstance(other, pa.Scalar) and not other.is_valid for other in others):
                return pa.scalar(None, result.arrow)
            if any(isinstance(other, pa.Array) for other in others):
                return one_by_one(value, *others)
            return asked(value, *(other.as_py() for other in others))

        return evaluate

    counts = range(len(arguments) - optional, len(arguments) + 1)
    overloads = [Overload(fixed(arguments[:count], result), batch, lambda _: row) for count in counts]
    return overloaded(name, *overloads, symbol=symbol, can_fail=fails_unless_constant(row), hints=tuple(arguments))


_OPTIONS = frozenset("gcism")


def _with_options(pattern: str, options: str, *, replaces: bool = False) -> str:
    unknown = set(options) - _OPTIONS
    if unknown:
        raise pattern_error(f"unknown option of a regular expression: {min(unknown)}; there are c, g, i, m, s")
    if "g" in options and not replaces:
        raise pattern_error("the option g, all matches, belongs to regexp_replace")
    flags = "".join(sorted(set(options) & set("ism")))
    return f"(?{flags}){pattern}" if flags else pattern


def _matches(value: Datum, pattern: str, options: str = "") -> Datum:
    return pc.match_substring_regex(value, _with_options(pattern, options))


def _matches_in_any_case(value: Datum, pattern: str) -> Datum:
    return pc.match_substring_regex(value, pattern, ignore_case=True)


def _matches_whole(value: Datum, pattern: str, options: str = "") -> Datum:
    return pc.match_substring_regex(value, rf"\A(?:{_with_options(pattern, options)})\z")


def _count(value: Datum, pattern: str) -> Datum:
    return pc.cast(pc.count_substring_regex(value, pattern), pa.int64())


def _replace(value: Datum, pattern: str, replacement: str, options: str = "") -> Datum:
    """Return the first match, or with the option `g` all."""
    most = None if "g" in options else 1
    expression = _with_options(pattern, options, replaces=True)
    _refuse_replaced(value, expression, replacement, most)
    return refuse_longest(pc.replace_substring_regex(value, expression, replacement, max_replacements=most))


def _refuse_replaced(value: Datum, expression: str, replacement: str, most: int | None) -> None:
    """Refuse a result that is too large: each match is replaced by the replacement, with parts of the match in it."""
    rows, size = rows_of_datums(value), bytes_of_texts(value, 1)
    length, groups = len(replacement.encode()), replacement.count("\\")
    matches = rows if most == 1 else size + rows
    if size * (1 + groups) + matches * length <= min(room_for_texts(), LONGEST):
        return
    if most is None:
        counts = pc.count_substring_regex(value, expression)
        matches = (counts if isinstance(value, pa.Scalar) else pc.sum(counts, min_count=0)).as_py() or 0
    refuse_size(exact_bytes(value) * (1 + groups) + matches * length)


@lru_cache(maxsize=256)
def named_groups(pattern: str) -> tuple[str, int]:
    """Return the pattern with its groups named by their numbers, as Arrow wants them, and how many there are.

    >>> named_groups("a(b|[(])(?:c)")
    ('(?P<g0>a(?P<g1>b|[(])(?:c))', 1)
    """
    parts: list[str] = []
    count = at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "\\":
            end = _end_of_quotation(pattern, at)
        elif pattern[at] == "[":
            end = _end_of_class(pattern, at)
        elif pattern.startswith(("(?P<", "(?<"), at) or (pattern[at] == "(" and pattern[end : end + 1] != "?"):
            count += 1
            parts.append(f"(?P<g{count}>")
            at = end if pattern[end : end + 1] != "?" else pattern.find(">", at) + 1
            continue
        parts.append(pattern[at:end])
        at = end
    return f"(?P<g0>{''.join(parts)})", count


def _end_of_quotation(pattern: str, at: int) -> int:
    r"""Return the end of a quotation: after an escaped character, or after `\Q...\E`."""
    if pattern[at + 1 : at + 2] != "Q":
        return at + 2
    end = pattern.find("\\E", at)
    return len(pattern) if end < 0 else end + 2


def _end_of_class(pattern: str, at: int) -> int:
    """Return the end of a class: after the bracket that closes `[...]`; one that comes first closes nothing."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at : at + 2] == "[:":
            at = max(pattern.find(":]", at), at) + 1
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _extract(value: Datum, pattern: str, group: int = 0) -> Datum:
    """Extract a group; return no text where there is no match, or none of the group."""
    if isinstance(value, pa.Scalar):
        return _extract(pa.repeat(value, 1), pattern, group)[0]
    pc.match_substring_regex(pa.scalar(""), pattern)  # refuses what is no pattern, as it is written
    named, count = named_groups(pattern)
    if not 0 <= group <= count:
        raise pattern_error(f"the regular expression has no group {group}")
    found = pc.fill_null(pc.struct_field(pc.extract_regex(value, named), f"g{group}"), "")
    return pc.if_else(pc.is_valid(value), found, pa.scalar(None, pa.string()))


FUNCTIONS = (
    by_pattern("~", [VARCHAR, VARCHAR], BOOLEAN, _matches, symbol="~"),
    by_pattern("~*", [VARCHAR, VARCHAR], BOOLEAN, _matches_in_any_case, symbol="~*"),
    by_pattern("regexp_matches", [VARCHAR, VARCHAR, VARCHAR], BOOLEAN, _matches, optional=1),
    by_pattern("regexp_full_match", [VARCHAR, VARCHAR, VARCHAR], BOOLEAN, _matches_whole, optional=1),
    by_pattern("regexp_count", [VARCHAR, VARCHAR], BIGINT, _count),
    by_pattern("regexp_replace", [VARCHAR, VARCHAR, VARCHAR, VARCHAR], VARCHAR, _replace, optional=1),
    by_pattern("regexp_extract", [VARCHAR, VARCHAR, BIGINT], VARCHAR, _extract, optional=1),
)
