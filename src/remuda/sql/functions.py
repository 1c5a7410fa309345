"""Binding of functions for which sqlglot has nodes of its own: which entry of the registry each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import nearest, parsing_error
from remuda.expr import Call, Case, Cast, Expression, Literal
from remuda.expr.calendar_fields import EXTRACTED, TRUNCATED
from remuda.sql.comparison import compare
from remuda.sql.places import place_of, unsupported
from remuda.types import BIGINT, BOOLEAN, DOUBLE, JSON, MAXIMUM_PRECISION, VARCHAR, Kind, SqlType, decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.sql.expression import ExpressionBinder


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """`parts` name the arguments in the node; `expected` are the types that bare parameters and strings take there.

    Without `expected` all arguments have the type of the first. `silent` parts of the node say nothing.
    """

    name: str
    parts: tuple[str, ...] = ("this",)
    expected: tuple[SqlType, ...] = ()
    silent: frozenset[str] = frozenset()


_TEXT, _NUMBER = (VARCHAR,), (DOUBLE,)
_JOINS = frozenset({"safe", "coalesce"})

FUNCTION_NODES: dict[type[exp.Expression], FunctionNode] = {
    exp.Upper: FunctionNode("upper", expected=_TEXT),
    exp.Lower: FunctionNode("lower", expected=_TEXT),
    exp.Length: FunctionNode("length", expected=_TEXT),
    exp.Reverse: FunctionNode("reverse", expected=_TEXT),
    exp.Substring: FunctionNode("substring", ("this", "start", "length"), (VARCHAR, BIGINT, BIGINT)),
    exp.Replace: FunctionNode("replace", ("this", "expression", "replacement"), (VARCHAR, VARCHAR, VARCHAR)),
    exp.StrPosition: FunctionNode("position", ("this", "substr"), (VARCHAR, VARCHAR)),
    exp.Left: FunctionNode("left", ("this", "expression"), (VARCHAR, BIGINT)),
    exp.Right: FunctionNode("right", ("this", "expression"), (VARCHAR, BIGINT)),
    exp.StartsWith: FunctionNode("starts_with", ("this", "expression"), (VARCHAR, VARCHAR)),
    exp.Repeat: FunctionNode("repeat", ("this", "times"), (VARCHAR, BIGINT)),
    exp.Concat: FunctionNode("concat", ("expressions",), silent=_JOINS),
    exp.ConcatWs: FunctionNode("concat_ws", ("expressions",), silent=_JOINS),
    exp.Abs: FunctionNode("abs", expected=_NUMBER),
    exp.Floor: FunctionNode("floor", expected=_NUMBER),
    exp.Ceil: FunctionNode("ceil", expected=_NUMBER),
    exp.Sqrt: FunctionNode("sqrt", expected=_NUMBER),
    exp.Exp: FunctionNode("exp", expected=_NUMBER),
    exp.Ln: FunctionNode("ln", expected=_NUMBER),
    exp.Sign: FunctionNode("sign", expected=_NUMBER),
    exp.Pow: FunctionNode("power", ("this", "expression"), (DOUBLE, DOUBLE)),
    exp.Coalesce: FunctionNode("coalesce", ("this", "expressions")),
    exp.Greatest: FunctionNode("greatest", ("this", "expressions"), silent=frozenset({"ignore_nulls"})),
    exp.Least: FunctionNode("least", ("this", "expressions"), silent=frozenset({"ignore_nulls"})),
}


def bind_function(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    form = FUNCTION_NODES[type(node)]
    written = [argument for part in form.parts for argument in _as_list(node.args.get(part))]
    return _call(self, form.name, node, written, form.expected, expected)


def _as_list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [] if part is None else [part]


def _call(
    self: ExpressionBinder,
    name: str,
    node: Any,
    written: Iterable[Any],
    types: tuple[SqlType, ...],
    expected: SqlType | None = None,
) -> Expression:
    bound: list[Expression] = []
    for number, argument in enumerate(written):
        wanted = types[min(number, len(types) - 1)] if types else (bound[0].type if bound else expected)
        bound.append(self.bind(argument, wanted if name not in {"concat", "concat_ws"} else VARCHAR))
    return self.call(name, node, *bound)


def bind_registered(self: ExpressionBinder, name: str, node: Any) -> Expression:
    """A function of the registry that sqlglot does not know."""
    return _call(self, name, node, node.expressions, ())


def _bind_trim(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return _call(self, name, node, [node.this, *_as_list(node.args.get("expression"))], (VARCHAR, VARCHAR))


def _bind_pad(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    written = [node.this, node.expression, *_as_list(node.args.get("fill_pattern"))]
    return _call(self, "lpad" if node.args.get("is_left") else "rpad", node, written, (VARCHAR, BIGINT, VARCHAR))


def _bind_logarithm(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """LOG(x) is LOG10(x), which sqlglot reads as LOG(10, x)."""
    operand = node.args.get("expression")
    if operand is not None and not (isinstance(node.this, exp.Literal) and node.this.this == "10"):
        raise unsupported(node, "LOG with another base than 10")
    return _call(self, "log10", node, [node.this if operand is None else operand], _NUMBER)


def _bind_rounding(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """To a number of digits that is written out, a DECIMAL gets that scale."""
    name = "round" if isinstance(node, exp.Round) else "trunc"
    written = [node.this, *_as_list(node.args.get("decimals"))]
    bound = _call(self, name, node, written, (DOUBLE, BIGINT))
    if not isinstance(bound, Call) or len(bound.arguments) < 2 or bound.type.kind is not Kind.DECIMAL:
        return bound
    digits, operand = bound.arguments[1], bound.arguments[0].type
    if isinstance(digits, Cast) and isinstance(digits.argument, Literal):
        digits = digits.argument
    if not isinstance(digits, Literal) or digits.value is None:
        return bound
    scale = min(max(digits.value, 0), operand.scale)
    return Cast(bound, decimal(min(operand.precision - operand.scale + 1 + scale, MAXIMUM_PRECISION), scale))


def _bind_nullif(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    left, right = self.bind_pair(node.this, node.expression)
    equal = compare("=", left, right, place_of(node))
    return Case(((equal, Literal(None, left.type)),), left, left.type)


def _bind_distinct(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    negated = isinstance(node, exp.NullSafeEQ)
    left, right = self.bind_pair(node.this, node.expression)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal) and one.value is None:
            return Call("is null" if negated else "is not null", (other,), BOOLEAN)
    return self.call("is not distinct from" if negated else "is distinct from", node, left, right)


def _bind_extract(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    field = _one_of(node, node.this.name, EXTRACTED, "field")
    return self.call(f"extract {field}", node, self.bind(node.expression))


def _bind_truncation(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    unit = _one_of(node, node.args["unit"].name, TRUNCATED, "unit")
    return self.call(f"date_trunc {unit}", node, self.bind(node.this))


def _one_of(node: Any, written: str, known: frozenset[str], what: str) -> str:
    name = written.lower()
    for candidate in (name, name.removesuffix("s")):
        if candidate in known:
            return candidate
    raise parsing_error(f"unknown {what}: {written}", span=place_of(node), suggestion=nearest(name, sorted(known)))


def _bind_member(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """`json -> 'name'`, `json ->> 0`."""
    parts = node.expression.expressions if isinstance(node.expression, exp.JSONPath) else []
    if len(parts) != 2 or not isinstance(parts[1], exp.JSONPathKey | exp.JSONPathSubscript):
        raise unsupported(node, "this form of -> and ->>")
    key = parts[1].this
    literal = Literal(key, BIGINT if isinstance(key, int) else VARCHAR)
    return self.call(
        "->>" if isinstance(node, exp.JSONExtractScalar) else "->", node, self.bind(node.this, JSON), literal
    )


def _bind_json_literal(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.bind(node.this, JSON)


SPECIAL_NODES: dict[type[exp.Expression], Callable[[ExpressionBinder, Any, SqlType | None], Expression]] = {
    exp.Trim: _bind_trim,
    exp.Pad: _bind_pad,
    exp.Log: _bind_logarithm,
    exp.Round: _bind_rounding,
    exp.Trunc: _bind_rounding,
    exp.Nullif: _bind_nullif,
    exp.NullSafeEQ: _bind_distinct,
    exp.NullSafeNEQ: _bind_distinct,
    exp.Extract: _bind_extract,
    exp.TimestampTrunc: _bind_truncation,
    exp.JSONExtract: _bind_member,
    exp.JSONExtractScalar: _bind_member,
    exp.ParseJSON: _bind_json_literal,
}

PARTS: dict[type[exp.Expression], frozenset[str]] = {
    **{node: frozenset({*form.parts, *form.silent}) for node, form in FUNCTION_NODES.items()},
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.Pad: frozenset({"this", "expression", "fill_pattern", "is_left"}),
    exp.Round: frozenset({"this", "decimals"}),
    exp.Trunc: frozenset({"this", "decimals"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
    exp.JSONExtract: frozenset({"this", "expression", "only_json_types"}),
    exp.JSONExtractScalar: frozenset({"this", "expression", "only_json_types"}),
    exp.ParseJSON: frozenset({"this", "is_literal"}),
}
"""What each of these nodes may consist of."""
