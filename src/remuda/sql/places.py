"""Where a node of sqlglot's tree stands in the text.

sqlglot remembers the places of names, literals and functions. `locate` adds those of what it forgets: parameters,
constants that are keywords, and the keyword with which a construct begins.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from remuda.errors import Span, SqlError, parsing_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokens import Token

    from remuda.sql.tokens import ParameterNames

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


_LITERALS = frozenset({TokenType.STRING, TokenType.NUMBER})
"""What follows the INTERVAL of a value, but not that of a type."""


def locate(tree: exp.Expression, tokens: Sequence[Token], parameters: ParameterNames) -> None:
    """Gives places to nodes that have none of their own. Called once, when the text has just been parsed."""
    starts = [token.start for token in tokens]
    words: dict[str, list[Token]] = defaultdict(list)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.text.upper() != "INTERVAL" or (following is not None and following.token_type in _LITERALS):
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
    _locate_keywords(nodes, words)
    _keep_intervals(nodes, tokens, starts)
    for node in reversed(nodes):  # what is inside first: a sub-query begins with its SELECT
        heads = _HEADS.get(type(node))
        if heads is None and isinstance(node, exp.Func) and not isinstance(node, exp.Binary):  # AND is one of both
            _locate_function(node, tokens, starts)
        inner = place_of(node) if heads is not None else None
        if heads is None or inner is None:
            continue
        place = bisect_left(starts, inner.start) - 1
        while place >= 0 and tokens[place].text.upper() in _STEPPED_OVER - heads:
            place -= 1
        if place >= 0 and tokens[place].text.upper() in heads:
            node.meta.update(start=tokens[place].start, end=inner.end - 1, word=tokens[place].text)


def _locate_function(node: Any, tokens: Sequence[Token], starts: Sequence[int]) -> None:
    """The name as it is written, which sqlglot's node need not have: `json_agg`, `to_date`. Sometimes it forgets where
    that was, too: before the parenthesis before the first argument.
    """
    if "start" in node.meta:
        place = bisect_left(starts, node.meta["start"])
    else:
        inner = place_of(node)
        place = -1 if inner is None else bisect_left(starts, inner.start) - 2
        if inner is None or place < 0 or tokens[place + 1].text != "(" or not _may_be_called(tokens, place):
            return
        node.meta.update(start=tokens[place].start, end=inner.end - 1)
    node.meta["word"] = tokens[place].text


def _may_be_called(tokens: Sequence[Token], place: int) -> bool:
    """`json_agg (`, and not `IN (`."""
    is_adjacent = tokens[place].end + 1 == tokens[place + 1].start
    return tokens[place].token_type is TokenType.VAR or (is_adjacent and tokens[place].text.isidentifier())


def _span_of_first(tokens: Sequence[Token]) -> Span | None:
    return Span(tokens[0].start, tokens[0].end + 1) if tokens else None


def _locate_keywords(nodes: Sequence[Any], words: dict[str, list[Token]]) -> None:
    """NULL, TRUE, CURRENT_DATE, ...: the first such node is the first such word, as long as there are as many."""
    by_word: dict[str, list[Any]] = defaultdict(list)
    for node in nodes:
        match node:
            case exp.Null():
                by_word["NULL"].append(node)
            case exp.Boolean():
                by_word[str(bool(node.this)).upper()].append(node)
            case exp.Interval() if isinstance(node.this, exp.Literal):  # else it is a type, or of a number of units
                by_word["INTERVAL"].append(node)
            case exp.OnConflict():
                by_word["CONFLICT"].append(node)
            case exp.Var():
                by_word[node.name.upper()].append(node)
            case exp.Func() if "start" not in node.meta:
                by_word[node.sql_name()].append(node)
    for word, found in by_word.items():
        tokens = words.get(word, [])
        if len(tokens) == len(found):
            for node, token in zip(found, tokens, strict=True):
                node.meta.update(start=token.start, end=token.end)


def _keep_intervals(nodes: Sequence[Any], tokens: Sequence[Token], starts: Sequence[int]) -> None:
    """sqlglot reads '1 day 02:30:00' as one day: the literal is kept as it is written."""
    for node in nodes:
        if isinstance(node, exp.Interval) and "start" in node.meta:
            after = bisect_left(starts, node.meta["start"]) + 1
            if after < len(tokens):
                node.meta.update(literal=tokens[after].text, end=tokens[after].end)


def place_of(node: exp.Expression) -> Span | None:
    """From the first to the last token below the node that is known."""
    starts: list[int] = []
    ends: list[int] = []
    for part in node.walk():
        meta = part.meta
        if "start" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
    return Span(min(starts), max(ends)) if starts else None


def unsupported(node: exp.Expression, what: str) -> SqlError:
    return parsing_error(f"{what} is not supported yet", span=place_of(node))


def readable(node: exp.Expression) -> str:
    """What a node is called to the user: `IgnoreNulls` is IGNORE NULLS."""
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
            raise parsing_error(
                f"{name} is not supported yet", span=(place_of(first) if is_node else None) or place_of(node)
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
