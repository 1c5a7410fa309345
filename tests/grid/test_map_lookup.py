"""`Map.lookup`: rows of many keys as Arrow, compared with `get_all` and a plain model."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAKERS: dict[str, Callable[[int], Any]] = {
    "BIGINT": lambda number: number * 7 - 500,
    "SMALLINT": lambda number: number - 100,
    "VARCHAR": lambda number: f"key {number % 7} {number}",
    "VARBINARY": lambda number: b"\xff%d" % number,
    "DOUBLE": lambda number: float("nan") if number == 3 else number / 4 - 20,
    "DECIMAL(10, 2)": lambda number: Decimal(number) / 4,
    "DECIMAL(30, 2)": lambda number: Decimal(10) ** 20 + Decimal(number) / 4,
    "DATE": lambda number: date.fromordinal(730_000 + number),
    "TIMESTAMP": lambda number: datetime.fromordinal(730_000 + number),
}


def filled(path: Path | None, kind: str, seed: int) -> tuple[Any, Any, dict[int, int]]:
    """A map with segments, rows of the memtable and deletions in both, and the model of it."""
    grid = remuda.open(path)
    grid.sql(f"CREATE TABLE m (k {kind}, v BIGINT, s VARCHAR, PRIMARY KEY (k))")
    grid.sql("CREATE INDEX m_hash ON m (s) TYPE HASH")
    grid.sql("CREATE INDEX m_sorted ON m (v) TYPE SORTED")
    m, model, chance, make = grid.map("m"), {}, random.Random(seed), MAKERS[kind]
    for turn in range(4):
        for number in chance.sample(range(300), 120):
            m.set(make(number), (number * 10 + turn, f"s{number % 5}"))
            model[number] = number * 10 + turn
        for number in chance.sample(sorted(model), 20):
            m.delete(make(number))
            del model[number]
        if turn < 3 and path is not None:
            grid.checkpoint()
    return grid, m, model


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("durable", [True, False])
def test_a_lookup_finds_what_get_all_finds(tmp_path: Path, kind: str, durable: bool) -> None:
    grid, m, model = filled(tmp_path / "m.remuda" if durable else None, kind, 5)
    with grid:
        numbers = [random.Random(1).randrange(-10, 320) for _ in range(800)]
        if kind == "VARBINARY" or kind.startswith("DECIMAL"):
            numbers = [abs(number) for number in numbers]
        keys = [MAKERS[kind](number) for number in numbers]
        batch = m.lookup([*keys, None], ["v"])
        assert batch.column("found").to_pylist() == [number in model for number in numbers] + [False]
        assert batch.column("v").to_pylist() == [model.get(number) for number in numbers] + [None]
        if kind != "DOUBLE":
            held = m.get_all(keys)
            assert [None if key not in held else held[key].v for key in keys] == batch.column("v").to_pylist()[:-1]
        if kind == "VARCHAR":
            encoded = pa.array([*keys, None]).dictionary_encode()
            assert m.lookup(encoded, ["v"]).equals(batch)


def test_keys_of_another_type_are_converted_exactly() -> None:
    grid, m, model = filled(None, "BIGINT", 1)
    number = min(model)
    key = MAKERS["BIGINT"](number)
    with grid:
        for array in (
            pa.array([key, key + 0.5, float("nan"), float("inf"), 2.0**63], pa.float64()),
            pa.array([Decimal(key), Decimal(key) + Decimal("0.5")], pa.decimal128(20, 1)),
            pa.array([key, None, 30_000], pa.int16()),
            pa.chunked_array([[key], [key + 1]]),
        ):
            assert m.lookup(array, ["v"]).column("found").to_pylist() == [True] + [False] * (len(array) - 1)
        assert not m.lookup(pa.array([2**64 - 1], pa.uint64())).column("found")[0].as_py()
        with pytest.raises(SqlError, match="the keys are VARCHAR, and k is BIGINT"):
            m.lookup(["1"])
        with pytest.raises(SqlError, match="no column x"):
            m.lookup([1], ["x"])
        with pytest.raises(SqlError, match="no index nothing"):
            m.lookup([1], index="nothing")
        assert m.lookup([]).num_rows == 0


def test_a_key_of_several_columns_is_a_struct_or_a_tuple() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (a BIGINT, b VARCHAR, v BIGINT, PRIMARY KEY (a, b)) PARTITION BY (a)")
        grid.sql("INSERT INTO m VALUES (1, 'x', 10), (1, 'y', 11), (2, 'x', 20)")
        m, keys = grid.map("m"), [(2, "x"), (1, "z"), None, (1, "y"), (1, None)]
        structs = pa.array([None if key is None else {"B": key[1], "a": key[0]} for key in keys])
        for given in (keys, structs):
            assert m.lookup(given, ["v"]).column("v").to_pylist() == [20, None, None, 11, None]
        with pytest.raises(SqlError, match="struct array of them"):
            m.lookup(pa.array([1]))


@pytest.mark.parametrize("durable", [True, False])
def test_an_index_gives_all_rows_of_each_key(tmp_path: Path, durable: bool) -> None:
    grid, m, model = filled(tmp_path / "m.remuda" if durable else None, "BIGINT", 9)
    with grid:
        keys = ["s3", "nothing", None, "s1", "s3"]
        batch = m.lookup(keys, ["v"], index="m_hash")
        assert batch.schema.names == ["position", "v", "found"]
        got = sorted(zip(batch.column("position").to_pylist(), batch.column("v").to_pylist(), strict=True))
        assert got == sorted(
            (at, v) for at, key in enumerate(keys) for number, v in model.items() if key == f"s{number % 5}"
        )
        assert batch.column("position").to_pylist() == sorted(batch.column("position").to_pylist())
        values = [*list(model.values())[:9], -5, None]
        assert m.lookup(values, ["v"], index="m_sorted").column("v").to_pylist() == values[:9]


def test_a_lookup_sees_one_snapshot_of_a_large_map() -> None:
    with remuda.open() as grid:
        grid.load("m", pa.table({"k": np.arange(100_000), "v": np.arange(100_000)}), key="k")
        keys = np.random.default_rng(3).integers(-5_000, 105_000, 50_000)
        batch = grid.map("m").lookup(pa.array(keys), ["v"])
        inside = (keys >= 0) & (keys < 100_000)
        assert np.array_equal(batch.column("found").to_numpy(zero_copy_only=False), inside)
        assert np.array_equal(batch.column("v").filter(pa.array(inside)).to_numpy(), keys[inside])
