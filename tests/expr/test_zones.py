"""AT TIME ZONE around the days on which clocks are set, and far from the present."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from remuda.expr import Column, Literal, Parameters, call
from remuda.types import TIMESTAMP, TIMESTAMP_TZ, VARCHAR, SqlType, to_stored
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, identity_of, record_batch

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]


def both_ways(type_: SqlType, zone: str, values: list[int]) -> list[int]:
    expression = call("timezone", Literal(zone, VARCHAR), Column(0, "x", type_))
    assert expression is not None
    rows = [(value,) for value in values]
    by_row = [evaluate_row(expression, {0: 0}, row, ()) for row in rows]
    batch = record_batch([type_], rows, dictionaries=False)
    assert evaluate_batch(expression, {0: 0}, batch, Parameters()) == by_row
    return [outcome[1] for outcome in by_row]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("last_year", [2036, 9000])
def test_rows_and_batches_agree(zone: str, last_year: int) -> None:
    """Arrow is asked until 2037, Python beyond."""
    chance = random.Random(zone)
    low, high = (to_stored(TIMESTAMP, dt.datetime(year, 1, 1)) for year in (1800, last_year))
    values = [chance.randrange(low, high) for _ in range(300)]
    shown = both_ways(TIMESTAMP_TZ, zone, values)
    meant = both_ways(TIMESTAMP, zone, shown)
    differing = [(back - value) // 60_000_000 for value, back in zip(values, meant, strict=True) if back != value]
    assert all(abs(minutes) <= 24 * 60 for minutes in differing)
    assert len(differing) < 10, "only a time that is shown twice may be another instant"


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2024-03-31 01:59:59", "2024-03-31 00:59:59"),
        ("2024-03-31 02:30:00", "2024-03-31 01:30:00"),
        ("2024-03-31 03:00:00", "2024-03-31 01:00:00"),
        ("2024-10-27 01:59:59", "2024-10-26 23:59:59"),
        ("2024-10-27 02:30:00", "2024-10-27 01:30:00"),
        ("2040-07-01 12:00:00", "2040-07-01 10:00:00"),
    ],
)
def test_around_the_changes(local: str, expected: str) -> None:
    assert both_ways(TIMESTAMP, "Europe/Berlin", [to_stored(TIMESTAMP, local)]) == [to_stored(TIMESTAMP_TZ, expected)]


def test_an_unknown_zone_is_an_error_of_the_rows_that_meet_it() -> None:
    expression = call("timezone", Literal("Nowhere", VARCHAR), Column(0, "x", TIMESTAMP))
    assert expression is not None
    assert evaluate_row(expression, {0: 0}, (0,), ()) == Failure("unknown time zone: Nowhere")
    batch = record_batch([TIMESTAMP], [(0,)], dictionaries=False)
    assert evaluate_batch(expression, {0: 0}, batch, Parameters()) == Failure("unknown time zone: Nowhere")
    empty = record_batch([TIMESTAMP], [(None,)], dictionaries=False)
    assert evaluate_batch(expression, {0: 0}, empty, Parameters()) == [identity_of(None)]
