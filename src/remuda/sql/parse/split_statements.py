"""Cut a text of several statements into the statements, each with the named parameters that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokens import TokenType

from remuda.dataclass import dataclass
from remuda.errors import Span
from remuda.sql.parse.tokens import is_name_after, read_tokens, span_of

if TYPE_CHECKING:
    from sqlglot.tokens import Token


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """A statement of a script, with blanks in place of what comes before it, so that errors name the right place."""

    text: str
    parameters: dict[str, Span]
    """The places in `text` of the `:name` parameters, where each is written first."""
    is_explain: bool


def split_script(text: str) -> list[ScriptStatement]:
    """Split a script into statements, with the parameters of each.

    >>> [(each.text, list(each.parameters)) for each in split_script("SELECT ';:a';\\n SELECT :b::DATE -- ; :c")]
    [("SELECT ';:a'", []), ('\\n SELECT :b::DATE', ['b'])]
    """
    found: list[list[Token]] = [[]]
    for token in read_tokens(text):
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [_statement(text, tokens) for tokens in found if tokens]


def _statement(text: str, tokens: list[Token]) -> ScriptStatement:
    start = tokens[0].start
    above = "\n" * text.count("\n", 0, start) + " " * (start - text.rfind("\n", 0, start) - 1)
    moved = len(above) - start
    parameters: dict[str, Span] = {}
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.COLON and is_name_after(tokens, index):
            name = tokens[index + 1]
            parameters.setdefault(name.text, Span(token.start + moved, name.end + 1 + moved))
    body = text[start : span_of(tokens[-1]).end]
    return ScriptStatement(above + body, parameters, tokens[0].text.upper() == "EXPLAIN")
