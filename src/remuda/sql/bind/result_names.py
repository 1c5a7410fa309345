"""What a result column without an alias is called: by its own text, always written in the same way.

`sum( x )` is `SUM(x)`, `x::int` is `CAST(x AS INTEGER)`: blanks, case and spelling make no other name. The text is
sqlglot's, but for what it takes from another dialect, or leaves out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from remuda.expr import Column
from remuda.sql.bind.expression.literals import is_number
from remuda.sql.parse.tokens import DIALECT
from remuda.sql.parse.type_names import TYPE_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr import Expression


def result_name(node: exp.Expression, bound: Expression) -> str:
    """Return the name of a result column: a column's declared name, or the text of an expression."""
    if isinstance(bound, Column) and isinstance(node, exp.Column):
        return bound.name
    written = _rewritten(node.copy()) if node.find(*_TEXTS, exp.WindowSpec) is not None else node
    return _PLACEHOLDER.sub(lambda found: f"?{found[1]}" if found[1] else f":{found[2]}", _text(written))


_PLACEHOLDER = re.compile(r"%\((?:#(\d+)|(\w+))\)s")


def _rewritten(tree: Any) -> Any:
    """Rewrite the tree with the texts of nodes that have a text of their own, innermost first."""
    for node in reversed(list(tree.walk(bfs=False))):
        if isinstance(node, exp.WindowSpec):  # its words are kept as they were written
            words = {part: value.upper() for part, value in node.args.items() if isinstance(value, str)}
            node.args.update(words)
        text = _TEXTS.get(type(node))
        if text is not None:
            written = exp.Var(this=text(node))
            if node is tree:
                return written
            node.replace(written)
    return tree


def _text(node: Any) -> str:
    return str(node.sql(DIALECT, unsupported_level=ErrorLevel.IGNORE))


def _call(name: str, *parts: str) -> Callable[[Any], str]:
    """Write a call by the name that the user wrote."""

    def written(node: Any) -> str:
        arguments = ", ".join(_text(node.args[part]) for part in parts if node.args.get(part))
        return f"{str(node.meta.get('word', name)).upper()}({arguments})"

    return written


def _between(operator: str) -> Callable[[Any], str]:
    return lambda node: f"{_text(node.this)} {operator} {_text(node.expression)}"


def _cast(node: Any) -> str:
    """Write a type by its first name: DOUBLE, not FLOAT8 or DOUBLE PRECISION."""
    word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    name, bracket, arguments = _text(node.to).partition("(")
    if node.to.this == exp.DataType.Type.TINYINT:  # which PostgreSQL has not
        name = "TINYINT"
    return f"{word}({_text(node.this)} AS {TYPE_NAMES.get(name.upper(), name)}{bracket}{arguments})"


def _interval(node: Any) -> str:
    """Write an interval as the user wrote it: sqlglot's own text of '1 day 02:30:00' is '1 DAY'."""
    text, unit = str(node.meta.get("literal", node.name)), node.args.get("unit")
    if not isinstance(node.this, exp.Literal):
        value = "" if node.this is None else f" {_text(node.this)}"  # a type has none
        return f"INTERVAL{value}" + ("" if unit is None else f" {_text(unit).upper()}")
    quoted = "'" + text.replace("'", "''") + "'"
    if isinstance(unit, exp.IntervalSpan):
        return f"INTERVAL {quoted} {unit.this.name.upper()} TO {unit.expression.name.upper()}"
    return f"INTERVAL {quoted} {unit.name.upper()}" if unit is not None and is_number(text) else f"INTERVAL {quoted}"


def _not(node: Any) -> str:
    """Write `a NOT IN (1, 2)` and `a IS NOT NULL`; sqlglot keeps `NOT a IN (1, 2)` and `NOT a IS NULL`."""
    inner = _text(node.this)
    word = _NEGATED.get(type(node.this))
    left = "" if word is None else _text(node.this.this)
    if word is None or not inner.startswith(f"{left} {word} "):
        return f"NOT {inner}"
    rest = inner.removeprefix(f"{left} {word} ")
    return f"{left} IS NOT {rest}" if word == "IS" else f"{left} NOT {word} {rest}"


_NEGATED: dict[type[exp.Expression], str] = {
    exp.In: "IN",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.SimilarTo: "SIMILAR TO",
    exp.Between: "BETWEEN",
    exp.Is: "IS",
}


def _count(node: Any) -> str:
    """Write `COUNT(DISTINCT a, b)`, which PostgreSQL has not: sqlglot would write a CASE."""
    if isinstance(node.this, exp.Distinct):
        return f"COUNT(DISTINCT {', '.join(_text(entry) for entry in node.this.expressions)})"
    return _text(node)


def _object(node: Any) -> str:
    pairs = [part for pair in node.expressions for part in (pair.this, pair.expression)]
    return f"JSON_OBJECT({', '.join(_text(part) for part in pairs)})"


_TEXTS: dict[type[exp.Expression], Callable[[Any], str]] = {
    exp.ApproxDistinct: _call("APPROX_COUNT_DISTINCT", "this"),
    exp.ArgMax: _call("ARG_MAX", "this", "expression"),
    exp.ArgMin: _call("ARG_MIN", "this", "expression"),
    exp.Cast: _cast,
    exp.Count: _count,
    exp.CountIf: _call("COUNT_IF", "this"),
    exp.IgnoreNulls: lambda node: f"{_text(node.this)} IGNORE NULLS",
    exp.IntDiv: _between("//"),
    exp.Interval: _interval,
    exp.JSONObject: _object,
    exp.Median: _call("MEDIAN", "this"),
    exp.Not: _not,
    exp.Pow: _between("^"),
    exp.Substring: _call("SUBSTRING", "this", "start", "length"),
    exp.TryCast: _cast,
    exp.Variance: _call("VARIANCE", "this"),
}
"""What sqlglot writes otherwise, because PostgreSQL has it not or because it keeps less than the text says."""
