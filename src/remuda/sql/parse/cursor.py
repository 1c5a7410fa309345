"""Reading a statement token by token: what the parser of definitions stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from remuda.errors import Span, not_supported, parsing_error
from remuda.sql.parse.statements import Name
from remuda.sql.parse.tokens import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.errors import SqlError

_IN_QUOTES = frozenset({TokenType.STRING, TokenType.IDENTIFIER})


class Cursor:
    """A place in the list of tokens. Keywords are compared by their text, without regard to case."""

    def __init__(self, tokens: Sequence[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.position = 0
        self._end = Span(len(text.rstrip().rstrip(";")), len(text.rstrip().rstrip(";")) + 1)

    @property
    def current(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    @property
    def span(self) -> Span:
        return self._end if self.current is None else span_of(self.current)

    def at(self, *keywords: str) -> bool:
        """Test whether the next tokens are these keywords. In quotes, a keyword is a text or a name."""
        window = self.tokens[self.position : self.position + len(keywords)]
        texts = [token.text.upper() for token in window if token.token_type not in _IN_QUOTES]
        return texts == [keyword.upper() for keyword in keywords]

    def accept(self, *keywords: str) -> bool:
        """Steps over the keywords if they come next. sqlglot joins some pairs (PARTITION BY) into one token."""
        if self.at(*keywords):
            self.position += len(keywords)
            return True
        if len(keywords) > 1 and self.at(" ".join(keywords)):
            self.position += 1
            return True
        return False

    def expect(self, *keywords: str) -> None:
        if not self.accept(*keywords):
            raise self.unexpected(" ".join(keywords))

    def unexpected(self, expected: str) -> SqlError:
        found = "the end of the statement" if self.current is None else f"{self.current.text!r}"
        return parsing_error(f"expected {expected}, found {found}", span=self.span)

    def unsupported(self, reason: str) -> SqlError:
        """Return the error for a next word that is SQL, but is not supported here."""
        word = "" if self.current is None else self.current.text.upper()
        return not_supported(f"{word} is not supported: {reason}", span=self.span)

    def take(self, expected: str) -> Token:
        token = self.current
        if token is None:
            raise self.unexpected(expected)
        self.position += 1
        return token

    def name(self, expected: str = "a name") -> Name:
        """Read an identifier, quoted or not, perhaps qualified by a schema."""
        first = self._identifier(expected)
        if self.accept("."):
            second = self._identifier(expected)
            return Name(second.text, Span(first.start, second.end + 1), schema=first.text)
        return Name(first.text, span_of(first))

    def _identifier(self, expected: str) -> Token:
        token = self.current
        if token is None or token.token_type in {TokenType.STRING, TokenType.NUMBER}:
            raise self.unexpected(expected)
        if token.token_type is not TokenType.IDENTIFIER and not token.text.isidentifier():
            raise self.unexpected(expected)
        return self.take(expected)

    def names(self) -> tuple[Name, ...]:
        """Read `(a, b, c)`."""
        self.expect("(")
        names = [self.name("a column")]
        while self.accept(","):
            names.append(self.name("a column"))
        self.expect(")")
        return tuple(names)

    def integer(self) -> int:
        token = self.current
        if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdigit():
            raise self.unexpected("a whole number")
        return int(self.take("a whole number").text)

    def string(self, expected: str) -> str:
        token = self.current
        if token is None or token.token_type is not TokenType.STRING:
            raise self.unexpected(expected)
        return self.take(expected).text

    def finish(self) -> None:
        if self.current is not None:
            raise self.unexpected("the end of the statement")
