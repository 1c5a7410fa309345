"""The text as tokens: the only contact with sqlglot's tokenizer, and the checks that its parser does not make."""

from __future__ import annotations

import re
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from remuda.dataclass import dataclass
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
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: token for word, token in Postgres.Tokenizer.KEYWORDS.items() if not word.startswith("?")
        } | {"**": TokenType.CARET, "//": TokenType.DIV}
        """Without `?::`, `?|`, `?&`: a question mark is a parameter, whatever follows it. With DuckDB's operators."""


DIALECT = RemudaDialect()


@dataclass(slots=True)
class ParameterNames:
    """The parameters of a statement: their places in the text and, for `:name`, their names."""

    names: list[str] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    positional: bool = True

    def __len__(self) -> int:
        return len(self.spans)

    def __bool__(self) -> bool:
        return True

    def index_of(self, written: str) -> int:
        """Return the number of a placeholder by its name in the numbered text: `name`, or `#0`."""
        return int(written[1:]) if written.startswith("#") else self.names.index(written)

    def span_of(self, written: str) -> Span | None:
        """Return where a parameter is first written, or None."""
        is_known = written.startswith("#") or written in self.names
        return self.spans[self.index_of(written)] if is_known else None

    def blamed(self, numbers: Sequence[int], span: Span | None) -> int:
        """Return the first of these parameters that an error points at; without one, the first."""
        within = [number for number in numbers if span and span.start <= self.spans[number].start < span.end]
        return (within or numbers)[0]


def span_of(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a text, which may have several statements."""
    try:
        return _with_signs_apart(DIALECT.tokenize(text), text)
    except TokenError as error:
        raise _unreadable(text, error) from error


def tokenize(text: str) -> list[Token]:
    """Return the tokens of one statement, without the semicolon at its end."""
    tokens = read_tokens(text)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise parsing_error("one statement at a time", span=span_of(token))
        if token.text == "`":
            raise parsing_error("'`' is not expected here", span=span_of(token), suggestion='A name is quoted with ".')
    _refuse_stray_commas(tokens)
    _refuse_empty_lists(tokens)
    _refuse_run_on_numbers(tokens, text)
    return tokens


_NUMBER_AND_SIGN = re.compile(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+(?P<sign>[+-])")
_RUN_ON = re.compile(r"[\d.]+[eE]\d+[+-]")


def _with_signs_apart(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens with the operators that sqlglot takes into a number: `1e3-1` is one of its numbers.

    The text is read again with `~`, which no number contains, in the place of each such operator.
    """
    signs: dict[int, str] = {}
    while run_on := [each for each in tokens if each.token_type is TokenType.NUMBER and _RUN_ON.match(each.text)]:
        for token in run_on:
            signs |= _signs_behind_exponents(text, token.start)
        apart = list(text)
        for position in signs:
            apart[position] = "~"
        tokens = DIALECT.tokenize("".join(apart))
    kinds = {"+": TokenType.PLUS, "-": TokenType.DASH}
    return [
        Token(kinds[signs[each.start]], signs[each.start], each.line, each.col, each.start, each.end, each.comments)
        if each.start in signs
        else each
        for each in tokens
    ]


def _signs_behind_exponents(text: str, position: int) -> dict[int, str]:
    """Return the operators between numbers, the first of which has an exponent: `1e3-2e0+5`."""
    signs: dict[int, str] = {}
    while number := _NUMBER_AND_SIGN.match(text, position):
        signs[number.start("sign")] = number["sign"]
        position = number.end()
    return signs


def _unreadable(text: str, error: TokenError) -> SqlError:
    """sqlglot says in the cause of its error where the token began that it could not read; of a comment, nothing."""
    unclosed = _unclosed(text)
    if unclosed is not None:
        hint = "A ' within a text is written twice: 'O''Brien'." if unclosed[0] == "'" and text.count("'") > 1 else None
        return parsing_error(f"{unclosed[0]} is never closed", span=Span(unclosed[1], len(text)), suggestion=hint)
    found = re.fullmatch(r"(.*) from \d+:(\d+)", str(error.__context__ or ""))
    return parsing_error("this is not a number", span=Span(int(found[2]) if found else 0, len(text)))


_QUOTATION = re.compile(
    r"""--[^\n]* | (?P<comment>/\*) | (?P<escaped>(?<![\w$])[eE]') | (?P<quote>['"]) | (?<![\w$])(?P<dollar>\$\w*\$)""",
    re.VERBOSE,
)


_CLOSED = {
    "'": re.compile(r"(?:[^']|'')*+'"),
    '"': re.compile(r'(?:[^"]|"")*+"'),
    "E": re.compile(r"(?:[^'\\]|\\.|'')*+'", re.DOTALL),
}
"""What follows a quotation mark, up to the one that closes it. Two of them together stand for one in the text."""


def _unclosed(text: str) -> tuple[str, int] | None:
    """Return an unclosed quotation mark or beginning of a comment, and its offset."""
    at = 0
    while (found := _QUOTATION.search(text, at)) is not None:
        match found.lastgroup:
            case "comment":
                at = _end_of_comment(text, found.end())
            case "escaped" | "quote":
                closed = _CLOSED[found[0] if found.lastgroup == "quote" else "E"].match(text, found.end())
                at = closed.end() if closed else -1
            case "dollar":
                at = text.find(found[0], found.end())
                at += len(found[0]) if at >= 0 else 0
            case _:
                at = found.end()
        if at < 0:
            return found[0].lstrip("eE"), found.start()
    return None


def _end_of_comment(text: str, at: int) -> int:
    """Return the offset after a comment that may contain others; -1 for an unclosed one."""
    depth = 1
    while depth:
        found = re.compile(r"/\*|\*/").search(text, at)
        if found is None:
            return -1
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return at


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
        TokenType.OFFSET,
    }
)
_MUST_NOT_PRECEDE_COMMA = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.SELECT,
        TokenType.DISTINCT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.SET,
        TokenType.VALUES,
    }
)


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


def _refuse_empty_lists(tokens: Sequence[Token]) -> None:
    """sqlglot accepts `OVER (PARTITION BY)`."""
    for number, token in enumerate(tokens):
        is_last = number + 1 == len(tokens) or tokens[number + 1].token_type is TokenType.R_PAREN
        if is_last and token.token_type in {TokenType.PARTITION_BY, TokenType.ORDER_BY, TokenType.GROUP_BY}:
            raise parsing_error(f"{token.text.upper()} needs an expression", span=span_of(token))


def _refuse_run_on_numbers(tokens: Sequence[Token], text: str) -> None:
    """sqlglot reads `1_000` as `1 AS _000`, `1.5x` as `1.5 AS x`, and `0x1F` as the bytes `X'1F'`."""
    for token, following in pairwise(tokens):
        is_pair = token.token_type is TokenType.NUMBER and following.token_type is TokenType.VAR
        if is_pair and following.start == token.end + 1:
            raise parsing_error("this is not a number", span=Span(token.start, following.end + 1))
    for token in tokens:
        if token.token_type is TokenType.HEX_STRING and text[token.start] == "0":
            raise parsing_error(
                "a number has decimal digits", span=span_of(token), suggestion=f"Bytes are written X'{token.text}'."
            )


def number_parameters(tokens: Sequence[Token]) -> tuple[list[Token], ParameterNames]:
    """Gives every `?` its number, in the order of the text, by naming it: `?` becomes `:#0`, `:#1`, ...

    sqlglot keeps neither the place nor the order of placeholders; a name survives its parser.
    """
    numbered: list[Token] = []
    parameters = ParameterNames()
    for index, token in enumerate(tokens):
        named = token.token_type is TokenType.COLON
        if token.token_type is TokenType.PARAMETER and token.text == "@":
            raise parsing_error("a parameter is written ? or :name", span=span_of(token))
        if named and not is_name_after(tokens, index):
            raise parsing_error("a parameter is written :name", span=span_of(token))
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


def is_name_after(tokens: Sequence[Token], index: int) -> bool:
    """Test whether a name follows directly: `:name` is written without a space."""
    if index + 1 >= len(tokens):
        return False
    following = tokens[index + 1]
    return following.start == tokens[index].end + 1 and following.text.isidentifier()
