"""Conditions as JSON: what one process writes is what another one reads, and nothing else is read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from remuda.catalog import ColumnDefinition, MapDefinition, new_id
from remuda.expr.expression_json import from_json, to_json
from remuda.sql import bind_condition
from remuda.types import BIGINT, BOOLEAN, DATE, DOUBLE, TIMESTAMP, VARBINARY, VARCHAR, decimal

TYPES = {
    "n": BIGINT,
    "x": DOUBLE,
    "d": decimal(10, 2),
    "v": VARCHAR,
    "b": VARBINARY,
    "f": BOOLEAN,
    "day": DATE,
    "ts": TIMESTAMP,
}
COLUMNS = tuple(ColumnDefinition(name, each) for name, each in TYPES.items())
MAP = MapDefinition(new_id(), "public", "t", COLUMNS, ("n",), ("n",), 271)


@pytest.mark.parametrize(
    "condition",
    [
        "new.ts > old.ts",
        "new.n + 1 >= old.n * 2 AND NOT old.f",
        "new.x < 1e300 OR new.x = CAST('NaN' AS DOUBLE)",
        "new.d <> 12.50 AND new.d > old.x",
        "lower(new.v) LIKE 'a%' || old.v",
        "new.v IN ('a', 'b', NULL)",
        "new.b = x'00ff'",
        "new.day > DATE '2024-01-31' AND new.ts > TIMESTAMP '2024-01-31 12:00:00.000001'",
        "new.ts > old.ts + INTERVAL '1' DAY",
        "CASE WHEN old.v IS NULL THEN TRUE WHEN new.n > 5 THEN FALSE ELSE NULL END",
        "TRY_CAST(new.v AS BIGINT) > COALESCE(old.n, -9223372036854775808)",
        "NULL",
    ],
)
def test_a_condition_is_read_as_it_was_written(condition: str) -> None:
    bound = bind_condition(condition, MAP)
    written = to_json(bound)
    assert from_json(json.loads(json.dumps(written))) == bound
    assert from_json(msgspec.msgpack.decode(msgspec.msgpack.encode(written))) == bound


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["call", "os.system", [["literal", "ls", ["VARCHAR", 0, 0]]], ["BOOLEAN", 0, 0]],
        ["column", "0", "n", ["BIGINT", 0, 0]],
        ["literal", [1], ["BIGINT", 0, 0]],
        ["literal", 1, ["NO TYPE", 0, 0]],
        ["literal", 1, "BIGINT"],
        ["cast", ["literal", 1, ["BIGINT", 0, 0]], ["BIGINT", 0, 0], "no"],
        ["case", [[["literal", 1, ["BIGINT", 0, 0]]]], ["literal", 1, ["BIGINT", 0, 0]], ["BIGINT", 0, 0]],
    ],
)
def test_nothing_but_expressions_is_read(given: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(given)
