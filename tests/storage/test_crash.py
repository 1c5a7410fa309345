"""A process that writes is killed at random moments: what it had acknowledged is there, and no half of a statement."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remuda.storage import Lookup, MapStore, Store
from remuda.storage.load import segment_cut
from tests.storage.crash_writer import Row, apply_effect
from tests.storage.folders import only_map
from tests.storage.maps import contents


@pytest.mark.parametrize(
    ("kills", "group_bytes"),
    [
        pytest.param(10, segment_cut.GROUP_BYTES, id="one group"),
        pytest.param(4, 200, id="many groups"),
        pytest.param(100, segment_cut.GROUP_BYTES, id="one group, often", marks=pytest.mark.slow),
        pytest.param(100, 200, id="many groups, often", marks=pytest.mark.slow),
    ],
)
@pytest.mark.timeout(1800)
def test_acknowledged_writes_survive_sigkill(tmp_path: Path, kills: int, group_bytes: int) -> None:
    folder, model, first = tmp_path / "store", {}, 1
    states: list[dict[int, Row]] = [model]
    for _ in range(kills):
        acknowledged = _run_until_killed(folder, first, group_bytes)
        if acknowledged:
            assert acknowledged == list(range(first, acknowledged[-1] + 1))
        for number in acknowledged:
            model = apply_effect(model, number)
            states.append(model)
        first += len(acknowledged)
        # One statement may have been under way: it is there as a whole or not at all.
        possible = [model, apply_effect(model, first)]
        states.append(possible[1])
        _check_versions(folder, states)
        model = _check(folder, possible)
        first += 1


def _run_until_killed(folder: Path, first: int, group_bytes: int) -> list[int]:
    """The numbers of the statements that were acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.crash_writer", str(folder), str(first), str(group_bytes)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
    )
    assert child.stdout is not None
    wanted = random.randint(1, 40)
    lines = []
    for line in child.stdout:
        lines.append(line)
        if len(lines) == wanted:
            break
    time.sleep(random.random() * 0.02)
    child.send_signal(signal.SIGKILL)
    # What was printed before the signal arrived was acknowledged too.
    lines += list(child.stdout)
    child.wait()
    child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    return [int(line) for line in lines if line.endswith("\n")]


def _check_versions(folder: Path, states: list[dict[int, Row]]) -> None:
    """Each version that is kept has what the map had behind one of the statements."""
    reader = Store.open(folder, read_only=True)
    versions = [each.number for each in reader.history.descriptions()]
    assert versions
    for version in versions:
        for definition in reader.history.at(version).maps.values():
            rows = contents(reader.map(definition).snapshot())
            assert {row[0]: row for row in rows} in states
            assert len({row[0] for row in rows}) == len(rows)
    reader.close()


def _check(folder: Path, possible: list[dict[int, Row]]) -> dict[int, Row]:
    """Opens the folder, compares it with the possible contents, and returns the one that it has."""
    store = Store.open(folder)
    store.verify()
    orders = only_map(store)
    rows = {row[0]: row for row in contents(orders.snapshot())}
    assert len(rows) == len(orders)
    assert rows in possible
    for key, row in rows.items():
        assert orders.lookup(key, (0, 1, 2)) == row
    _check_indexes(orders, rows)
    store.close()
    return rows


def _check_indexes(orders: MapStore, rows: dict[int, Row]) -> None:
    snapshot = orders.snapshot()
    for index in snapshot.definition.indexes:
        column = snapshot.definition.position(index.columns[0])
        by_value: dict[object, list[Row]] = {"nothing": []} if column == 1 else {-1.5: []}
        for row in rows.values():
            by_value.setdefault(row[column], []).append(row)
        for value, expected in by_value.items():
            found = [
                row
                for source in snapshot.sources
                for row in source.rows_at((0, 1, 2), source.positions(index.id, Lookup((value,))))
            ]
            assert sorted(found) == sorted(expected)
