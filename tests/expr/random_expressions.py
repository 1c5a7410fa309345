"""Random well-typed expressions over one column and one parameter of every type, and random rows for them."""

from __future__ import annotations

import math
from decimal import Decimal
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
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARBINARY,
    VARCHAR,
    SqlType,
    decimal,
    to_stored,
)

Row = tuple[Any, ...]

MONEY = decimal(10, 2)
WIDE = decimal(38, 0)
TYPES: tuple[SqlType, ...] = (
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INTEGER,
    BIGINT,
    MONEY,
    WIDE,
    REAL,
    DOUBLE,
    VARCHAR,
    VARBINARY,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
)
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


DOMAINS: dict[SqlType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    **{type_: st.sampled_from(_integers(type_)) for type_ in (TINYINT, SMALLINT, INTEGER, BIGINT)},
    MONEY: st.sampled_from(
        [Decimal(text) for text in ("0.00", "1.50", "-1.50", "0.05", "99999999.99", "-99999999.99")]
    ),
    WIDE: st.sampled_from(
        [Decimal(0), Decimal(7), Decimal(-3), Decimal("9" * 38), -1 * Decimal(10**28), Decimal(2**63)]
    ),
    REAL: st.sampled_from([to_stored(REAL, number) for number in _FLOATS if not 1e38 < abs(number) < math.inf]),
    DOUBLE: st.sampled_from(_FLOATS),
    VARCHAR: st.sampled_from([*_TEXTS, "2024-02-29"]),
    VARBINARY: st.sampled_from([b"", b"\x00", b"a", b"\xff\x00"]),
    DATE: st.sampled_from([0, -1, 19_782, -719_162, 2_932_896]),
    TIME: st.sampled_from([0, 1, _DAY - 1, _DAY // 2]),
    TIMESTAMP: st.sampled_from([0, -1, 1_709_164_800_123_456, -_DAY, 253_402_300_799_999_999]),
    TIMESTAMP_TZ: st.sampled_from([0, -1, 1_709_164_800_123_456, -_DAY]),
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
_NUMERIC = tuple(type_ for type_ in TYPES if type_.is_integer or type_.is_floating)
_TESTS = ("is true", "is not true", "is false", "is not false")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def values(type_: SqlType) -> st.SearchStrategy[Any]:
    return st.none() | DOMAINS[type_]


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
        return [_comparison, _comparison, _in, _null_test, _truth_test, _logic, _not, _like]
    if type_ == VARCHAR:
        return [_letters, _concatenation]
    if type_ in _NUMERIC:
        return [_arithmetic, _arithmetic, _sign, *([_length] if type_ == BIGINT else [])]
    return [_sign] if type_.is_exact else []


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


def _comparison(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    def of(type_: SqlType) -> st.SearchStrategy[Expression]:
        return st.builds(_called, st.sampled_from(_COMPARISONS), expressions(type_, depth), expressions(type_, depth))

    return st.sampled_from(TYPES).flatmap(of)


def _in(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    def of(type_: SqlType) -> st.SearchStrategy[Expression]:
        candidates = st.lists(literals(type_), min_size=1, max_size=3) | st.lists(leaves(type_), min_size=1, max_size=3)
        return st.builds(lambda value, others: _called("in", value, *others), expressions(type_, depth), candidates)

    return st.sampled_from(TYPES).flatmap(of)


def _null_test(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    operand = st.sampled_from(TYPES).flatmap(lambda type_: expressions(type_, depth))
    return st.builds(_called, st.sampled_from(["is null", "is not null"]), operand)


def _truth_test(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return st.builds(_called, st.sampled_from(_TESTS), expressions(BOOLEAN, depth))


def _logic(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    parts = st.lists(expressions(BOOLEAN, depth), min_size=2, max_size=3)
    return st.builds(lambda name, arguments: _called(name, *arguments), st.sampled_from(["and", "or"]), parts)


def _not(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return expressions(BOOLEAN, depth).map(lambda part: Call("not", (part,), BOOLEAN))


def _like(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    pattern = st.sampled_from(_PATTERNS).map(lambda text: Literal(text, VARCHAR)) | leaves(VARCHAR)
    return st.builds(_called, st.sampled_from(["like", "ilike"]), expressions(VARCHAR, depth), pattern)


def _letters(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return st.builds(_called, st.sampled_from(["upper", "lower"]), expressions(VARCHAR, depth))


def _concatenation(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return st.builds(_called, st.just("||"), expressions(VARCHAR, depth), expressions(VARCHAR, depth))


def _length(_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return expressions(VARCHAR, depth).map(lambda text: _called("length", text))


def _arithmetic(type_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    operators = st.sampled_from(["+", "-", "*", "/", "%"])
    return st.builds(_called, operators, expressions(type_, depth), expressions(type_, depth))


def _sign(type_: SqlType, depth: int) -> st.SearchStrategy[Expression]:
    return st.builds(_called, st.sampled_from(["negate", "abs"]), expressions(type_, depth))


anything = st.sampled_from(TYPES).flatmap(expressions)
