"""Definitions that hold a query: CREATE VIEW, CREATE TABLE AS, COPY."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, get_args

from sqlglot.tokens import Token, TokenType

from remuda.dataclass import dataclass
from remuda.errors import bad_argument, nearest, parsing_error, unknown_object
from remuda.sql.parse.parse_query import begins_select, parse_query
from remuda.sql.parse.statements import CopyFrom, CopyTo, CreateMapAs, CreateView, CsvOptions, DropView
from remuda.storage import LoadMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.errors import Span
    from remuda.sql.parse.cursor import Cursor
    from remuda.sql.parse.statements import Name, Query, TableOptions

_SWITCH = ("true", "false", "on", "off")
_OPTIONS: dict[str, tuple[str, ...] | None] = {
    "FORMAT": None,
    "MODE": get_args(LoadMode),
    "HEADER": _SWITCH,
    "DELIMITER": (),
    "NULL": (),
    "COMPRESSION": None,
    "OVERWRITE": _SWITCH,
}
"""Of COPY: the words that an option takes; None where any word is one, nothing where it takes a text in quotes."""
_OF_CSV = ("HEADER", "DELIMITER", "NULL")
_FROM = ("FORMAT", "MODE", *_OF_CSV)
_TO = ("FORMAT", "HEADER", "DELIMITER", "COMPRESSION", "PARTITION_BY", "OVERWRITE")


def parse_create_view(cursor: Cursor, *, or_replace: bool = False) -> CreateView:
    """Parse `CREATE [OR REPLACE] VIEW name [(column, ...)] AS query`."""
    if_not_exists = not or_replace and cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a view")
    columns = cursor.names() if cursor.at("(") else ()
    cursor.expect("AS")
    query, text = _rest(cursor)
    return CreateView(name, columns, query, text.strip(), or_replace, if_not_exists)


def parse_create_or_replace_view(cursor: Cursor) -> CreateView:
    return parse_create_view(cursor, or_replace=True)


def parse_drop_view(cursor: Cursor) -> DropView:
    if_exists = cursor.accept("IF", "EXISTS")
    return DropView(cursor.name("the name of a view"), if_exists)


def parse_create_map_as(
    cursor: Cursor,
    name: Name,
    key: tuple[Name, ...],
    partitioned_by: tuple[Name, ...],
    *,
    replicated: bool,
    if_not_exists: bool,
    options: TableOptions,
) -> CreateMapAs:
    cursor.expect("AS")
    query, text = _rest(cursor)
    return CreateMapAs(name, key, partitioned_by, replicated, query, text, if_not_exists, options=options)


def _rest(cursor: Cursor) -> tuple[Query, str]:
    """Parse the query that the statement ends with."""
    if not begins_select(cursor):
        raise cursor.unexpected("a query")
    tokens = cursor.tokens[cursor.position :]
    cursor.position = len(cursor.tokens)
    return _query_of(cursor, tokens)


def _query_of(cursor: Cursor, tokens: Sequence[Token]) -> tuple[Query, str]:
    """Parse a query from some tokens; its text has the offsets of the statement's text."""
    start, end = tokens[0].start, tokens[-1].end + 1
    before = re.sub(r"[^\n]", " ", cursor.text[:start])
    return parse_query(tokens, cursor.text), before + cursor.text[start:end]


def parse_copy(cursor: Cursor) -> CopyFrom | CopyTo:
    """Parse `COPY map FROM 'path' [(FORMAT csv, MODE append)]` and `COPY map | (query) TO 'path' [(FORMAT csv)]`."""
    begin = cursor.position
    if cursor.at("("):
        inside = _parenthesised(cursor)
        query, text = _query_of(cursor, inside)
        cursor.expect("TO")
    else:
        name = cursor.name("the name of a table or a query in parentheses")
        if cursor.accept("FROM"):
            span = cursor.span
            path = cursor.string("the path of a file, in quotes")
            options = _options(cursor, _FROM)
            mode = options.values.get("MODE", "append")
            return CopyFrom(name, path, span, options.values.get("FORMAT"), mode, options.csv, options.spans)
        named = cursor.tokens[begin : cursor.position]
        cursor.expect("TO")
        first = named[0]
        table = Token(TokenType.TABLE, "TABLE", first.line, first.col, first.start, first.end, [])
        query = parse_query([table, *named], cursor.text)
        text = f"TABLE {cursor.text[first.start : named[-1].end + 1]}"
    span = cursor.span
    path = cursor.string("the path of a file, in quotes")
    options = _options(cursor, _TO)
    values = options.values
    return CopyTo(
        query,
        text,
        path,
        span,
        values.get("FORMAT"),
        options.csv,
        values.get("COMPRESSION"),
        options.partition_by,
        values.get("OVERWRITE") in {"true", "on"},
        options.spans,
    )


def _parenthesised(cursor: Cursor) -> list[Token]:
    """Return the tokens between the parenthesis that comes next and its counterpart."""
    cursor.expect("(")
    if not begins_select(cursor):
        raise cursor.unexpected("a query")
    inside: list[Token] = []
    depth = 1
    while True:
        token = cursor.take(")")
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return inside
        inside.append(token)


@dataclass(slots=True)
class _Options:
    """The options of a COPY by their names, and where the value of each stands."""

    values: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[Name, ...] = ()
    spans: dict[str, Span] = field(default_factory=dict)

    @property
    def csv(self) -> CsvOptions | None:
        """Those of CSV files; None where none is given."""
        if not any(option in self.values for option in _OF_CSV):
            return None
        header = self.values.get("HEADER", "true") in {"true", "on"}
        return CsvOptions(header, self.values.get("DELIMITER", ","), self.values.get("NULL"))


def _options(cursor: Cursor, known: Sequence[str]) -> _Options:
    """Read `[WITH] (FORMAT csv, PARTITION_BY (a, b), ...)`."""
    found = _Options()
    cursor.accept("WITH")
    if not cursor.accept("("):
        return found
    while True:
        span = cursor.span
        option = "PARTITION_BY" if cursor.accept("PARTITION", "BY") else cursor.take("an option").text.upper()
        if option not in known:
            raise unknown_object(f"unknown option: {option}", span=span, suggestion=nearest(option, known))
        if option in found.spans:
            raise parsing_error(f"{option} is given twice", span=span)
        found.spans[option] = cursor.span
        if option == "PARTITION_BY":
            found.partition_by = cursor.names() if cursor.at("(") else (cursor.name("a column"),)
        else:
            found.values[option] = _option_value(cursor, option, _OPTIONS[option])
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _option_value(cursor: Cursor, option: str, choices: tuple[str, ...] | None) -> str:
    position = cursor.span
    if choices == ():
        text = cursor.string("a text in quotes")
        if option == "DELIMITER" and len(text) != 1:
            raise bad_argument("DELIMITER takes one character", span=position)
        if option == "DELIMITER" and (text in '\0\r\n"' or not text.isascii()):
            raise bad_argument("DELIMITER takes an ASCII character that is no quote and no line break", span=position)
        return text
    if choices is _SWITCH and (cursor.at(",") or cursor.at(")")):
        return "true"
    value = cursor.take("a word" if choices is None else " or ".join(choices)).text.casefold()
    if choices is not None and value not in choices:
        message = f"{option} must be {', '.join(choices[:-1])} or {choices[-1]}, not {value}"
        raise bad_argument(message, span=position)
    return value
