"""Text on a terminal: the columns that it takes, and characters that the terminal would obey."""

from __future__ import annotations

from unicodedata import category, combining, east_asian_width

_TURNS = frozenset(map(chr, [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def printable(text: str) -> str:
    """Escape the characters that a terminal would obey, of a value, a name or a message.

    >>> printable("a" + chr(27) + "[2J" + chr(0x9B) + "b")
    'a\\\\x1b[2J\\\\x9bb'
    """
    if text.isprintable():
        return text
    return "".join(_escaped(character) if _commands_terminal(character) else character for character in text)


def _commands_terminal(character: str) -> bool:
    """Control characters but line breaks and tabs, and those that turn the direction of writing."""
    if character in _TURNS:
        return True
    return character not in "\n\t" and category(character) in {"Cc", "Cs", "Zl", "Zp"}


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def width_of(text: str) -> int:
    """Return the columns on a terminal: East Asian characters take two, marks on another character none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) or category(character) == "Cf" else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut(text: str, width: int) -> str:
    """
    >>> cut("saddle", 6), cut("saddles", 6), cut("馬馬馬馬", 6)
    ('saddle', 'saddl…', '馬馬…')
    """
    if width_of(text) <= width:
        return text
    used = 0
    for at, character in enumerate(text):
        used += width_of(character)
        if used > width - 1:
            return text[:at] + "…"
    return text
