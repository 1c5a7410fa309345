"""The first rows of an order: selected where they are few, else sorted; both ways give the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from remuda.exec.sort.ordering import NUMBERS_FOR_EACH, TEXTS_FOR_EACH, sort_positions, top_positions
from remuda.plan.traits import SortKey

ROWS = 2_000
COUNTS = (0, 1, ROWS // NUMBERS_FOR_EACH - 1, ROWS // NUMBERS_FOR_EACH, ROWS // TEXTS_FOR_EACH - 1, ROWS - 1, ROWS + 5)
COLUMNS = {
    "doubles": pa.array([float(i * 7919 % 1013) if i % 50 else float("nan") for i in range(ROWS)]),
    "integers": pa.array([i * 31 % 397 if i % 9 else None for i in range(ROWS)], pa.int32()),
    "texts": pa.array([f"text {i * 17 % 199}" if i % 11 else None for i in range(ROWS)]),
    "codes": pa.array([f"text {i * 17 % 23}" for i in range(ROWS)]).dictionary_encode(),
    "positions": pa.array(random.Random(3).sample(range(ROWS), ROWS)),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    "names",
    [("doubles",), ("integers", "codes"), ("texts", "positions"), ("codes", "doubles", "positions")],
    ids="-".join,
)
@pytest.mark.parametrize("descending", [False, True])
def test_the_first_rows_are_those_of_the_whole_order(names: Sequence[str], count: int, descending: bool) -> None:
    batch = pa.record_batch([COLUMNS[name] for name in names], names=list(names))
    ordinals = range(len(names))
    for nulls_first in (False, True):
        order = tuple(SortKey(number, descending, nulls_first) for number in ordinals)
        found = top_positions(batch, ordinals, order, count)
        expected = sort_positions(batch, ordinals, order)
        assert _keys(batch, found) == _keys(batch, expected)[:count]


def _keys(batch: pa.RecordBatch, positions: pa.Array) -> list[Any]:
    """Return the rows as texts: NaN is not equal to itself."""
    return [repr(row) for row in batch.take(positions).to_pylist()]
