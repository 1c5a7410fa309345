"""Blame a misspelled keyword rather than the word behind it, at which the parser stumbles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import TokenType

from remuda.errors import SqlError, nearest, not_supported, parsing_error
from remuda.sql.parse.tokens import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokens import Token

    from remuda.errors import Span

_KEYWORDS = (
    *("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "JOIN", "INNER", "LEFT", "UNION", "VALUES"),
    *("SET", "INTO", "BETWEEN", "LIKE", "AND", "SELECT", "DISTINCT", "CONFLICT", "RETURNING"),
)


def with_keyword(error: SqlError, tokens: Sequence[Token]) -> SqlError:
    """Return the error, or one that names the word before its span where that is nearly a keyword."""
    at = _index_at(tokens, error.span)
    if at is None:
        return error
    if tokens[at - 1].text.upper() == "TOP" and tokens[at].token_type is TokenType.NUMBER:
        hint = f"Use LIMIT {tokens[at].text} at the end of the query."
        return not_supported("TOP is not supported", span=span_of(tokens[at - 1]), suggestion=hint)
    if tokens[0].token_type is TokenType.DELETE and tokens[at].token_type is TokenType.STAR:
        return parsing_error(
            "'*' is not expected here", span=span_of(tokens[at]), suggestion="Write DELETE FROM table."
        )
    if not error.message.endswith("is not expected here"):
        return error
    if tokens[at - 1].text.upper() == "OF" and tokens[at].text.upper() in {"VERSION", "TIMESTAMP"}:
        hint = "Write FOR VERSION AS OF n, or FOR TIMESTAMP AS OF '2024-01-31'."
        return parsing_error(error.message, span=error.span, suggestion=hint)
    for place in (at - 1, at):
        meant = _meant(tokens, place)
        if meant is not None:
            word = tokens[place]
            return parsing_error(f"{word.text!r} is not expected here", span=span_of(word), suggestion=meant)
    return error


def refuse_missing_from(tokens: Sequence[Token]) -> None:
    """Refuse `SELECT * orders`, which sqlglot reads as an alias of the star."""
    for before, star, word in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_list = before.token_type in {TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA}
        is_name = word.token_type is TokenType.VAR and word.text.upper() not in _BEHIND_STAR
        if is_list and is_name and star.token_type is TokenType.STAR and nearest(word.text, ("FROM",)) is None:
            raise parsing_error(f"FROM is missing before {word.text!r}", span=span_of(word))


_BEHIND_STAR = frozenset({"EXCLUDE", "EXCEPT", "REPLACE", "RENAME", "ILIKE", "LIKE"})


def _meant(tokens: Sequence[Token], place: int) -> str | None:
    """Return the keyword that a word is meant to be, or None.

    A word behind FROM or an operator is a name, however like a keyword it is: a keyword must stand behind a value.
    """
    token, before = tokens[place], tokens[max(place - 1, 0)]
    is_word = token.token_type is TokenType.VAR and token.text.upper() not in _KEYWORDS and len(token.text) > 2
    return nearest(token.text, _KEYWORDS) if is_word and before.token_type in _VALUES else None


_VALUES = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.STAR,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.R_PAREN,
        TokenType.PLACEHOLDER,
    }
)


def _index_at(tokens: Sequence[Token], span: Span | None) -> int | None:
    starts = [each.start for each in tokens]
    return starts.index(span.start) if span is not None and span.start in starts[1:] else None
