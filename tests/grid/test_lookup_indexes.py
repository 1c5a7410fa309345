"""`Map.lookup` by indexes of every type of column, with NULLs in segments and memtable, against a plain model."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import remuda

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLOATS = (math.nan, -0.0, 0.0, 1.5, -2.25, math.inf)
MAKERS: dict[str, Callable[[int], Any]] = {
    "BOOLEAN": lambda number: bool(number % 2),
    "SMALLINT": lambda number: number % 7 - 3,
    "BIGINT": lambda number: number % 13 - 5,
    "DECIMAL(12, 3)": lambda number: Decimal(number % 11) / 8,
    "DECIMAL(30, 2)": lambda number: Decimal(10) ** 20 + Decimal(number % 11) / 4,
    "REAL": lambda number: FLOATS[number % 6],
    "DOUBLE": lambda number: FLOATS[number % 6],
    "VARCHAR": lambda number: f"v{number % 9}" * (number % 3),
    "VARBINARY": lambda number: bytes([number % 5, 255 - number % 3]),
    "DATE": lambda number: dt.date(2024, 1, 1 + number % 9),
    "TIMESTAMP": lambda number: dt.datetime(2024, 1, 1 + number % 9, 3),
}


def compared(value: Any) -> Any:
    """Return what is equal where SQL says so: NaN to itself, and 0.0 to -0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


@pytest.mark.parametrize("index", ["HASH", "SORTED"])
@pytest.mark.parametrize("kind", MAKERS)
def test_an_index_finds_what_the_model_has(tmp_path: Path, kind: str, index: str) -> None:
    """A HASH index of a column with NULLs found no row for NaN."""
    chance = random.Random(f"{kind} {index}")

    def value(make: Callable[[int], Any]) -> Any:
        return None if chance.random() < 0.1 else make(chance.randrange(200))

    model: dict[int, tuple[Any, Any, int]] = {}
    with remuda.open(tmp_path / "m.remuda") as grid:
        grid.sql(f"CREATE TABLE m (id BIGINT, a {kind}, b VARCHAR, v BIGINT, PRIMARY KEY (id))")
        grid.sql(f"CREATE INDEX by_a ON m (a) TYPE {index}")
        grid.sql(f"CREATE INDEX by_both ON m (b, a) TYPE {index}")
        m = grid.map("m")
        for turn in range(3):
            for _ in range(100):
                number, row = chance.randrange(150), (value(MAKERS[kind]), value(MAKERS["VARCHAR"]))
                model[number] = (*row, turn)
                m.set(number, model[number])
            for number in chance.sample(sorted(model), 15):
                m.delete(number)
                del model[number]
            if turn < 2:
                grid.checkpoint()
        for name, columns in (("by_a", (0,)), ("by_both", (1, 0))):
            keys = [tuple(value(MAKERS["VARCHAR" if at else kind]) for at in columns) for _ in range(60)]
            batch = m.lookup([key[0] for key in keys] if len(columns) == 1 else keys, ["id"], index=name)
            positions = batch.column("position").to_pylist()
            assert positions == sorted(positions)
            expected = [
                (position, number)
                for position, key in enumerate(keys)
                for number, row in model.items()
                if None not in key and [compared(row[at]) for at in columns] == [compared(each) for each in key]
            ]
            assert len(expected) > 20
            assert sorted(zip(positions, batch.column("id").to_pylist(), strict=True)) == sorted(expected)
