"""Keys of `Map.lookup` of every Arrow type for columns of every type, against a plain model of exact comparison."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

WHOLE = [0, 1, 5, -3, 127, -128, -300, 2**31 - 1, 2**53 + 1, 2**60, 2**62 + 1, 2**63 - 1, -(2**63), 2**64 - 1]
FRACTIONS = [Decimal(text) for text in ("0.10", "1.5", "-1.50", "0.001", "99999999.99", "999.5", "0.30000", "12345.6")]
FLOATS = [0.1, 0.5, 1.5, -0.0, 5.0, 2.0**53, 2.0**60, 2.0**63, 1e18, 1e37, 1e300, math.inf, -math.inf, math.nan]
TIMES = [date(1900, 1, 1), date(2024, 2, 29), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29)]
REST = ["", "a", "ž", b"", b"a", True, False]
VALUES: list[Any] = [*WHOLE, *FRACTIONS, *FLOATS, *TIMES, *REST]

COLUMNS = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "DECIMAL(38, 10)": pa.decimal128(38, 10),
    "DECIMAL(38, 0)": pa.decimal128(38, 0),
    "DECIMAL(3, 3)": pa.decimal128(3, 3),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}
GIVEN = [
    *COLUMNS.values(),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.decimal128(5, 4), pa.decimal32(7, 1), pa.decimal64(17, 3)),
    *(pa.large_string(), pa.string_view(), pa.large_binary(), pa.date64(), pa.timestamp("s"), pa.timestamp("ms")),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int16(), pa.int64())),
]


def group(arrow: pa.DataType) -> str:
    """Return what an Arrow type has in common with those that SQL compares it with."""
    if pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "number"
    if pa.types.is_temporal(arrow):
        return "time"
    return str(arrow).replace("large_", "").replace("_view", "")


@cache
def held(arrow: pa.DataType) -> list[Any]:
    """Return those values that an Arrow type has, as it has them."""
    kept = []
    for value in VALUES:
        try:
            found = pa.array([value], arrow)[0].as_py()
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
        if isinstance(found, bool) is isinstance(value, bool) and not any(same(found, each) for each in kept):
            kept.append(found)
    return kept


def same(left: Any, right: Any) -> bool:
    """Compare exactly; a DECIMAL with a fraction and a float as DOUBLE."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    if isinstance(right, float) and isinstance(left, Decimal):
        left, right = right, left
    if isinstance(left, float) and isinstance(right, Decimal) and right != right.to_integral_value():
        return left == float(right)
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, date) and isinstance(right, date):
        moments = [each if isinstance(each, datetime) else datetime(*each.timetuple()[:3]) for each in (left, right)]
        return moments[0] == moments[1]
    try:
        return bool(left == right)
    except TypeError:
        return False


@pytest.mark.parametrize("kind", COLUMNS)
def test_keys_of_every_type_are_compared_exactly(kind: str) -> None:
    """Whole numbers for a DECIMAL found nothing, and a DECIMAL for a whole number was an error of Arrow."""
    keys = held(COLUMNS[kind])
    with remuda.open() as grid, localcontext() as context:
        context.prec = 400
        grid.sql(f"CREATE TABLE m (k {kind}, n BIGINT, PRIMARY KEY (k))")
        for number, key in enumerate(keys):
            grid.sql("INSERT INTO m VALUES (?, ?)", key, number)
        for given in GIVEN:
            plain = given.value_type if pa.types.is_dictionary(given) else given
            values = [*held(plain), None]
            array = pa.array(values, plain)
            array = array if plain is given else array.dictionary_encode()
            if group(plain) != group(COLUMNS[kind]):
                with pytest.raises(SqlError, match=r"cast them first|has no SQL type"):
                    grid.map("m").lookup(array)
                continue
            expected = [next((n for n, key in enumerate(keys) if same(value, key)), None) for value in values]
            assert grid.map("m").lookup(array, ["n"]).column("n").to_pylist() == expected, given


def test_a_float_of_python_finds_the_nearest_real() -> None:
    """As `get` does. A column of DOUBLE is another thing: its 0.1 is no REAL."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (k REAL, n BIGINT, PRIMARY KEY (k))")
        grid.sql("INSERT INTO m VALUES (0.1, 1)")
        m = grid.map("m")
        assert m.get(0.1).n == 1
        assert m.lookup([0.1], ["n"]).column("n").to_pylist() == [1]
        assert m.lookup(pa.array([0.1]), ["n"]).column("n").to_pylist() == [None]
