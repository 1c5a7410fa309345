"""Places in the text of a statement: spans, lines and columns, and the part of a line that a message shows."""

from __future__ import annotations

import re

from remuda.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the SQL text: characters `start` to `end` (exclusive)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, both counted from 1, as editors show them."""

    line: int
    column: int


def position_of(text: str, offset: int) -> Position:
    """Return the line and column of an offset.

    >>> position_of("SELECT a\\nFROM t", 9)
    Position(line=2, column=1)
    """
    before = text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


_QUOTED = re.compile(r"'[^']*'")
_CLOSING = re.compile(r"\s*\)")
_NO_ARGUMENTS = re.compile(r"\(\s*\)")

LONGEST_LINE = 120
"""What is longer, a list of a thousand keys for instance, would hide the message that stands above it."""


def with_parentheses(text: str, span: Span) -> Span:
    """Extend the span of a call to the parenthesis that ends it: the syntax tree has only its arguments.

    >>> text = "SELECT upper(a, lower(')')) FROM t"
    >>> span = with_parentheses(text, Span(7, 25))
    >>> text[span.start : span.end]
    "upper(a, lower(')'))"
    """
    written = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text[span.start : span.end])
    end = span.end
    for _ in range(written.count("(") - written.count(")")):
        closing = _CLOSING.match(text, end)
        if closing is None:
            return span
        end = closing.end()
    empty = _NO_ARGUMENTS.match(text, end) if written.isidentifier() else None
    return Span(span.start, end if empty is None else empty.end())


def excerpt(line: str, place: int) -> tuple[str, int]:
    """Return the part of a line that is shown around an offset, and the offset in it.

    >>> excerpt("SELECT amont", 7)
    ('SELECT amont', 7)
    >>> part, place = excerpt("x" * 500 + "here" + "x" * 500, 500)
    >>> len(part), part[0], part[-1], part[place : place + 4]
    (120, '…', '…', 'here')
    """
    if len(line) <= LONGEST_LINE:
        return line, place
    first = max(0, min(place - LONGEST_LINE // 2, len(line) - LONGEST_LINE))
    last = first + LONGEST_LINE
    head, tail = first > 0, last < len(line)
    return "…" * head + line[first + head : last - tail] + "…" * tail, place - first
