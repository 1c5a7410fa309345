"""No full collections while a great many rows are made; the collector as it was before and after."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError
from remuda.grid.results.garbage import NEVER, FullCollectionsPutOff

if TYPE_CHECKING:
    from collections.abc import Iterator

EAGER = (100, 2, 2)
"""A full collection after every few hundred objects, once those that are there already are forgotten."""


@pytest.fixture
def eager() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.collect()
    gc.set_threshold(*EAGER)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, name VARCHAR, day DATE, PRIMARY KEY (id))")
        names = pa.array([f"n{number % 7}" for number in range(50_000)]).dictionary_encode()
        days = pa.array([None if number % 5 == 0 else number for number in range(50_000)], pa.int32()).cast(pa.date32())
        opened.load("m", pa.table({"id": range(50_000), "name": names, "day": days}))
        yield opened


def test_fetchall_makes_its_rows_without_looking_through_all_of_them(grid: Any, eager: None) -> None:
    full: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            full.append(info["generation"])

    result = grid.sql("SELECT * FROM m")
    batches = result._all_batches()
    result._all_batches = lambda: batches
    gc.callbacks.append(count)
    try:
        rows = result.fetchall()
        while_made = len(full)
        kept = [list(row) for row in rows[:5_000]]  # as many objects again: now a full collection is due
    finally:
        gc.callbacks.remove(count)
    assert len(rows) == 50_000
    assert kept
    assert while_made == 0
    assert full, "the test would see one"
    assert gc.get_threshold() == EAGER


def test_the_thresholds_are_restored_after_an_error(grid: Any, eager: None) -> None:
    result = grid.sql("SELECT * FROM m")
    seen: list[int] = []

    def close_within(*_: Any) -> None:
        seen.append(gc.get_threshold()[2])
        result._closed = True
        result._refuse_closed()

    result._parts = close_within
    with pytest.raises(SqlError, match="closed"):
        result.fetchall()
    assert seen == [NEVER]
    assert gc.get_threshold() == EAGER


def test_the_last_of_several_restores(eager: None) -> None:
    put_off = FullCollectionsPutOff()
    inside, leave = threading.Event(), threading.Event()

    def another() -> None:
        with put_off:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=another)
    with put_off:
        thread.start()
        assert inside.wait(60)
    assert gc.get_threshold() == (*EAGER[:2], NEVER)
    leave.set()
    thread.join()
    assert gc.get_threshold() == EAGER


def test_what_the_program_sets_meanwhile_stays(eager: None) -> None:
    with FullCollectionsPutOff():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)


def test_a_collector_that_is_off_stays_off(eager: None) -> None:
    gc.disable()
    try:
        with FullCollectionsPutOff():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.set_threshold(0, 5, 5)
    with FullCollectionsPutOff():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold() == (0, 5, 5)


def test_equal_values_of_a_dictionary_are_one_object_and_nulls_are_none(grid: Any) -> None:
    rows = grid.sql("SELECT name, day FROM m ORDER BY id").fetchall()
    assert [tuple(row) for row in rows[:6]] == [
        ("n0", None),
        *((f"n{number}", rows[number].day) for number in range(1, 5)),
        ("n5", None),
    ]
    assert rows[1].day.isoformat() == "1970-01-02"
    assert rows[0].name is rows[7].name
