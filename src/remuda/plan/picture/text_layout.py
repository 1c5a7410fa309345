"""Text in a drawing: escaped, measured and broken into lines, since SVG breaks none by itself."""

from __future__ import annotations

import re
from html import escape
from unicodedata import category, east_asian_width

MONO_ADVANCE = 0.602
"""Width of a character of the monospaced fonts in `style.py`, in font sizes."""

SANS_ADVANCE = 0.6
"""Mean width of a character of a proportional font, in font sizes; a little more than most fonts need."""

_BREAKS = re.compile(r"(?<=[ ,])")


def escaped(text: str) -> str:
    """Return text as it stands in markup, be it between tags or in a quoted attribute.

    Characters that XML forbids, and those that turn the direction of what follows, are printed by their number.

    >>> escaped('<b title="x">&'), escaped("a\\0\\u202eb")
    ('&lt;b title=&quot;x&quot;&gt;&amp;', 'a\\\\x00\\\\u202eb')
    """
    return escape("".join(map(_visible, text)))


def _visible(character: str) -> str:
    if character in "\n\t":
        return " "
    if category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or character in "\ufffe\uffff":
        return (
            character.encode("ascii", "backslashreplace").decode() if character > "\xff" else f"\\x{ord(character):02x}"
        )
    return character


def cells(text: str) -> int:
    """Return how many columns of a monospaced font a text takes."""
    return sum(2 if east_asian_width(character) in "WF" else len(_visible(character)) for character in text)


def sans_width(text: str, size: float) -> float:
    """Return about how wide a text is in a proportional font of this size."""
    return cells(text) * size * SANS_ADVANCE


def shortened(text: str, columns: int) -> str:
    """Cut a text to so many columns, with an ellipsis in the place of the rest.

    >>> shortened("customer_orders", 9), shortened("orders", 9)
    ('customer…', 'orders')
    """
    return text if cells(text) <= columns else _head(text, columns - 1) + "…"


def wrapped(text: str, columns: int, most_lines: int) -> list[str]:
    """Break a text into lines, after blanks and commas where it can; what comes after the last line is cut.

    >>> wrapped("columns: id, customer, amount", 14, 3), wrapped("abcdefgh ij", 4, 2)
    (['columns: id,', 'customer,', 'amount'], ['abcd', 'efg…'])
    """
    lines = [""]
    for part in _BREAKS.split(text.replace("\n", " ")):
        if cells(lines[-1] + part.rstrip()) <= columns:
            lines[-1] += part
            continue
        rest = part
        if lines[-1]:
            lines.append("")
        while cells(rest.rstrip()) > columns:
            head = _head(rest, columns)
            lines[-1] = head
            lines.append("")
            rest = rest[len(head) :]
        lines[-1] = rest
    kept = [line.rstrip() for line in lines if line.strip()] or [""]
    if len(kept) > most_lines:
        kept = [*kept[: most_lines - 1], shortened(kept[most_lines - 1] + "…" * columns, columns)]
    return kept


def _head(text: str, columns: int) -> str:
    """Return the longest beginning that takes at most so many columns, and at least one character."""
    taken = 0
    for at, character in enumerate(text):
        taken += cells(character)
        if taken > columns:
            return text[: max(at, 1)]
    return text


def counted(number: float) -> str:
    """Print a number of rows or a cost with enough digits to compare by eye.

    >>> counted(0.0004), counted(7.25), counted(61968.4), counted(12_345_678), counted(4.2e11)
    ('0.0004', '7.25', '61,968', '12.3 M', '420 G')
    """
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if number >= 10 * size or (number >= size and unit != "M"):
            return f"{number / size:.3g} {unit}" if number < 1000 * size else f"{number / size:,.0f} {unit}"
    return f"{round(number):,}" if number >= 10 else f"{number:.3g}"


def duration(seconds: float) -> str:
    """Write a duration.

    >>> duration(0.0000042), duration(0.0123), duration(2.5)
    ('4.2 µs', '12.3 ms', '2.5 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
