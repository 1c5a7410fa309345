"""The text as tokens: the only contact with sqlglot's tokenizer, and the checks that its parser does not make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from remuda.errors import Span, parsing_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.errors import SqlError


class RemudaDialect(Postgres):
    """PostgreSQL's grammar with NULL as the lowest value."""

    NULL_ORDERING = "nulls_are_small"

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()
        """Statements whose text sqlglot would otherwise not look into."""


DIALECT = RemudaDialect()


@dataclass(slots=True)
class ParameterNames:
    """The parameters of a statement: their places in the text and, for `:name`, their names."""

    names: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    positional: bool = True

    def __len__(self) -> int:
        return len(self.spans)


def span_of(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def tokenize(text: str) -> list[Token]:
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError as error:
        raise _unterminated(text) from error
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise parsing_error("one statement at a time", span=span_of(token))
    _refuse_stray_commas(tokens)
    return tokens


def _unterminated(text: str) -> SqlError:
    """sqlglot does not say where a string or comment that is never closed began."""
    position = 0
    while position < len(text):
        rest = text[position:]
        opening = next((opening for opening in _QUOTES if rest.startswith(opening)), None)
        if opening is None:
            position += 1
            continue
        end = text.find(_QUOTES[opening], position + len(opening))
        if end < 0 and opening != "--":
            return parsing_error(f"{opening} is never closed", span=Span(position, len(text)))
        position = len(text) if end < 0 else end + len(_QUOTES[opening])
    return parsing_error("the statement cannot be read")


_QUOTES = {"'": "'", '"': '"', "/*": "*/", "--": "\n"}

_MUST_NOT_FOLLOW_COMMA = frozenset(
    {
        TokenType.COMMA,
        TokenType.R_PAREN,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.HAVING,
        TokenType.LIMIT,
    }
)
_MUST_NOT_PRECEDE_COMMA = frozenset({TokenType.L_PAREN, TokenType.SELECT, TokenType.VALUES})


def _refuse_stray_commas(tokens: Sequence[Token]) -> None:
    """sqlglot accepts `SELECT a,, b` and `VALUES (1,)`."""
    for number, token in enumerate(tokens):
        if token.token_type is not TokenType.COMMA:
            continue
        following = tokens[number + 1].token_type if number + 1 < len(tokens) else TokenType.COMMA
        preceding = tokens[number - 1].token_type if number else TokenType.L_PAREN
        if following in _MUST_NOT_FOLLOW_COMMA or preceding in _MUST_NOT_PRECEDE_COMMA:
            stray = tokens[number + 1] if following is TokenType.COMMA and number + 1 < len(tokens) else token
            raise parsing_error("a comma without an expression beside it", span=span_of(stray))


def number_parameters(tokens: Sequence[Token]) -> tuple[list[Token], ParameterNames]:
    """Gives every `?` its number, in the order of the text, by naming it: `?` becomes `:#0`, `:#1`, ...

    sqlglot keeps neither the place nor the order of placeholders; a name survives its parser.
    """
    numbered: list[Token] = []
    parameters = ParameterNames()
    for index, token in enumerate(tokens):
        named = token.token_type is TokenType.COLON and _is_name_after(tokens, index)
        if token.token_type is not TokenType.PLACEHOLDER and not named:
            numbered.append(token)
            continue
        if len(parameters) and parameters.positional is named:
            raise parsing_error("? and :name cannot be mixed in one statement", span=span_of(token))
        parameters.positional = not named
        if named:
            name = tokens[index + 1].text
            if name not in parameters.names:
                parameters.spans[len(parameters.names)] = Span(token.start, tokens[index + 1].end + 1)
                parameters.names.append(name)
            numbered.append(token)
        else:
            number = len(parameters)
            parameters.spans[number] = span_of(token)
            numbered.append(Token(TokenType.COLON, ":", token.line, token.col, token.start, token.end, []))
            numbered.append(Token(TokenType.VAR, f"#{number}", token.line, token.col, token.start, token.end, []))
    return numbered, parameters


def _is_name_after(tokens: Sequence[Token], index: int) -> bool:
    """`:name` is written without a space; `a:b` of an object is not a parameter."""
    if index + 1 >= len(tokens):
        return False
    following = tokens[index + 1]
    return following.start == tokens[index].end + 1 and following.text.isidentifier()
