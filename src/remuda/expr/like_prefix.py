"""What strings that match a LIKE pattern begin with, and the range in which they lie."""

from __future__ import annotations

_LAST = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def like_prefix(pattern: str) -> tuple[str, bool]:
    """The text before the first wildcard, and whether `text%` is all there is to the pattern.

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
    """The least string above all that begin with the prefix; None where there is none.

    >>> following("ab"), following("a\U0010ffff"), following("")
    ('ac', 'b', None)
    """
    for length in range(len(prefix), 0, -1):
        code = ord(prefix[length - 1])
        if code < _LAST:
            after = _AFTER_SURROGATES if code == _BEFORE_SURROGATES else code + 1
            return prefix[: length - 1] + chr(after)
    return None
