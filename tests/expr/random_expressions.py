"""Random well-typed expressions over one column and one parameter of every type, and random rows for them."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

from remuda.expr import Call, Case, Cast, Column, Expression, Literal, Parameter, call, can_cast
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_RANGES,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARBINARY,
    VARCHAR,
    SqlType,
    to_stored,
)
from tests.expr.random_functions import CALLS, FRACTION, MONEY, TYPES, WIDE

Row = tuple[Any, ...]

COLUMNS = tuple(Column(number, str(type_).lower(), type_) for number, type_ in enumerate(TYPES))
PARAMETERS = tuple(Parameter(number, type_) for number, type_ in enumerate(TYPES))
LAYOUT = {column.id: column.id for column in COLUMNS}

_NUMBERS = [0, 1, -1, 2, 3, -7, 10]
_FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e18, -1e300, math.inf, -math.inf, math.nan]
_TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "aXb",
    "a%b",
    "a_b",
    "a\\b",
    "it's",
    " 12 ",
    "-7",
    "1.5",
    "true",
    "x\ny",
    "ß",
    "İ",
    "É",
    "é",
]
_DAY = 86_400_000_000


def _integers(type_: SqlType) -> list[int]:
    low, high = INTEGER_RANGES[type_.kind]
    return [*_NUMBERS, low, low + 1, high - 1, high]


_EXACT = Context(prec=60)
_FRACTIONS = ["0", "1.5", "-2.5", "99999999.999999999999999999999999999999", "1e-30", "-0.000000000000005", "3"]

SAMPLES: dict[SqlType, list[Any]] = {
    BOOLEAN: [False, True],
    **{type_: _integers(type_) for type_ in (TINYINT, SMALLINT, INTEGER, BIGINT)},
    MONEY: [Decimal(text) for text in ("0.00", "1.50", "-1.50", "0.05", "99999999.99", "-99999999.99")],
    WIDE: [Decimal(0), Decimal(7), Decimal(-3), Decimal("9" * 38), -1 * Decimal(10**28), Decimal(2**63)],
    FRACTION: [Decimal(text).quantize(Decimal(1).scaleb(-30), context=_EXACT) for text in _FRACTIONS],
    REAL: [to_stored(REAL, number) for number in _FLOATS if not 1e38 < abs(number) < math.inf],
    DOUBLE: _FLOATS,
    VARCHAR: [*_TEXTS, "2024-02-29"],
    VARBINARY: [b"", b"\x00", b"a", b"\xff\x00"],
    DATE: [0, -1, 19_782, -719_162, 2_932_896],
    TIME: [0, 1, _DAY - 1, _DAY // 2],
    TIMESTAMP: [0, -1, 1_709_164_800_123_456, -_DAY, 253_402_300_799_999_999],
    TIMESTAMP_TZ: [0, -1, 1_709_164_800_123_456, -_DAY],
    JSON: ["{}", '{"a": 1, "ab": "x"}', "[1, null, {}]", '"a"', "null", " 12 "],
    INTERVAL_MONTHS: [0, 1, -1, 11, 12, -25, 2**40, -(2**63), 2**63 - 1],
    INTERVAL_TIME: [0, 1, -1, _DAY, -_DAY - 1, 3_661_500_000, -(2**63), 2**63 - 1],
}
_PATTERNS = [
    "",
    "%",
    "_",
    "a%",
    "%b",
    "a_b",
    "%a%",
    "a\\%b",
    "a\\_b",
    "a\\\\b",
    "\\a",
    "x%y",
    "ß",
    "i%",
    "É",
    "%'s",
    "\\",
]


def values(type_: SqlType) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(SAMPLES[type_])


rows = st.tuples(*(values(type_) for type_ in TYPES))


def literals(type_: SqlType) -> st.SearchStrategy[Expression]:
    return values(type_).map(lambda value: Literal(value, type_))


def leaves(type_: SqlType) -> st.SearchStrategy[Expression]:
    number = TYPES.index(type_)
    return st.one_of(st.just(COLUMNS[number]), st.just(COLUMNS[number]), literals(type_), st.just(PARAMETERS[number]))


def expressions(type_: SqlType, depth: int = 2) -> st.SearchStrategy[Expression]:
    """Expressions of a type; the whole registry and every cast turn up, each argument again a random expression."""
    if depth == 0:
        return leaves(type_)
    makers = [_case, _coalesce, _cast, *_makers_for(type_)]
    return st.one_of(leaves(type_), st.sampled_from(makers).flatmap(lambda make: make(type_, depth - 1)))


def _makers_for(type_: SqlType) -> list[Any]:
    if type_ == BOOLEAN:
        return [_function, _function, _in, _logic, _not, _like]
    return [_function, _function]


def _function(type_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    """A function with a result of the type, or of a type that can be cast to it."""
    results = [result for result in CALLS if result == type_ or can_cast(result, type_)]
    preferred = [type_] * len(results) if type_ in results else []

    def of(call_: tuple[str, tuple[SqlType, ...]]) -> st.SearchStrategy[Expression]:
        name, types = call_
        arguments = st.tuples(*(expressions(argument, depth) for argument in types))
        return arguments.map(lambda made: _as(type_, _called(name, *made)))

    if not results:
        return leaves(type_)
    names = st.sampled_from([*results, *preferred]).flatmap(lambda result: _evenly(CALLS[result]))
    return names.flatmap(of)


def _evenly(calls: list[tuple[str, tuple[SqlType, ...]]]) -> st.SearchStrategy[tuple[str, tuple[SqlType, ...]]]:
    """Every function is as probable as any other, however many types it takes."""
    by_name: dict[str, list[tuple[str, tuple[SqlType, ...]]]] = {}
    for call_ in calls:
        by_name.setdefault(call_[0], []).append(call_)
    return st.sampled_from(sorted(by_name)).flatmap(lambda name: st.sampled_from(by_name[name]))


def _as(type_: SqlType, expression: Expression) -> Expression:
    return expression if expression.type == type_ else Cast(expression, type_)


def _called(name: str, *arguments: Expression) -> Expression:
    made = call(name, *arguments)
    assert made is not None, f"{name} takes {[str(argument.type) for argument in arguments]}"
    return made


def _case(type_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    branch = st.tuples(expressions(BOOLEAN, depth), expressions(type_, depth))
    branches = st.lists(branch, min_size=1, max_size=2).map(tuple)
    return st.builds(lambda parts, rest: Case(parts, rest, type_), branches, expressions(type_, depth))


def _coalesce(type_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return st.lists(expressions(type_, depth), min_size=1, max_size=3).map(lambda parts: _called("coalesce", *parts))


def _cast(type_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    sources = [source for source in TYPES if can_cast(source, type_) and source != type_]
    if not sources:
        return leaves(type_)
    return st.sampled_from(sources).flatmap(lambda source: expressions(source, depth)).map(lambda e: Cast(e, type_))


def _in(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    def of(type_: SqlType) -> st.SearchStrategy[Expression]:
        candidates = st.lists(literals(type_), min_size=1, max_size=3) | st.lists(leaves(type_), min_size=1, max_size=3)
        return st.builds(lambda value, others: _called("in", value, *others), expressions(type_, depth), candidates)

    return st.sampled_from(TYPES).flatmap(of)


def _logic(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    parts = st.lists(expressions(BOOLEAN, depth), min_size=2, max_size=3)
    return st.builds(lambda name, arguments: _called(name, *arguments), st.sampled_from(["and", "or"]), parts)


def _not(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return expressions(BOOLEAN, depth).map(lambda part: Call("not", (part,), BOOLEAN))


def _like(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    pattern = st.sampled_from(_PATTERNS).map(lambda text: Literal(text, VARCHAR)) | leaves(VARCHAR)
    return st.builds(_called, st.sampled_from(["like", "ilike"]), expressions(VARCHAR, depth), pattern)


anything = st.sampled_from(TYPES).flatmap(expressions)
