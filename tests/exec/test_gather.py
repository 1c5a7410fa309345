"""Choosing rows: every type, NULLs, slices, every share of the rows."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec import selection as row_choice
from remuda.exec.selection import gather, take_rows
from remuda.expr.evaluate.mask import true_rows

COUNT = 300


def batch(offset: int) -> pa.RecordBatch:
    chooser = random.Random(1)
    numbers = [chooser.randrange(100) for _ in range(COUNT + offset)]
    some = [None if number % 7 == 0 else number for number in numbers]
    texts = pa.array([None if number is None else f"t{number % 5}" for number in some])
    arrays = [
        pa.array(numbers),
        pa.array(some),
        pa.array(numbers, pa.int8()),
        pa.array([number / 2 for number in numbers], pa.float32()),
        pa.array(numbers, pa.int32()).view(pa.date32()),
        pa.array(numbers).view(pa.timestamp("us")),
        pa.array([number % 2 == 0 for number in numbers]),
        pa.array([Decimal(number) for number in numbers], pa.decimal128(5, 1)),
        texts,
        texts.dictionary_encode(),
        texts.fill_null("").dictionary_encode(),
        texts.cast(pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))]).slice(offset)


@pytest.mark.parametrize("offset", [0, 1, 13])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 0.97, 1.0])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("handful", [0, 1_000], ids=["many", "handful"])
def test_chosen_rows_are_those_of_the_filter(
    offset: int, share: float, nulls: bool, handful: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_choice, "HANDFUL", handful)
    chooser = random.Random(f"{share}{nulls}")
    bits = [chooser.random() < share for _ in range(COUNT + 5)]
    condition = pa.array([None if nulls and chooser.random() < 0.2 else bit for bit in bits], pa.bool_()).slice(5)
    rows = batch(offset)
    truth = true_rows(condition)
    chosen = gather(rows, truth, int(np.count_nonzero(truth)))
    chosen.validate(full=True)
    assert chosen.to_pydict() == rows.filter(condition).to_pydict()
    assert chosen.schema == rows.schema


@pytest.mark.parametrize("offset", [0, 1, 13])
def test_taken_rows_are_those_at_the_positions(offset: int) -> None:
    rows = batch(offset)
    for positions in (np.random.default_rng(offset).integers(0, COUNT, 700), np.empty(0, np.int64)):
        taken = take_rows(rows, positions)
        taken.validate(full=True)
        assert taken.to_pydict() == rows.take(pa.array(positions)).to_pydict()
        assert taken.schema == rows.schema
    assert take_rows(rows.select([]), np.zeros(4, np.int64)).num_rows == 4
