"""From text to a statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remuda.errors import Span, nearest, parsing_error
from remuda.sql.parse.cursor import Cursor
from remuda.sql.parse.definition_parser import DEFINITIONS
from remuda.sql.parse.parse_query import QUERIES, begins_query, parse_query
from remuda.sql.parse.statements import Explain, ExplainFormat, ExplainMode
from remuda.sql.parse.tokens import span_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokens import Token

    from remuda.errors import SqlError
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
        return parse_query(tokens, text)
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
        raise parsing_error(
            f"the statement has {code:,} characters outside of quotes: {LONGEST_CODE:,} are possible",
            suggestion="Give values as parameters, or load many rows with COPY or grid.load.",
        )


def _unknown_statement(tokens: Sequence[Token]) -> SqlError:
    first = tokens[0].text
    if first.upper() in {"CREATE", "DROP"} and len(tokens) > 1:
        written = f"{first} {tokens[1].text}"
        kinds = {keywords[-1]: " ".join(keywords) for keywords, _ in DEFINITIONS if keywords[0] == first.upper()}
        hint = kinds.get(nearest(tokens[1].text, kinds) or "")
    else:
        written = first
        hint = nearest(first, [*QUERIES, "EXPLAIN", *(keywords[0] for keywords, _ in DEFINITIONS)])
    span = span_of(tokens[1] if written != first else tokens[0])
    return parsing_error(f"unknown statement: {written}", span=span, suggestion=hint)


def _parse_explain(cursor: Cursor) -> Explain:
    """`EXPLAIN [ANALYZE] [LOGICAL | MEMO] query` or `EXPLAIN (FORMAT JSON, ANALYZE, ...) query`"""
    cursor.position += 1
    analyze, shape, mode = False, ExplainFormat.TEXT, ExplainMode.PLAN
    if cursor.at("(") and not cursor.at("(", "SELECT") and not cursor.at("(", "("):
        analyze, shape, mode = _explain_options(cursor)
    else:
        analyze = cursor.accept("ANALYZE")
        mode = _explain_mode(cursor) or mode
    if analyze and mode is not ExplainMode.PLAN:
        raise parsing_error(f"EXPLAIN ANALYZE shows the plan, not {mode.value}", span=cursor.span)
    if not begins_query(cursor):
        raise cursor.unexpected("a query to explain")
    return Explain(parse_query(cursor.tokens[cursor.position :], cursor.text), mode, analyze, shape)


def _explain_mode(cursor: Cursor) -> ExplainMode | None:
    modes = (mode for mode in ExplainMode if mode is not ExplainMode.PLAN)
    return next((mode for mode in modes if cursor.accept(mode.value)), None)


def _explain_options(cursor: Cursor) -> tuple[bool, ExplainFormat, ExplainMode]:
    analyze, shape, mode = False, ExplainFormat.TEXT, ExplainMode.PLAN
    cursor.expect("(")
    while True:
        if cursor.accept("ANALYZE"):
            analyze = not cursor.accept("FALSE")
            cursor.accept("TRUE")
        elif cursor.accept("FORMAT"):
            found = next((each for each in ExplainFormat if cursor.accept(each.value)), None)
            if found is None:
                raise cursor.unexpected("TEXT or JSON")
            shape = found
        else:
            chosen = _explain_mode(cursor)
            if chosen is None:
                raise cursor.unexpected("ANALYZE, FORMAT, LOGICAL or MEMO")
            mode = chosen
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return analyze, shape, mode
