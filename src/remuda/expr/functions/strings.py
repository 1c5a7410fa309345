r"""LIKE, ILIKE and SIMILAR TO, letters and length. LIKE is case-sensitive, ILIKE is not; `\` escapes a wildcard."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import escape_error
from remuda.expr.evaluate.by_rows import plain_function
from remuda.expr.function import Datum, Function, Overload, fixed, overloaded
from remuda.expr.functions.regular import by_pattern, fails_unless_constant, has_values
from remuda.types import BIGINT, BOOLEAN, VARBINARY, VARCHAR
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable


@lru_cache(maxsize=1024)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a LIKE pattern to an expression that takes time in proportion to the text.

    The shortest text that ends with what stands between two `%` is always a right choice for the first of them. The
    atomic groups keep Python from trying the others, of which there are exponentially many.

    >>> bool(like_pattern("a%_c").match("axxbc")), bool(like_pattern("10\\\\%").match("100"))
    (True, False)
    """
    pieces: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise escape_error("the LIKE pattern ends with its escape character")
            pieces[-1].append(re.escape(escaped))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if character == "_" else re.escape(character))
    first, *others = pieces
    if not others:
        return re.compile("".join(first) + r"\Z", re.DOTALL)
    *between, last = others
    found = "".join(f"(?>.*?{''.join(piece)})" for piece in between if piece)
    # What the pattern ends with has a fixed length: it is looked for at the end of the text, where there is room.
    end = f"(?=.{{{len(last)}}})(?>.*)(?<={''.join(last)})" if last else ""
    return re.compile(f"{''.join(first)}{found}{end}", re.DOTALL)


def _like(name: str, *, ignore_case: bool) -> Function:
    def row(value: str, pattern: str) -> bool:
        matcher = like_pattern(pattern)
        if ignore_case:  # Arrow is asked: Python takes "İ" for an "i", Arrow does not
            return bool(pc.match_like(pa.scalar(value), pattern, ignore_case=True).as_py())
        return matcher.match(value) is not None

    def batch(value: Datum, pattern: Datum) -> Datum:
        if isinstance(pattern, pa.Scalar):
            if not pattern.is_valid:
                return pa.scalar(None, pa.bool_())
            if has_values(value):
                like_pattern(pattern.as_py())  # refuses what is no pattern
            return pc.match_like(value, pattern.as_py(), ignore_case=ignore_case)
        values = value if isinstance(value, pa.Array) else [value] * len(pattern)
        pairs = zip(values, pattern, strict=True)
        return pa.array(
            [row(text.as_py(), like.as_py()) if text.is_valid and like.is_valid else None for text, like in pairs],
            pa.bool_(),
        )

    return Function(
        name,
        fixed([VARCHAR, VARCHAR], BOOLEAN),
        lambda _: batch,
        lambda _: row,
        symbol=name.upper(),
        can_fail=fails_unless_constant(row),
    )


def _escaped_by(pattern: str, escape: str) -> str:
    r"""Rewrite a pattern to the escape character backslash: '10!%' becomes '10\%'."""
    if len(escape) > 1:
        raise escape_error(f"{escape!r} is not one character, as an escape character must be")
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append("\\" + next(characters, ""))
        else:
            parts.append("\\\\" if character == "\\" else character)
    return "".join(parts)


@lru_cache(maxsize=1024)
def similar_expression(pattern: str) -> str:
    r"""Translate SQL's regular expression to one of RE2: `%` and `_` are those of LIKE, `.`, `^`, `$` are characters.

    >>> similar_expression("(a|b)%.")
    '(?s)\\A(?:(a|b).*\\.)\\z'
    """
    parts: list[str] = []
    within = False
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise escape_error("the SIMILAR TO pattern ends with its escape character")
            parts.append(re.escape(escaped))
        elif within:
            parts.append(character)
        else:
            parts.append({"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}.get(character, character))
        within = character == "[" or (within and character != "]")
    return rf"(?s)\A(?:{''.join(parts)})\z"


def _is_similar(value: Datum, pattern: str) -> Datum:
    return pc.match_substring_regex(value, similar_expression(pattern))


def _letters(name: str, kernel: Callable[..., Datum]) -> Function:
    """Change the case of letters by Arrow in the row kernel too.

    Python's `"ß".upper()` is two letters, Arrow's is one.
    """
    return Function(name, fixed([VARCHAR], VARCHAR), lambda _: kernel, lambda _: lambda value: _one(kernel, value))


def _one(kernel: Callable[..., Datum], value: str) -> Any:
    return kernel(pa.scalar(value)).as_py()


def _counted(kernel: Callable[[Datum], Datum]) -> Callable[[Datum], Datum]:
    return lambda value: pc.cast(kernel(value), pa.int64())


FUNCTIONS = (
    _like("like", ignore_case=False),
    _like("ilike", ignore_case=True),
    plain_function("like pattern", [VARCHAR, VARCHAR], VARCHAR, _escaped_by, can_fail=True),
    by_pattern("similar to", [VARCHAR, VARCHAR], BOOLEAN, _is_similar, symbol="SIMILAR TO"),
    _letters("upper", pc.utf8_upper),
    _letters("lower", pc.utf8_lower),
    overloaded(
        "length",
        Overload(fixed([VARCHAR], BIGINT), lambda _: _counted(pc.utf8_length), lambda _: len),
        Overload(fixed([VARBINARY], BIGINT), lambda _: _counted(pc.binary_length), lambda _: len),
        hints=(VARCHAR,),
    ),
)


_LAST = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def like_prefix(pattern: str) -> tuple[str, bool]:
    """Return the text that strings matching a LIKE pattern begin with, and whether `text%` is the whole pattern.

    >>> like_prefix("ab%"), like_prefix("ab%c"), like_prefix("a_"), like_prefix("10\\\\%%"), like_prefix("ab")
    (('ab', True), ('ab', False), ('a', False), ('10%', True), ('ab', False))
    """
    prefix: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character in {"%", "_"}:
            return "".join(prefix), character == "%" and next(characters, None) is None
        if character == "\\":
            character = next(characters, "")  # noqa: PLW2901  a pattern that ends so is refused where it is matched
        prefix.append(character)
    return "".join(prefix), False


def following(prefix: str) -> str | None:
    """Return the least string above all that begin with the prefix; None where there is none.

    >>> following("ab"), following("a\U0010ffff"), following("")
    ('ac', 'b', None)
    """
    for length in range(len(prefix), 0, -1):
        code = ord(prefix[length - 1])
        if code < _LAST:
            after = _AFTER_SURROGATES if code == _BEFORE_SURROGATES else code + 1
            return prefix[: length - 1] + chr(after)
    return None
