"""From the tokens of a query to sqlglot's tree, with the places of everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from remuda.errors import Span, nested_too_deeply, parsing_error
from remuda.sql.bind.functions.functions import NAMES
from remuda.sql.parse.literal_tokens import enclose_literals, restore_literals
from remuda.sql.parse.spans import attach_spans, mark_offsets
from remuda.sql.parse.statements import Query
from remuda.sql.parse.token_validation import refuse_missing_into, refuse_overlooked
from remuda.sql.parse.tokens import DIALECT, number_parameters, span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.parse.cursor import Cursor

# Functions that are bound by name are hidden from sqlglot's parser, which would make nodes of its own of them.
#
# Before parsing `upper(x)` becomes `#upper(x)`, a function that the parser does not know; afterwards the name is what
# it was. A table or an alias with a list of columns looks the same, is marked too, and gets its name back likewise.


_MARK = "#"
_OWN_SYNTAX = frozenset({"trim", "position", "substring", "overlay", "json_object"})
"""Functions whose arguments are not only separated by commas: the parser has to know them."""

_BEFORE_STAR = frozenset({TokenType.SELECT, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT, TokenType.ALL})
"""What stands before a `*` that means all columns."""


def mark_functions(tokens: Sequence[Token]) -> list[Token]:
    marked = list(tokens)
    for position in range(len(tokens) - 1):
        token = tokens[position]
        name = token.text.lower()
        is_called = tokens[position + 1].token_type is TokenType.L_PAREN and token.token_type is not TokenType.STRING
        if is_called and name in NAMES and name not in _OWN_SYNTAX and not _changes_star(tokens, position):
            marked[position] = Token(
                TokenType.VAR, _MARK + token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return marked


def _changes_star(tokens: Sequence[Token], position: int) -> bool:
    """Test whether this is the word of `* REPLACE (...)`, and not the function of `a * replace(...)`."""
    if tokens[position].text.lower() != "replace" or position < 2:
        return False
    before, further = tokens[position - 1].token_type, tokens[position - 2].token_type
    return before is TokenType.R_PAREN or (before is TokenType.STAR and further in _BEFORE_STAR)


def unmark_functions(tree: exp.Expression) -> None:
    nodes: list[Any] = list(tree.find_all(exp.Anonymous, exp.Identifier))
    for node in nodes:
        if isinstance(node.this, str) and node.this.startswith(_MARK):
            node.set("this", node.this.removeprefix(_MARK))


SELECTS = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")
QUERIES = ("SELECT", "INSERT", "SINK", "UPDATE", "DELETE", "VALUES", "WITH", "TABLE", "FROM")


def begins_query(cursor: Cursor) -> bool:
    return cursor.at("(") or any(cursor.at(keyword) for keyword in QUERIES)


def begins_select(cursor: Cursor) -> bool:
    """Test whether the tokens begin a query that only reads."""
    return cursor.at("(") or any(cursor.at(keyword) for keyword in SELECTS)


def parse_query(tokens: Sequence[Token], text: str) -> Query:
    first = tokens[0]
    tokens = _apart_from_columns(_without_table_command(tokens))
    apart = _apart_from_lambdas(tokens)
    are_apart, tokens = len(apart) > len(tokens), apart
    upsert = first.text.upper() == "SINK"
    if upsert:
        tokens = [Token(TokenType.INSERT, "INSERT", first.line, first.col, first.start, first.end, []), *tokens[1:]]
    refuse_missing_into(tokens)
    numbered, parameters = number_parameters(tokens)
    may_enclose = "::" in text or "interval" in text.casefold()  # else the tokens need not be looked at
    enclosed, intervals = enclose_literals(numbered) if may_enclose else (numbered, {})
    parser = DIALECT.parser()
    try:
        trees = parser.parse(mark_offsets(mark_functions(enclosed)), text)
    except ParseError as error:
        raise _located(error, numbered) from error
    except RecursionError:
        raise nested_too_deeply(span_of(first)) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # the parser stumbles over a part of its tree
        blamed = _as_written(getattr(parser, "_curr", None), numbered)
        raise parsing_error(f"{blamed.text!r} is not expected here", span=span_of(blamed)) from error
    refuse_overlooked(tokens)
    tree = trees[0]
    assert isinstance(tree, exp.Expression), "there are tokens"
    if intervals or len(enclosed) != len(numbered):
        restore_literals(tree, intervals)
    unmark_functions(tree)
    if are_apart:
        _without_doubled_parentheses(tree)
    if "~" in text:
        tree = _with_loose_complement(tree)
    attach_spans(tree, numbered, parameters)
    return Query(tree, span_of(first), parameters, upsert)


def _as_written(token: Token | None, tokens: Sequence[Token]) -> Token:
    """Return the token of the text from which a token for the parser was made."""
    return next((each for each in tokens if token is not None and each.start == token.start), tokens[-1])


def _located(error: ParseError, tokens: Sequence[Token]) -> Exception:
    """sqlglot gives the line and the last column of the token it blames."""
    first = error.errors[0]
    position = (first.get("line"), first.get("col"))
    blamed = next((token for token in tokens if (token.line, token.col) == position), tokens[-1])
    description = str(first.get("description") or "the statement cannot be read").partition(" but got")[0]
    if blamed is tokens[-1] and description.startswith(("Expect", "Required")):
        end = span_of(blamed).end
        return parsing_error("the statement ends too early", span=Span(end, end + 1))
    if description.startswith(("Invalid expression", "Required keyword")):
        description = f"{blamed.text!r} is not expected here"
    return parsing_error(
        description.replace("Expecting", "expected").replace("Expected", "expected"),
        span=span_of(blamed),
    )


def _without_table_command(tokens: Sequence[Token]) -> Sequence[Token]:
    """Rewrite `TABLE name` to `SELECT * FROM name`."""
    if all(token.token_type is not TokenType.TABLE for token in tokens):
        return tokens
    replaced: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.TABLE:
            replaced.append(token)
            continue
        for kind, word in ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")):
            replaced.append(Token(kind, word, token.line, token.col, token.start, token.end, []))
    return replaced


def _apart_from_columns(tokens: Sequence[Token]) -> Sequence[Token]:
    """sqlglot takes `(VALUES ...)` and `(FROM ...)` after `INTO name` for a list of columns: in more parentheses they
    are what they are.
    """
    position = next((at for at, token in enumerate(tokens) if token.token_type is TokenType.INTO), len(tokens)) + 2
    while position < len(tokens) and tokens[position].token_type is TokenType.DOT:
        position += 2
    words = [token.token_type for token in tokens[position : position + 3]]
    if len(words) < 3 or words[0] is not TokenType.L_PAREN:
        return tokens
    if words[1] is not TokenType.FROM and words[1:] != [TokenType.VALUES, TokenType.L_PAREN]:
        return tokens
    open_parentheses = 0
    for end in range(position, len(tokens)):
        kind = tokens[end].token_type
        open_parentheses += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if not open_parentheses:
            return [*tokens[:position], tokens[position], *tokens[position : end + 1], tokens[end], *tokens[end + 1 :]]
    return tokens


_BEFORE_ARGUMENT = frozenset({TokenType.L_PAREN, TokenType.COMMA})


def _apart_from_lambdas(tokens: Sequence[Token]) -> Sequence[Token]:
    """sqlglot takes `doc -> 'tags'` for a function of doc where it is an argument: in `((doc)) -> 'tags'` it is the
    operator of JSON, as it is everywhere else.
    """
    apart = list(tokens)
    for position in range(len(tokens) - 1, 1, -1):
        if tokens[position].token_type is not TokenType.ARROW:
            continue
        first = _first_of_parameter(tokens, position)
        if first >= 1 and tokens[first - 1].token_type in _BEFORE_ARGUMENT:
            start, end = tokens[first], tokens[position - 1]
            opening = Token(TokenType.L_PAREN, "(", start.line, start.col, start.start, start.start - 1, [])
            closing = Token(TokenType.R_PAREN, ")", end.line, end.col, end.end + 1, end.end, [])
            apart[first:position] = [opening, opening, *tokens[first:position], closing, closing]
    return apart


def _first_of_parameter(tokens: Sequence[Token], arrow: int) -> int:
    """Return the index of `doc`, or of the parenthesis in `(doc)`, before an arrow; 0 before any other operand."""
    words = [token.token_type for token in tokens[max(arrow - 3, 0) : arrow]]
    if words[-1] is not TokenType.R_PAREN:
        return arrow - 1
    return arrow - 3 if len(words) == 3 and words[0] is TokenType.L_PAREN else 0


def _without_doubled_parentheses(tree: exp.Expression) -> None:
    """Take out of the tree what `_apart_from_lambdas` has put into the text."""
    for node in list(tree.find_all(exp.JSONExtract)):
        outer = node.this
        if isinstance(outer, exp.Paren) and isinstance(outer.this, exp.Paren):
            outer.replace(outer.this.this)


_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Pow)


def _with_loose_complement(tree: exp.Expression) -> exp.Expression:
    """Give `~` its low precedence: `~1 + 2` is `~(1 + 2)` in PostgreSQL, while sqlglot's `~` binds tighter.

    An arithmetic operator whose left operand ends in an unenclosed `~ x` belongs into that operand. Operators are
    visited from the inside out, so that of `~1 * 2 + 3` the product is taken in before the sum.
    """
    operators: list[Any] = list(tree.find_all(*_ARITHMETIC, bfs=False))
    for node in reversed(operators):
        left: Any = node.this
        complement = _complement_at_the_end(left)
        if complement is None:
            continue
        if node is tree:
            tree = left.pop()
        else:
            node.replace(left)
        node.set("this", complement.this)
        complement.set("this", node)
    return tree


def _complement_at_the_end(node: Any) -> Any:
    """Return the last `~` whose operand reaches to the end of this expression."""
    found = None
    while True:
        match node:
            case exp.BitwiseNot():
                found, node = node, node.this
            case exp.Neg():
                node = node.this
            case _ if isinstance(node, _ARITHMETIC):
                node = node.expression
            case _:
                return found
