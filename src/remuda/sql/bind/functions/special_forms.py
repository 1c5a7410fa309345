"""Functions with a syntax or a type rule of their own: numbers, text, JSON, formats, NULLIF and IF, volatile ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import bad_argument, grouping_error, parsing_error, type_error, unknown_function
from remuda.expr import Call, Case, Cast, Expression, Literal, call, coerce
from remuda.sql.bind.bind_context import COMMON_PARTS, Binder, Binders, Parts
from remuda.sql.bind.expression.exact_comparison import compare
from remuda.sql.bind.expression.subqueries import volatile
from remuda.sql.parse.spans import span_of, unsupported
from remuda.types import BIGINT, INTEGER_RANGES, JSON, MAXIMUM_PRECISION, VARCHAR, Kind, common_type, decimal

if TYPE_CHECKING:
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

# format() and printf() with a template that is written out: its pieces and the values between them, joined.


_PLACES = {"format": re.compile(r"\{\{|\}\}|\{\}"), "printf": re.compile(r"%%|%s|%d")}
_WRITTEN_TWICE = {"{{": "{", "}}": "}", "%%": "%"}
_SPECIAL = {"format": re.compile(r"[{}]"), "printf": re.compile("%")}


def _bind_template(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind `format('{} of {}', a, b)` and `printf('%s of %d', a, b)`: NULL where an argument is NULL."""
    name, span = str(node.this).lower(), span_of(node)
    arguments = node.expressions
    if not arguments or not (isinstance(arguments[0], exp.Literal) and arguments[0].is_string):
        raise parsing_error(f"{name} takes a template in quotes and values", span=span)
    pieces, kinds = _pieces(name, str(arguments[0].this), arguments[0])
    if len(kinds) != len(arguments) - 1:
        message = f"the template has {len(kinds)} places, {len(arguments) - 1} values are given"
        raise bad_argument(message, span=span)
    text: Expression = Literal(pieces[0], VARCHAR)
    for kind, piece, argument in zip(kinds, pieces[1:], arguments[1:], strict=True):
        value = self.bind(argument, VARCHAR)
        if kind == "%d" and not value.type.is_integer:
            raise type_error(f"%d takes a whole number, this is {value.type}", span=span_of(argument))
        text = self.call("||", node, self.call("||", node, text, value), Literal(piece, VARCHAR))
    return text


def _pieces(name: str, template: str, node: Any) -> tuple[list[str], list[str]]:
    """Split a template into the texts between its placeholders and the placeholders."""
    pieces, kinds, end = [""], [], 0
    for found in (*_PLACES[name].finditer(template), None):
        between = template[end : None if found is None else found.start()]
        if _SPECIAL[name].search(between):
            known = "{}" if name == "format" else "%s and %d"
            raise bad_argument(f"the template of {name} may have {known} only", span=span_of(node))
        pieces[-1] += between
        if found is None:
            break
        end = found.end()
        if found[0] in _WRITTEN_TWICE:
            pieces[-1] += _WRITTEN_TWICE[found[0]]
        else:
            kinds.append(found[0])
            pieces.append("")
    return pieces, kinds


# Functions on text with a syntax of their own: TRIM(BOTH x FROM y), SUBSTRING(x FROM 2), POSITION(x IN y).


def as_list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [] if part is None else [part]


def _bind_trim(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return self.call_with(name, node, [node.this, *as_list(node.args.get("expression"))])


def _bind_substring(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    arguments = [node.this, node.args.get("start"), node.args.get("length")]
    return self.call_with("substring", node, [argument for argument in arguments if argument is not None])


def _bind_position(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.call_with("position", node, [node.this, node.args["substr"]])


def _bind_overlay(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    arguments = [node.this, node.expression, node.args.get("from_"), node.args.get("for_")]
    return self.call_with("overlay", node, [argument for argument in arguments if argument is not None])


# `->` and `->>`, JSON literals, JSON_OBJECT.


def _bind_member(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind `json -> 'name'` and `json ->> 0`.

    sqlglot reads a literal as a path and leaves any other expression as it is.
    """
    name = "->>" if isinstance(node, exp.JSONExtractScalar) else "->"
    document = self.bind(node.this, JSON)
    if not isinstance(node.expression, exp.JSONPath):
        return self.call(name, node, document, self.bind(node.expression, VARCHAR))
    parts = node.expression.expressions
    if len(parts) != 2 or not isinstance(parts[1], exp.JSONPathKey | exp.JSONPathSubscript):
        raise unsupported(node, "this form of -> and ->>")
    key = parts[1].this
    if isinstance(key, int) and key > INTEGER_RANGES[Kind.BIGINT][1]:
        raise bad_argument("no array has so many elements", span=span_of(node))
    return self.call(name, node, document, Literal(key, BIGINT if isinstance(key, int) else VARCHAR))


def _bind_object(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind `json_object('a', 1, 'b', 2)`: sqlglot makes pairs of the arguments."""
    pairs = [part for pair in node.expressions for part in (pair.this, pair.expression)]
    return self.call_with("json_object", node, pairs)


def _bind_json_literal(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.bind(node.this, JSON)


# random() and gen_random_uuid(): each call is a column, computed once for a row below the clause that it stands in.


_NAMES = {"random": "random", "gen_random_uuid": "gen_random_uuid", "uuid": "gen_random_uuid"}


def _bind_volatile(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    written, span = str(node.this).lower(), span_of(node)
    if node.expressions:
        raise unknown_function(f"{written} takes no arguments", span=span)
    if self.subqueries is None or self.clause == "ON":
        raise grouping_error(f"{written} is not allowed in {self.clause}", span=span)
    known = self.volatile.get(id(node))
    if known is not None:
        return known  # the subject of CASE is bound once for each branch
    # No column has this number yet, and no other call: the column takes it at once.
    value = call(_NAMES[written], Literal(self.binding.next_column, BIGINT), span=span)
    assert value is not None, "it takes a number"
    column = self.binding.new_column(written, value.type, nullable=False)
    self.subqueries.append(volatile(column, value))
    self.volatile[id(node)] = column
    return column


# NULLIF and IF: functions that are a CASE.


def _bind_nullif(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if len(node.expressions) != 2:
        raise unknown_function("NULLIF takes two arguments", span=span_of(node))
    left, right = self.bind_pair(*node.expressions)
    equal = compare("=", left, right, span_of(node))
    return Case(((equal, Literal(None, left.type)),), left, left.type)


def _bind_if(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    condition = self.bind_condition(node.this)
    other = node.args.get("false")
    value, otherwise = self.bind_alike([node.args["true"], exp.Null() if other is None else other], expected)
    shared = common_type(value.type, otherwise.type)
    if shared is None:
        raise type_error(f"IF has values of types {value.type} and {otherwise.type}", span=span_of(node))
    return Case(((condition, coerce(value, shared)),), coerce(otherwise, shared), shared)


def _bind_type_name(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """TYPEOF: known when the statement is bound."""
    if len(node.expressions) != 1:
        raise unknown_function("TYPEOF takes one argument", span=span_of(node))
    return Literal(str(self.bind(node.expressions[0]).type), VARCHAR)


def _bind_rounding(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind a rounding; a DECIMAL rounded to a literal number of digits gets that scale."""
    bound = self.call_with(str(node.this).lower(), node, node.expressions)
    if not isinstance(bound, Call) or len(bound.arguments) < 2 or bound.type.kind is not Kind.DECIMAL:
        return bound
    digits, operand = bound.arguments[1], bound.arguments[0].type
    if isinstance(digits, Cast) and isinstance(digits.argument, Literal):
        digits = digits.argument
    if not isinstance(digits, Literal) or digits.value is None:
        return bound
    scale = min(max(digits.value, 0), operand.scale)
    return Cast(bound, decimal(min(operand.precision - operand.scale + 1 + scale, MAXIMUM_PRECISION), scale))


def _bind_logarithm(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind LOG(x), which is LOG10(x), or LOG(b, x), which has the base first, as in PostgreSQL."""
    count = len(node.expressions)
    if count not in {1, 2}:
        raise unknown_function("LOG takes a number, or a base and a number", span=span_of(node))
    return self.call_with("log10" if count == 1 else "log", node, node.expressions)


def _bind_hash(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind a hash; refuse a bare parameter: the hash of an INTEGER is not that of the same BIGINT."""
    arguments = [self.bind(argument) for argument in node.expressions]
    self.refuse_untyped(arguments)
    return self.call("xxhash64", node, *arguments)


FORMS: dict[str, Binder] = {
    "round": _bind_rounding,
    "trunc": _bind_rounding,
    "log": _bind_logarithm,
    "xxhash64": _bind_hash,
    "nullif": _bind_nullif,
    "typeof": _bind_type_name,
    "pg_typeof": _bind_type_name,
    **dict.fromkeys(_NAMES, _bind_volatile),
    "format": _bind_template,
    "printf": _bind_template,
}
NODES: Binders = {
    exp.If: _bind_if,
    exp.JSONExtract: _bind_member,
    exp.JSONExtractScalar: _bind_member,
    exp.ParseJSON: _bind_json_literal,
    exp.JSONObject: _bind_object,
    exp.Trim: _bind_trim,
    exp.Substring: _bind_substring,
    exp.StrPosition: _bind_position,
    exp.Overlay: _bind_overlay,
}
PARTS: Parts = {
    exp.If: COMMON_PARTS | {"true", "false"},
    exp.JSONExtract: COMMON_PARTS | {"only_json_types"},
    exp.JSONExtractScalar: COMMON_PARTS | {"only_json_types"},
    exp.ParseJSON: COMMON_PARTS | {"is_literal"},
    exp.JSONObject: COMMON_PARTS,
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Overlay: frozenset({"this", "expression", "from_", "for_"}),
}
