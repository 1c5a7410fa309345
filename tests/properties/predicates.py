"""Random predicates as small trees; each knows its SQL text and, by three-valued logic, its truth for a row."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.properties.schemas import DOMAINS, Column, Row, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

Truth = bool | None
NUMERIC = frozenset({"BIGINT", "INTEGER", "DOUBLE"})
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
PATTERNS = ("a%", "ab%", "%", "%b", "a_", "_", "a%c", "", "abc", "z%z%", "ü%", "it's%")
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Value:
    """A constant, written into the text or given as a parameter."""

    value: Any
    as_parameter: bool


@dataclass(frozen=True, slots=True)
class Compare:
    column: Column
    operator: str
    value: Value
    flipped: bool = False


@dataclass(frozen=True, slots=True)
class Between:
    column: Column
    low: Value
    high: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In:
    column: Column
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean column: bare (`test` is empty), or with IS [NOT] TRUE or FALSE."""

    column: Column
    test: str = ""


@dataclass(frozen=True, slots=True)
class Like:
    column: Column
    pattern: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    part: Predicate


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Predicate, ...]


Predicate = Compare | Between | In | IsNull | Flag | Like | Not | And | Or


def truth(predicate: Predicate, schema: Schema, row: Row) -> Truth:
    """What the predicate is for the row: True, False, or None for unknown."""

    def of(column: Column) -> Any:
        return row[schema.position(column.name)]

    match predicate:
        case Compare(column, operator, value):
            return compare(of(column), operator, value.value)
        case Between(column, low, high, negated):
            inside = conjunction([compare(of(column), ">=", low.value), compare(of(column), "<=", high.value)])
            return negation(inside) if negated else inside
        case In(column, values, negated):
            found = disjunction(compare(of(column), "=", value.value) for value in values)
            return negation(found) if negated else found
        case IsNull(column, negated):
            return (of(column) is None) != negated
        case Flag(column, test):
            return {
                "": of(column),
                "IS TRUE": of(column) is True,
                "IS FALSE": of(column) is False,
                "IS NOT TRUE": of(column) is not True,
                "IS NOT FALSE": of(column) is not False,
            }[test]
        case Like(column, pattern, negated):
            found = like(of(column), pattern.value)
            return negation(found) if negated else found
        case Not(part):
            return negation(truth(part, schema, row))
        case And(parts):
            return conjunction(truth(part, schema, row) for part in parts)
        case Or(parts):
            return disjunction(truth(part, schema, row) for part in parts)


def compare(left: Any, operator: str, right: Any) -> Truth:
    """
    >>> compare(1, "<", None), compare(float("nan"), "=", float("nan")), compare(float("nan"), ">", float("inf"))
    (None, True, True)
    """
    if left is None or right is None:
        return None
    a, b = _ordered(left), _ordered(right)
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def like(text: str | None, pattern: str | None) -> Truth:
    """By trying every way to match; no pattern here has an escape.

    >>> like("abc", "a%"), like("abc", "_b"), like(None, "%")
    (True, False, None)
    """
    if text is None or pattern is None:
        return None
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[start:], pattern[1:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in {"_", text[0]} and like(text[1:], pattern[1:])


def _ordered(value: Any) -> tuple[bool, Any]:
    """NaN equals itself and is greater than every number."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def negation(value: Truth) -> Truth:
    return None if value is None else not value


def conjunction(values: Iterable[Truth]) -> Truth:
    seen = set(values)
    return False if False in seen else None if None in seen else True


def disjunction(values: Iterable[Truth]) -> Truth:
    seen = set(values)
    return True if True in seen else None if None in seen else False


def to_sql(predicate: Predicate) -> tuple[str, list[Any]]:
    """The text, and the parameters in the order of their question marks."""
    parameters: list[Any] = []

    def constant(value: Value) -> str:
        if value.as_parameter:
            parameters.append(value.value)
            return "?"
        return literal(value.value)

    def text(node: Predicate) -> str:
        match node:
            case Compare(column, operator, value, flipped):
                if flipped:
                    return f"{constant(value)} {FLIPPED[operator]} {column.name}"
                return f"{column.name} {operator} {constant(value)}"
            case Between(column, low, high, negated):
                return f"{column.name} {_not(negated)}BETWEEN {constant(low)} AND {constant(high)}"
            case In(column, values, negated):
                return f"{column.name} {_not(negated)}IN ({', '.join(constant(value) for value in values)})"
            case IsNull(column, negated):
                return f"{column.name} IS {_not(negated)}NULL"
            case Flag(column, test):
                return f"{column.name} {test}".strip()
            case Like(column, pattern, negated):
                return f"{column.name} {_not(negated)}LIKE {constant(pattern)}"
            case Not(part):
                return f"NOT ({text(part)})"
            case And(parts):
                return " AND ".join(f"({text(part)})" for part in parts)
            case Or(parts):
                return " OR ".join(f"({text(part)})" for part in parts)

    return text(predicate), parameters


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return repr(value)


def _writable(value: Any) -> bool:
    """Infinity and NaN have no literal; the least BIGINT is not the negative of one."""
    return not (isinstance(value, float) and not math.isfinite(value)) and value != -(2**63)


@st.composite
def values_for(draw: st.DrawFn, column: Column) -> Value:
    domain = DOMAINS[column.type]
    if column.type in NUMERIC:
        domain = domain | st.sampled_from([-1.5, 0.5, 3.0, 3, 2**40])
    value = draw(st.none() | domain if draw(st.integers(0, 9)) == 0 else domain)
    return Value(value, as_parameter=not _writable(value) or draw(st.booleans()))


@st.composite
def leaves(draw: st.DrawFn, schema: Schema) -> Predicate:
    column = draw(st.sampled_from(schema.columns))
    value = values_for(column)
    kinds = ["compare", "compare", "between", "in", "null"] + (["flag", "flag"] if column.type == "BOOLEAN" else [])
    kinds += ["like", "like"] if column.type == "VARCHAR" else []
    match draw(st.sampled_from(kinds)):
        case "compare":
            return Compare(column, draw(st.sampled_from(OPERATORS)), draw(value), draw(st.booleans()))
        case "between":
            return Between(column, draw(value), draw(value), draw(st.booleans()))
        case "in":
            return In(column, tuple(draw(st.lists(value, min_size=1, max_size=4))), draw(st.booleans()))
        case "null":
            return IsNull(column, draw(st.booleans()))
        case "like":
            pattern = Value(draw(st.none() | st.sampled_from(PATTERNS)), as_parameter=draw(st.booleans()))
            return Like(column, pattern, draw(st.booleans()))
        case _:
            return Flag(column, draw(st.sampled_from(["", "IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"])))


def predicates(schema: Schema) -> st.SearchStrategy[Predicate]:
    def larger(part: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        parts = st.lists(part, min_size=2, max_size=3).map(tuple)
        return st.builds(And, parts) | st.builds(Or, parts) | st.builds(Not, part)

    return st.recursive(leaves(schema), larger, max_leaves=6)


@st.composite
def key_predicates(draw: st.DrawFn, schema: Schema) -> Predicate:
    """Mostly partition-complete ones: each branch says something of every key column."""
    branches = []
    for _ in range(draw(st.integers(1, 3))):
        parts: list[Predicate] = []
        for name in schema.key:
            column = schema.columns[schema.position(name)]
            value = values_for(column)
            if draw(st.booleans()):
                parts.append(Compare(column, "=", draw(value), draw(st.booleans())))
            else:
                parts.append(In(column, tuple(draw(st.lists(value, min_size=1, max_size=3)))))
        if draw(st.booleans()):
            parts.append(draw(leaves(schema)))
        branches.append(And(tuple(parts)))
    return Or(tuple(branches))
