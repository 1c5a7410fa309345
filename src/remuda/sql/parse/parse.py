"""From text to a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remuda.errors import Span, SqlError, nearest, not_supported, parsing_error, too_complex
from remuda.sql.parse import other_names
from remuda.sql.parse.cursor import Cursor
from remuda.sql.parse.misspelled import refuse_missing_from, with_keyword
from remuda.sql.parse.parse_query import QUERIES, begins_query, parse_query
from remuda.sql.parse.statements import Explain, ExplainFormat, ExplainMode
from remuda.sql.parse.tokens import span_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokens import Token

    from remuda.sql.parse.statements import Statement


LONGEST_CODE = 4_000_000
"""Characters of a statement outside of quotes."""
_QUOTED = re.compile("'[^']*'")


def parse(text: str) -> Statement:
    """Parses one statement; everything wrong is an error with its place."""
    if len(text) > LONGEST_CODE:
        _refuse_long_code(text)
    tokens = tokenize(text)
    if not tokens:
        raise parsing_error("there is no statement", span=Span(0, len(text)))
    cursor = Cursor(tokens, text)
    if cursor.at("EXPLAIN"):
        return _parse_explain(cursor)
    if begins_query(cursor):
        try:
            refuse_missing_from(tokens)
            return parse_query(tokens, text)
        except SqlError as error:
            raise with_keyword(error, tokens) from error.__cause__
    from remuda.sql.parse.definition_parser import DEFINITIONS

    for keywords, parse_definition in DEFINITIONS:
        if cursor.accept(*keywords):
            statement = parse_definition(cursor)
            cursor.finish()
            return statement
    raise _unknown_statement(tokens)


def _refuse_long_code(text: str) -> None:
    """Refuse millions of tokens, which would take minutes. Texts in quotes may be as long as they like."""
    code = len(text) - sum(found.end() - found.start() for found in _QUOTED.finditer(text))
    if code > LONGEST_CODE:
        raise too_complex(
            f"the statement has {code:,} characters outside of quotes: {LONGEST_CODE:,} are possible",
            suggestion="Give values as parameters, or load many rows with COPY or grid.load.",
        )


def _unknown_statement(tokens: Sequence[Token]) -> SqlError:
    from remuda.sql.parse.definition_parser import DEFINITIONS

    first = tokens[0].text
    if first.upper() in {"CREATE", "DROP"} and len(tokens) > 1:
        written = f"{first} {tokens[1].text}"
        kinds = {keywords[-1]: " ".join(keywords) for keywords, _ in DEFINITIONS if keywords[0] == first.upper()}
        hint = kinds.get(nearest(tokens[1].text, kinds) or "")
    else:
        written = first
        known = {word: word for word in (*QUERIES, "EXPLAIN", "CREATE", "DROP")}
        known |= {keywords[0]: " ".join(keywords) for keywords, _ in DEFINITIONS if keywords[0] not in known}
        hint = known.get(nearest(first, known) or "")
    span = span_of(tokens[1] if written != first else tokens[0])
    if written.upper() in other_names.STATEMENTS:
        hint = other_names.STATEMENTS[written.upper()]
        return not_supported(f"{written.upper()} is not supported", span=span, suggestion=hint)
    return parsing_error(f"unknown statement: {written}", span=span, suggestion=hint)


def _parse_explain(cursor: Cursor) -> Explain:
    """Parse `EXPLAIN [ANALYZE] [FRAGMENTS | STEPS | LOGICAL | MEMO] query` or `EXPLAIN (FORMAT JSON, ...) query`."""
    cursor.position += 1
    options = _ExplainOptions(cursor)
    if cursor.at("(") and not any(cursor.at("(", word) for word in ("(", "SELECT", "VALUES", "WITH")):
        cursor.expect("(")
        while True:
            if not (options.accept_word() or options.accept_format()):
                raise options.unknown()
            if not cursor.accept(","):
                break
        cursor.expect(")")
    else:
        while options.accept_word():
            pass
    if not begins_query(cursor):
        error = cursor.unexpected("a query to explain")
        error.suggestion = _near_option(cursor)
        raise error
    query = parse_query(cursor.tokens[cursor.position :], cursor.text)
    return Explain(query, options.mode, options.analyze, options.format)


def _near_option(cursor: Cursor) -> str | None:
    return None if cursor.current is None else nearest(cursor.current.text, _OPTIONS)


class _ExplainOptions:
    """Reads the options of EXPLAIN, each at most once, and refuses those that do not go together, at their places."""

    def __init__(self, cursor: Cursor) -> None:
        self.analyze = False
        self.mode = ExplainMode.PLAN
        self.format = ExplainFormat.TEXT
        self._cursor = cursor
        self._given: set[str] = set()

    def accept_word(self) -> bool:
        """Read ANALYZE or what shall be shown; False where neither comes next."""
        cursor = self._cursor
        span = cursor.span
        if cursor.accept("ANALYZE"):
            self._refuse_second("ANALYZE", span)
            self.analyze = not cursor.accept("FALSE")
            cursor.accept("TRUE")
        elif (mode := next((each for each in _MODES if cursor.accept(each.value)), None)) is not None:
            self._refuse_second(mode.value, span)
            if self.mode is not ExplainMode.PLAN:
                raise parsing_error(f"EXPLAIN shows {self.mode.value} or {mode.value}, not both", span=span)
            self.mode = mode
        else:
            return False
        if self.analyze and not self.mode.is_plan:
            raise parsing_error(f"EXPLAIN ANALYZE shows the plan, not {self.mode.value}", span=span)
        self._refuse_picture(span)
        return True

    def accept_format(self) -> bool:
        cursor = self._cursor
        span = cursor.span
        if not cursor.accept("FORMAT"):
            return False
        self._refuse_second("FORMAT", span)
        found = next((each for each in ExplainFormat if cursor.accept(each.value)), None)
        if found is None:
            raise cursor.unexpected("TEXT, JSON, HTML or SVG")
        self.format = found
        self._refuse_picture(span)
        return True

    def unknown(self) -> SqlError:
        error = self._cursor.unexpected(f"{', '.join(_OPTIONS[:-1])} or {_OPTIONS[-1]}")
        error.suggestion = _near_option(self._cursor)
        return error

    def _refuse_picture(self, span: Span) -> None:
        if self.format.is_picture and not self.mode.is_plan:
            raise parsing_error(f"FORMAT {self.format.value} shows the plan, not {self.mode.value}", span=span)

    def _refuse_second(self, option: str, span: Span) -> None:
        if option in self._given:
            raise parsing_error(f"{option} is given twice", span=span)
        self._given.add(option)


_MODES = tuple(mode for mode in ExplainMode if mode is not ExplainMode.PLAN)
_OPTIONS = ("ANALYZE", "FORMAT", *(mode.value for mode in _MODES))
