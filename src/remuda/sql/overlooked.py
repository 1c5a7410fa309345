"""What sqlglot's parser reads over without a word: found in the tokens of a query that it has taken for a good one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from remuda.errors import parsing_error
from remuda.sql.tokens import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def refuse_overlooked(tokens: Sequence[Token]) -> None:
    _refuse_open_parentheses(tokens)
    _refuse_clauses_twice(tokens)
    _refuse_qualified_using(tokens)
    for token, following in pairwise(tokens):
        if token.token_type is TokenType.SELECT and following.token_type is TokenType.ALIAS:
            raise _not_expected(following)
        if token.token_type is TokenType.ALIAS and following.token_type in _NO_NAME:
            raise parsing_error("AS needs a name behind it", span=span_of(token))
    if tokens[-1].token_type is TokenType.ALIAS:
        raise parsing_error("AS needs a name behind it", span=span_of(tokens[-1]))


_NO_NAME = frozenset({TokenType.COMMA, TokenType.R_PAREN})


def refuse_missing_into(tokens: Sequence[Token]) -> None:
    """`INSERT orders VALUES (1)`: before the parse, for another complaint might come first."""
    for place, token in enumerate(tokens):
        if token.token_type is not TokenType.INSERT or (
            place and tokens[place - 1].token_type is not TokenType.R_PAREN
        ):
            continue
        following = tokens[place + 1 : place + 4]
        if following and following[0].token_type is TokenType.OR:  # INSERT OR IGNORE INTO
            following = following[2:]
        if following and following[0].token_type is not TokenType.INTO:
            raise parsing_error(f"expected INTO, found {following[0].text!r}", span=span_of(following[0]))


def _refuse_qualified_using(tokens: Sequence[Token]) -> None:
    """`JOIN u USING (nosuch.id)`: a name in USING is one of both sides, so that it has no table."""
    within = False
    for token, following in pairwise(tokens):
        if token.token_type is TokenType.USING:
            within = following.token_type is TokenType.L_PAREN
        elif token.token_type is TokenType.R_PAREN:
            within = False
        elif within and following.token_type is TokenType.DOT:
            raise parsing_error("USING takes names of columns without their table", span=span_of(token))


def _refuse_open_parentheses(tokens: Sequence[Token]) -> None:
    """`SELECT CAST(1 AS INTEGER`, `SELECT EXTRACT(YEAR FROM day FROM orders`"""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type is TokenType.R_PAREN and opened:
            opened.pop()
    if opened:
        raise parsing_error("( is never closed", span=span_of(opened[-1]))


def _refuse_clauses_twice(tokens: Sequence[Token]) -> None:
    """`UPDATE orders SET a = 1 SET b = 2`, `UPDATE ... WHERE id = 1 WHERE id = 2`: only the last would count."""
    depth = 0
    seen: set[TokenType] | None = None
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.UPDATE and seen is None and before in {None, TokenType.R_PAREN}:
            seen = set()  # the verb, at the beginning or behind WITH; not that of ON CONFLICT DO UPDATE
        elif not depth and seen is not None and kind in _ONCE and before is not TokenType.DISTINCT:
            if kind in seen:
                raise _not_expected(token)
            seen.add(kind)
        before = kind


_ONCE = frozenset({TokenType.SET, TokenType.FROM, TokenType.WHERE})


def _not_expected(token: Token) -> Exception:
    return parsing_error(f"{token.text!r} is not expected here", span=span_of(token))
