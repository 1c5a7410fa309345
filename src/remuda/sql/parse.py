"""From text to a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from remuda.errors import Span, nearest, parsing_error
from remuda.sql.cursor import Cursor
from remuda.sql.definitions import DEFINITIONS
from remuda.sql.places import locate
from remuda.sql.statements import Explain, ExplainMode, Query
from remuda.sql.tokens import DIALECT, number_parameters, span_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.statements import Statement

NESTED_TOO_DEEPLY = "the statement is nested too deeply"
QUERIES = ("SELECT", "INSERT", "SINK", "UPDATE", "DELETE", "VALUES", "WITH")


def parse(text: str) -> Statement:
    """Parses one statement; everything wrong is an error with its place."""
    tokens = tokenize(text)
    if not tokens:
        raise parsing_error("there is no statement", span=Span(0, len(text)))
    cursor = Cursor(tokens, text)
    if cursor.at("EXPLAIN") or cursor.at("DESCRIBE"):
        return _parse_explain(cursor, text)
    if _begins_query(cursor):
        return _parse_query(tokens, text)
    for keywords, parse_definition in DEFINITIONS:
        if cursor.accept(*keywords):
            statement = parse_definition(cursor)
            cursor.finish()
            return statement
    known = [*QUERIES, "EXPLAIN", *(" ".join(keywords) for keywords, _ in DEFINITIONS)]
    written = (
        " ".join(token.text for token in tokens[:2]) if tokens[0].text.upper() in {"CREATE", "DROP"} else tokens[0].text
    )
    span = Span(tokens[0].start, tokens[0].start + len(written))
    raise parsing_error(f"unknown statement: {written}", span=span, suggestion=nearest(written, known))


def _begins_query(cursor: Cursor) -> bool:
    return cursor.at("(") or any(cursor.at(keyword) for keyword in QUERIES)


def _parse_explain(cursor: Cursor, text: str) -> Explain:
    cursor.place += 1
    mode = next(
        (mode for mode in ExplainMode if mode is not ExplainMode.PLAN and cursor.accept(mode.value)), ExplainMode.PLAN
    )
    if cursor.at("(") or cursor.at("ANALYZE"):
        raise parsing_error("this form of EXPLAIN is not supported yet", span=cursor.span)
    if not _begins_query(cursor):
        raise cursor.unexpected("a query to explain")
    return Explain(_parse_query(list(cursor.tokens[cursor.place :]), text), mode)


def _parse_query(tokens: list[Token], text: str) -> Query:
    first = tokens[0]
    upsert = first.text.upper() == "SINK"
    if upsert:
        tokens = [Token(TokenType.INSERT, "INSERT", first.line, first.col, first.start, first.end, []), *tokens[1:]]
    numbered, parameters = number_parameters(tokens)
    try:
        trees = DIALECT.parser().parse(numbered, text)
    except ParseError as error:
        raise _located(error, numbered) from error
    except RecursionError:
        raise parsing_error(NESTED_TOO_DEEPLY, span=span_of(first)) from None
    tree = trees[0]
    assert isinstance(tree, exp.Expression), "there are tokens"
    locate(tree, numbered, parameters)
    return Query(tree, span_of(first), parameters, upsert)


def _located(error: ParseError, tokens: Sequence[Token]) -> Exception:
    """sqlglot gives the line and the last column of the token it blames."""
    first = error.errors[0]
    place = (first.get("line"), first.get("col"))
    blamed = next((token for token in tokens if (token.line, token.col) == place), tokens[-1])
    description = str(first.get("description") or "the statement cannot be read").partition(" but got")[0]
    if blamed is tokens[-1] and description.startswith(("Expect", "Required")):
        end = span_of(blamed).end
        return parsing_error("the statement ends too early", span=Span(end, end + 1))
    if description.startswith(("Invalid expression", "Required keyword")):
        description = f"{blamed.text!r} is not expected here"
    return parsing_error(
        description.replace("Expecting", "expected").replace("Expected", "expected"), span=span_of(blamed)
    )
