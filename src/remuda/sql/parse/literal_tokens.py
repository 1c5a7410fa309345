"""Rewrites literals of several tokens before the parse, so that each becomes one node with its own source offset.

sqlglot reads `INTERVAL '1 day 02:00'` as one day, takes what is added to an interval for a second part of it, and
applies the `::` after `DATE '2024-01-31'` to the text instead of the date. Here `INTERVAL 'text' unit` becomes a call
`#interval(offset)`, and `DATE 'text'::type` becomes `#literal(DATE 'text')::type`. `restore_literals` puts the nodes
back. The offset names the literal: no order of tokens or nodes is relied on (sqlglot's tree has WITH after the query).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from remuda.errors import parsing_error
from remuda.sql.parse.tokens import span_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INTERVAL = "#interval"
_LITERAL = "#literal"
_LITERALS = frozenset({TokenType.STRING, TokenType.NUMBER})
_ZONE_WORDS = (("TIME", "ZONE"), frozenset({"WITH", "WITHOUT"}))
_SINGULAR_UNITS = (
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE"),
    "CENTURY",
)
UNITS = frozenset({*_SINGULAR_UNITS, *(f"{unit}S" for unit in _SINGULAR_UNITS), "CENTURIES"})
"""The words that may follow the text of an INTERVAL. An abbreviation such as `d` is an alias there."""


class IntervalTokens(NamedTuple):
    """`INTERVAL 'text' [unit [TO unit]]`: its first and last token, and the words between."""

    first: Token
    last: Token
    text: str
    units: tuple[Token, ...]


def enclose_literals(tokens: Sequence[Token]) -> tuple[list[Token], dict[int, IntervalTokens]]:
    """Replace each literal by one call; return the tokens, and the intervals by the offset at which they begin."""
    enclosed: list[Token] = []
    intervals: dict[int, IntervalTokens] = {}
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.token_type is TokenType.INTERVAL and _kind(tokens, position + 1) in _LITERALS:
            interval, position = _read_interval(tokens, position)
            intervals[token.start] = interval
            enclosed += _call(_INTERVAL, [_made(TokenType.NUMBER, str(token.start), token, interval.last)], interval)
            continue
        is_cast = token.token_type is TokenType.STRING and _kind(tokens, position + 1) is TokenType.DCOLON
        begin = _typed_literal(tokens, position) if is_cast else position
        if begin == position:
            enclosed.append(token)
        else:
            typed = tokens[begin : position + 1]
            del enclosed[len(enclosed) - len(typed) + 1 :]
            enclosed += _call(_LITERAL, typed, IntervalTokens(typed[0], token, token.text, ()))
        position += 1
    return enclosed, intervals


def _kind(tokens: Sequence[Token], position: int) -> TokenType | None:
    return tokens[position].token_type if 0 <= position < len(tokens) else None


def _made(kind: TokenType, text: str, first: Token, last: Token) -> Token:
    return Token(kind, text, first.line, first.col, first.start, last.end, [])


def _call(name: str, arguments: Sequence[Token], literal: IntervalTokens) -> list[Token]:
    first, last = literal.first, literal.last
    return [
        _made(TokenType.VAR, name, first, last),
        _made(TokenType.L_PAREN, "(", first, first),
        *arguments,
        _made(TokenType.R_PAREN, ")", last, last),
    ]


def _read_interval(tokens: Sequence[Token], position: int) -> tuple[IntervalTokens, int]:
    """Read the interval that begins here; return it and the index of the token after it."""
    text, end = tokens[position + 1], position + 2
    units: list[Token] = []
    if _is_unit(tokens, end):
        units.append(tokens[end])
        end += 1
        if _is_word(tokens, end, "TO"):
            if not _is_unit(tokens, end + 1):
                raise parsing_error("INTERVAL needs a unit after TO", span=span_of(tokens[end]))
            units.append(tokens[end + 1])
            end += 2
        if _kind(tokens, end) is TokenType.L_PAREN:
            raise parsing_error("the unit of an INTERVAL takes no precision", span=span_of(tokens[end]))
    return IntervalTokens(tokens[position], tokens[end - 1], text.text, tuple(units)), end


def _is_word(tokens: Sequence[Token], position: int, word: str) -> bool:
    return position < len(tokens) and _is_unquoted(tokens[position]) and tokens[position].text.upper() == word


def _is_unit(tokens: Sequence[Token], position: int) -> bool:
    return position < len(tokens) and _is_unquoted(tokens[position]) and tokens[position].text.upper() in UNITS


def _is_unquoted(token: Token) -> bool:
    return token.token_type not in {TokenType.STRING, TokenType.IDENTIFIER}


def _typed_literal(tokens: Sequence[Token], position: int) -> int:
    """Return where the type before the string begins; the string's own index where there is no type."""
    begin = position - 1
    words, before = _ZONE_WORDS
    if begin > 2 and tuple(token.text.upper() for token in tokens[begin - 1 : begin + 1]) == words:
        begin -= 3 if tokens[begin - 2].text.upper() in before else 0
    if _kind(tokens, begin) is TokenType.R_PAREN:
        while begin > 0 and tokens[begin].token_type is not TokenType.L_PAREN:
            begin -= 1
        begin -= 1
    return begin if _kind(tokens, begin) in Parser.TYPE_TOKENS and not _is_member(tokens, begin) else position


def _is_member(tokens: Sequence[Token], position: int) -> bool:
    """Test for `t.date`: a column whose name is that of a type."""
    return _kind(tokens, position - 1) is TokenType.DOT


def restore_literals(tree: exp.Expression, intervals: Mapping[int, IntervalTokens]) -> exp.Expression:
    """Return the tree with the literals instead of the calls that stood for them during the parse."""
    calls: list[Any] = [node for node in tree.find_all(exp.Anonymous) if node.this in {_INTERVAL, _LITERAL}]
    for node in calls:
        inner: Any = node.expressions[0]
        restored = _interval(intervals[int(inner.this)]) if node.this == _INTERVAL else inner
        node.replace(restored)
    return tree


def _interval(written: IntervalTokens) -> exp.Interval:
    """Return a node that keeps the literal as it is written."""
    units = [exp.Var(this=word.text.upper()) for word in written.units]
    for node, word in zip(units, written.units, strict=True):
        node.meta.update(start=word.start, end=word.end)
    unit = exp.IntervalSpan(this=units[0], expression=units[1]) if len(units) > 1 else next(iter(units), None)
    interval = exp.Interval(this=exp.Literal.string(written.text), unit=unit)
    interval.meta.update(start=written.first.start, end=written.last.end, literal=written.text)
    return interval
