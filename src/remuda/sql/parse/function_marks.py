"""Functions that are bound by name are hidden from sqlglot's parser, which would make nodes of its own of them.

Before parsing `upper(x)` becomes `#upper(x)`, a function that the parser does not know; afterwards the name is what it
was. A table or an alias with a list of columns looks the same, is marked too, and gets its name back likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from remuda.sql.bind.functions.functions import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK = "#"
_OWN_SYNTAX = frozenset({"trim", "position", "substring", "overlay", "json_object"})
"""Functions whose arguments are not only separated by commas: the parser has to know them."""

_BEFORE_STAR = frozenset({TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT, TokenType.ALL})
"""What stands before a `*` that means all columns."""


def mark_functions(tokens: Sequence[Token]) -> list[Token]:
    marked = list(tokens)
    for place in range(len(tokens) - 1):
        token = tokens[place]
        name = token.text.lower()
        is_called = tokens[place + 1].token_type is TokenType.L_PAREN and token.token_type is not TokenType.STRING
        if is_called and name in NAMES and name not in _OWN_SYNTAX and not _changes_star(tokens, place):
            marked[place] = Token(
                TokenType.VAR, _MARK + token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return marked


def _changes_star(tokens: Sequence[Token], place: int) -> bool:
    """Whether this is the word of `* REPLACE (...)`, and not the function of `a * replace(...)`."""
    if tokens[place].text.lower() != "replace" or place < 2:
        return False
    before, further = tokens[place - 1].token_type, tokens[place - 2].token_type
    return before is TokenType.R_PAREN or (before is TokenType.STAR and further in _BEFORE_STAR)


def unmark_functions(tree: exp.Expression) -> None:
    nodes: list[Any] = list(tree.find_all(exp.Anonymous, exp.Identifier))
    for node in nodes:
        if isinstance(node.this, str) and node.this.startswith(_MARK):
            node.set("this", node.this.removeprefix(_MARK))
