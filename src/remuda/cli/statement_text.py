"""Cut SQL text into tokens, and a script into statements and the shell's commands, without parsing any of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*|/\*)                              # the end of a comment in brackets is looked for below
    | (?P<string>[eE]'(?:[^'\\]|\\.|'')*+'|'(?:[^']|'')*+'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<name>"(?:[^"]|"")*+")
    | (?P<open>[eE]?'|"|\$\w*\$)                             # one of the above, not yet closed
    | (?P<number>\d[\w.]*|\.\d\w*)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<semicolon>;)
    | (?P<command>\\[^\n]*)                                  # to the end of its line
    | (?P<operator>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_DOT_COMMAND = re.compile(r"\.[a-z]+\b[^\n]*")
_BLANK = frozenset({"space", "comment"})


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL text; `kind` is a group of the pattern above, `open` what reaches to the end unclosed."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """Split a statement into tokens.

    >>> [(each.kind, each.text) for each in tokens("a=1.5 -- x")]
    [('word', 'a'), ('operator', '='), ('number', '1.5'), ('space', ' '), ('comment', '-- x')]
    """
    while start < len(text):
        found = _TOKEN.match(text, start)
        assert found is not None, "any character is an operator"
        kind, end = str(found.lastgroup), found.end()
        if found[0] == "/*":
            end = _end_of_comment(text, end)
            kind = "comment" if end >= 0 else "open"
        if kind == "open":
            end = len(text)
        yield Token(kind, text[start:end], start)
        start = end


def _end_of_comment(text: str, at: int) -> int:
    """Return where a comment ends that may have others in it; -1 where it does not end."""
    depth = 1
    while depth:
        found = _COMMENT_MARK.search(text, at)
        if found is None:
            return -1
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement without its semicolon, or a command of the shell, and where in the text it begins.

    A command at the end of a statement takes the semicolon's place: `SELECT 1 \\watch 2` is a command with a statement.
    """

    text: str
    start: int
    command: str | None = None
    """The command with its arguments; `text` is then the statement before it, or empty."""


def split(text: str) -> tuple[list[Piece], Piece | None]:
    """Return the complete pieces, and the statement that still waits for its semicolon.

    >>> [piece.text for piece in split("SELECT ';'; SELECT 2 -- ; not here\\n;")[0]]
    ["SELECT ';'", 'SELECT 2 -- ; not here']
    >>> split("SELECT $$c;")
    ([], Piece(text='SELECT $$c;', start=0, command=None))
    >>> split("\\\\d t\\nSELECT 1 \\\\watch")[0]
    [Piece(text='', start=0, command='\\\\d t'), Piece(text='SELECT 1', start=5, command='\\\\watch')]
    """
    pieces: list[Piece] = []
    first: int | None = None
    position = 0
    while position < len(text):
        for token in tokens(text, position):
            position = token.end
            if first is None and token.text[0] == "." and (dotted := _DOT_COMMAND.match(text, token.start)):
                pieces.append(Piece("", token.start, _command(dotted[0])))
                position = dotted.end()
                break
            if token.kind == "command":
                before = "" if first is None else text[first : token.start].strip()
                pieces.append(Piece(before, token.start if first is None else first, _command(token.text)))
                first = None
            elif token.kind == "semicolon":
                if first is not None:
                    pieces.append(Piece(text[first : token.start].strip(), first))
                first = None
            elif first is None and token.kind not in _BLANK:
                first = token.start
    return pieces, None if first is None else Piece(text[first:].strip(), first)


def _command(text: str) -> str:
    return text.strip().rstrip(";").rstrip()


def first_word(text: str) -> str:
    """Return the word that says what kind of statement it is.

    >>> first_word("-- all of them\\n delete FROM t")
    'DELETE'
    """
    return next((token.text.upper() for token in tokens(text) if token.kind not in _BLANK), "")


def line_of(text: str, offset: int) -> int:
    """Return the number of the line in which an offset lies, from 1."""
    return text.count("\n", 0, offset) + 1


def quoted(name: str) -> str:
    """Return a name as SQL takes it; upper and lower case are the same there.

    >>> quoted("orders"), quoted("Two words"), quoted("a\\"b"), quoted("order")
    ('orders', '"Two words"', '"a""b"', '"order"')
    """
    is_plain = name.isidentifier() and name.isascii() and name.upper() not in _RESERVED
    return name if is_plain else '"' + name.replace('"', '""') + '"'


# fmt: off
_RESERVED = frozenset((
    "ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CONSTRAINT", "CREATE", "CROSS", "CUBE",
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE", "END",
    "EXCEPT", "EXISTS", "FALSE", "FETCH", "FROM", "FULL", "GROUP", "GROUPING", "HAVING", "IF", "ILIKE", "IN",
    "INNER", "INSERT", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL",
    "NOT", "NULL", "OFFSET", "ON", "ONLY", "OR", "ORDER", "OUTER", "OVER", "PRIMARY", "QUALIFY", "RIGHT", "ROLLUP",
    "ROWS", "SELECT", "SET", "TABLE", "THEN", "TRUE", "UNION", "UPDATE", "USING", "VALUES", "WHEN", "WHERE",
    "WINDOW", "WITH",
))
# fmt: on
"""Words that are names only in quotes, at least in some places."""
