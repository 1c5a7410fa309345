"""The benchmarks measure fairly and compare like with like. No time is asserted here or anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import data, measure
from benchmarks.case import Setting, size_of
from benchmarks.cases import lookup, members, scan
from benchmarks.peers import Peers

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 3_000


@pytest.fixture(scope="module")
def setting() -> Iterator[Setting]:
    rows = data.make(ROWS)
    peers = Peers(rows)
    yield Setting(rows, peers, with_spark=False)
    peers.remuda.grid.close()
    peers.sqlite.connection.close()
    peers.duckdb.connection.close()
    peers.duckdb_file.close()


@pytest.mark.parametrize("group", [lookup, scan, members], ids=["lookup", "scan", "members"])
def test_all_contenders_give_answers_of_the_same_size(group: object, setting: Setting) -> None:
    for case in group.cases(setting):  # type: ignore[attr-defined]
        if case.same_answers:
            for _ in range(5):
                assert len({size_of(contender()) for contender in case.contenders.values()}) == 1, case.name


def test_every_function_has_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS_FOR_EACH", 0.0)
    monkeypatch.setattr(measure, "SHORTEST_TURN", 0.0001)
    calls: list[str] = []
    timings = measure.interleave({name: lambda name=name: calls.append(name) for name in "ab"})  # type: ignore[misc]
    assert set(timings) == {"a", "b"}
    assert all(0 < timing.minimum <= timing.median for timing in timings.values())
    assert min(calls.count("a"), calls.count("b")) >= measure.FEWEST_TURNS


def test_ranges_hold_exactly_as_many_rows_as_they_say() -> None:
    rows = data.make(ROWS)
    for low, high in rows.amount_ranges(10)[:20]:
        assert sum(low <= amount <= high for amount in rows.sorted_amounts) == 10
