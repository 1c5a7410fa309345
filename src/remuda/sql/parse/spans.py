"""Where a node of sqlglot's tree stands in the text.

sqlglot remembers the places of names, literals and functions. `attach_spans` adds those of what it forgets: parameters,
constants that are keywords, and the keyword with which a construct begins. Every place is found by a source offset,
never by pairing the nodes of a walk with tokens by their order: sqlglot's tree has WITH and LIMIT where it likes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from remuda.errors import Span, SqlError, not_supported, parsing_error
from remuda.sql.parse import other_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.parse.tokens import ParameterNames

_HEADS: dict[type[exp.Expression], frozenset[str]] = {
    exp.Neg: frozenset({"-"}),
    exp.Not: frozenset({"NOT"}),
    exp.Cast: frozenset({"CAST"}),
    exp.TryCast: frozenset({"TRY_CAST"}),
    exp.Case: frozenset({"CASE"}),
    exp.Select: frozenset({"SELECT"}),
    exp.Exists: frozenset({"EXISTS"}),
    exp.Join: frozenset({"JOIN", ","}),
    exp.With: frozenset({"WITH"}),
    exp.Fetch: frozenset({"FETCH"}),
    exp.Interval: frozenset({"INTERVAL"}),
    exp.Extract: frozenset({"EXTRACT"}),
    exp.Parameter: frozenset({"$", "@"}),
    exp.Lock: frozenset({"FOR UPDATE", "FOR SHARE", "FOR"}),
    exp.Returning: frozenset({"RETURNING"}),
    exp.Into: frozenset({"INTO"}),
    exp.OnConflict: frozenset({"ON"}),
}
"""The words with which a construct begins, where sqlglot remembers only what comes after them."""

_STEPPED_OVER = frozenset(
    {
        "(",
        "*",
        "WHEN",
        "DISTINCT",
        "ALL",
        "FIRST",
        "NEXT",
        "RECURSIVE",
        "YEAR",
        "MONTH",
        "DAY",
        "FROM",
        "LATERAL",
        "VALUES",
    }
)
"""What may stand between that word and the first place that sqlglot remembers."""


_OFFSET = "@"
"""Begins the comment that carries the offset of a token through sqlglot's parser."""
_UNMARKED = frozenset(
    {TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER}
)
"""What is no keyword, or keeps its own place."""


def mark_offsets(tokens: Sequence[Token]) -> list[Token]:
    """Add the offset of each keyword to its token as a comment, which the parser hands to the node made of it.

    Comments of the user's own are dropped: they must not appear in the names of result columns.
    """
    return [
        token
        if token.token_type in _UNMARKED and not token.comments
        else Token(
            token.token_type,
            token.text,
            token.line,
            token.col,
            token.start,
            token.end,
            [] if token.token_type in _UNMARKED else [f"{_OFFSET}{token.start}"],
        )
        for token in tokens
    ]


def attach_spans(tree: exp.Expression, tokens: Sequence[Token], parameters: ParameterNames) -> None:
    """Gives places to nodes that have none of their own. Called once, when the text has just been parsed."""
    starts = [token.start for token in tokens]
    words: dict[str, list[Token]] = defaultdict(list)
    for token in tokens:
        words[token.text.upper()].append(token)
    nodes: list[Any] = list(tree.walk(bfs=False))
    for node in nodes:
        if isinstance(node, exp.Placeholder):
            span = parameters.span_of(str(node.this))
            if span is None:  # PostgreSQL's drivers write %s
                raise parsing_error("a parameter is written ? or :name", span=_span_of_first(words["%"]))
            node.meta.update(start=span.start, end=span.end - 1)
            if node.arg_key == "alias" or isinstance(node.parent, exp.TableAlias):  # SELECT name ? FROM orders
                raise parsing_error("a parameter is not expected here", span=span)
    _attach_keyword_spans(nodes, tokens, starts, words)
    _read_names([node for node in nodes if isinstance(node, _WITH_NAMES)], tokens, starts)
    _refuse_pairs_without_separator([node for node in nodes if isinstance(node, _PAIRS)], tokens, starts)
    for node in reversed(nodes):  # what is inside first: a sub-query begins with its SELECT
        heads = _HEADS.get(type(node))
        if heads is None and isinstance(node, exp.Func) and not isinstance(node, exp.Binary):  # AND is one of both
            _attach_function_span(node, tokens, starts)
        inner = span_of(node) if heads is not None else None
        if heads is None or inner is None:
            continue
        position = bisect_left(starts, inner.start) - 1
        while position >= 0 and tokens[position].text.upper() in _STEPPED_OVER - heads:
            position -= 1
        if position >= 0 and tokens[position].text.upper() in heads:
            node.meta.update(start=tokens[position].start, end=inner.end - 1, word=tokens[position].text)


def _attach_function_span(node: Any, tokens: Sequence[Token], starts: Sequence[int]) -> None:
    """Attach the span of a function's name as written.

    sqlglot's node need not have it: `json_agg`, `to_date`. Sometimes it forgets where
    that was, too: before the parenthesis before the first argument.
    """
    if "start" in node.meta:
        position = bisect_left(starts, node.meta["start"])
    else:
        inner = span_of(node)
        position = -1 if inner is None else bisect_left(starts, inner.start) - 2
        if inner is None or position < 0 or tokens[position + 1].text != "(" or not _may_be_called(tokens, position):
            return
        node.meta.update(start=tokens[position].start, end=inner.end - 1)
    node.meta["word"] = tokens[position].text


def _may_be_called(tokens: Sequence[Token], position: int) -> bool:
    """Test whether a word may be a function's name: `json_agg (`, and not `IN (`."""
    is_adjacent = tokens[position].end + 1 == tokens[position + 1].start
    return tokens[position].token_type is TokenType.VAR or (is_adjacent and tokens[position].text.isidentifier())


def _span_of_first(tokens: Sequence[Token]) -> Span | None:
    return Span(tokens[0].start, tokens[0].end + 1) if tokens else None


def _attach_keyword_spans(
    nodes: Sequence[Any], tokens: Sequence[Token], starts: Sequence[int], words: dict[str, list[Token]]
) -> None:
    """NULL, TRUE, CURRENT_DATE, ...: at the offset that `mark_offsets` gave their token, if it is still theirs.

    The parser moves some comments from a node to the one around it, so the word at the offset must be the node's own.
    A node whose comment was lost is found if it is the only one of its word, and its word stands for no other node.
    """
    lost: dict[str, list[Any]] = defaultdict(list)
    for node in nodes:
        comments = node.pop_comments() if node.comments else []
        if not isinstance(node, _KEYWORDS) or "start" in node.meta:
            continue
        word = _keyword(node)
        marked = (tokens[bisect_left(starts, int(comment.removeprefix(_OFFSET)))] for comment in comments)
        token = next((token for token in marked if token.text.upper() == word), None)
        if token is None:
            lost[word].append(node)
        else:
            node.meta.update(start=token.start, end=token.end)
    taken = {node.meta["start"] for node in nodes if "start" in node.meta} if lost else set()
    for word, found in lost.items():
        free = [token for token in words.get(word, ()) if token.start not in taken]
        if len(found) == 1 and len(free) == 1:
            found[0].meta.update(start=free[0].start, end=free[0].end)


_NEEDS_AS = frozenset(
    {
        *(
            "AND",
            "ANY",
            "ARRAY",
            "BETWEEN",
            "CREATE",
            "EXCEPT",
            "FETCH",
            "FILTER",
            "FOR",
            "FROM",
            "GROUP",
            "HAVING",
            "IN",
        ),
        *(
            "INTERSECT",
            "INTO",
            "IS",
            "ISNULL",
            "LIKE",
            "LIMIT",
            "NOT",
            "NOTNULL",
            "OFFSET",
            "ON",
            "OR",
            "ORDER",
            "OVER",
        ),
        *("OVERLAPS", "RETURNING", "TO", "UNION", "USING", "WHERE", "WINDOW", "WITH", "WITHIN", "WITHOUT"),
    }
)
"""Words that are an alias only after AS, most of them PostgreSQL's: without it a clause or an operator is not complete,
as in `SELECT sum(x) OVER FROM t`.
"""


def _read_names(nodes: Sequence[Any], tokens: Sequence[Token], starts: Sequence[int]) -> None:
    """Read from the tokens what the tree omits of names.

    `OVER (w)` is a copy of a window, `OVER w` the window itself. A string
    after a table is no alias of it.
    """
    for node in nodes:
        name = node.this if isinstance(node, exp.TableAlias) else node.args.get("alias")
        if not isinstance(name, exp.Identifier) or "start" not in name.meta:
            continue
        position = bisect_left(starts, name.meta["start"])
        before = tokens[position - 1]
        if isinstance(node, exp.Window):
            node.meta["is_copy"] = before.token_type is TokenType.L_PAREN
        elif isinstance(node, exp.Alias):
            is_bare = before.token_type is not TokenType.ALIAS and not name.args.get("quoted")
            if is_bare and (name.name.upper() in _NEEDS_AS or isinstance(node.parent, exp.Star)):
                raise parsing_error(f"{tokens[position].text!r} is not expected here", span=span_of(name))
        elif tokens[position].token_type is TokenType.STRING and before.token_type is not TokenType.ALIAS:
            raise parsing_error(f"'{tokens[position].text}' is not expected here", span=span_of(name))


def _refuse_pairs_without_separator(nodes: Sequence[Any], tokens: Sequence[Token], starts: Sequence[int]) -> None:
    """Refuse `x BETWEEN 1 2` and `json_object('name' name)`."""
    for node in nodes:
        match node:
            case exp.Between():
                pair, separators = (node.args["low"], node.args["high"]), {"AND"}
            case exp.JSONKeyValue():
                pair, separators = (node.this, node.expression), {",", ":", "VALUE"}
            case _:
                continue
        first, second = map(span_of, pair)
        if first is not None and second is not None:
            between = tokens[bisect_left(starts, first.end) : bisect_left(starts, second.start)]
            if all(token.text.upper() not in separators for token in between):
                raise parsing_error(f"{min(separators)!r} is missing before this", span=second)


_KEYWORDS = (exp.Null, exp.Boolean, exp.OnConflict, exp.Var, exp.Func)
_WITH_NAMES = (exp.Window, exp.TableAlias, exp.Alias)
_PAIRS = (exp.Between, exp.JSONKeyValue)


def _keyword(node: Any) -> str:
    """Return the one word that a node is made of."""
    match node:
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return str(bool(node.this)).upper()
        case exp.OnConflict():
            return "CONFLICT"
        case exp.Var():
            return str(node.name).upper()
        case _:
            return str(node.sql_name())


def span_of(node: exp.Expression) -> Span | None:
    """Return the span from the first to the last known token of a node."""
    starts: list[int] = []
    ends: list[int] = []
    for part in node.walk():
        meta = part.meta
        if "start" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
    return Span(min(starts), max(ends)) if starts else None


def unsupported(node: exp.Expression, what: str) -> SqlError:
    hint = other_names.FUNCTIONS.get(str(node.meta.get("word", "")).casefold()) or other_names.CLAUSES.get(what)
    if isinstance(node, exp.Array):
        hint = 'There are no arrays. A name is quoted with ".'
    elif isinstance(node, exp.ArrayOverlaps):
        what, hint = "&&", "Conditions are joined by AND."
    elif isinstance(node, exp.Any | exp.All):
        hint = "Write a condition for each: x LIKE 'a%' OR x LIKE 'b%'."
    return not_supported(f"{what} is not supported yet", span=span_of(node), suggestion=hint)


def readable(node: exp.Expression) -> str:
    """Return the user's name for a node: `IgnoreNulls` is IGNORE NULLS."""
    if isinstance(node, exp.Var):
        return node.name.upper()
    if isinstance(node, exp.Func) and "word" in node.meta:
        return str(node.meta["word"]).upper()
    name = type(node).__name__
    return _NODE_NAMES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


_NODE_NAMES = {
    "BitString": "B'...'",
    "Bracket": "a subscript",
    "ByteString": "E'...'",
    "Explode": "UNNEST",
    "LimitOptions": "PERCENT",
    "Lock": "FOR UPDATE",
    "National": "N'...'",
    "Select": "a sub-query",
    "Star": "*",
    "Subquery": "a sub-query",
    "TableSample": "TABLESAMPLE",
    "Tuple": "a row as a value",
    "UnicodeString": "U&'...'",
    "Window": "a window function",
}
"""Nodes whose class has not the name that SQL has."""


def refuse_unknown_parts(node: exp.Expression, known: frozenset[str]) -> None:
    """Refuses a clause or an option that the binder does not handle, at its own place."""
    for part, value in node.args.items():
        if value and part not in known:
            first = value[0] if isinstance(value, list) else value
            is_node = isinstance(first, exp.Expression)
            name = _PART_NAMES.get(part) or (readable(first) if is_node else part.upper())
            raise not_supported(
                f"{name} is not supported yet",
                span=(span_of(first) if is_node else None) or span_of(node),
                suggestion=other_names.CLAUSES.get(name),
            )


_PART_NAMES = {
    "query": "a sub-query",
    "with_": "WITH",
    "catalog": "a name of so many parts",
    "db": "a name of so many parts",
    "using": "USING",
    "tables": "DELETE without FROM",
    "columns": "a list of column names after an alias",
    "percent": "PERCENT",
    "default": "DEFAULT VALUES",
}
