"""Changes, conditions and batches of several writers of one remote store: each is right on top of the newest root."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import remuda
from remuda.catalog import new_id
from remuda.sql import bind_condition
from remuda.storage.load.change_format import ChangeFormat
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.change_segments import build_change_segments
from remuda.storage.load.merge_changes import ChangeCounts
from remuda.storage.remote.remote_delivery import RemoteInbox
from remuda.storage.state.applied_batches import BatchId
from tests.storage.s3_server import BUCKET, S3Server, s3_server

Open = Callable[[], Any]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["a folder", "S3"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens one more writer of a store."""
    grids: list[Any] = []
    if request.param == "S3":
        place = request.getfixturevalue("s3").uri(f"{BUCKET}/{new_id()}.remuda")
        options: dict[str, Any] = {"path": place}
    else:
        (tmp_path / "remote").mkdir()
        options = {"path": "shop", "filesystem": fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())}

    def open_one() -> Any:
        grids.append(remuda.open(**options, durability="none", cache=tmp_path / "cache"))
        return grids[-1]

    with open_one() as first:
        first.load("t", changes([(key, 0, 0) for key in range(20)]), key="id")
    yield open_one
    for grid in grids:
        if not grid.store.closed:
            grid.store.leave("the test is over")


def changes(rows: list[tuple[Any, ...]]) -> pa.Table:
    names = ("id", "v", "ts", "op")[: len(rows[0])]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def contents(grid: Any) -> dict[int, tuple[int, int]]:
    return {row[0]: (row[1], row[2]) for row in grid.sql("SELECT id, v, ts FROM t")}


def test_changes_are_merged_with_what_another_writer_has_committed(opened: Open) -> None:
    one, other = opened(), opened()
    one.load("t", changes([(1, 1, 5), (2, 1, 5), (30, 1, 5)]), mode="upsert")
    found = other.load(
        "t", changes([(2, 2, 1, "d"), (3, 2, 1, "u"), (30, 2, 1, "d"), (31, 2, 1, "i")]), mode="apply", operation="op"
    )
    assert found == ChangeCounts(inserted=1, updated=1, deleted=2)
    expected = {key: (0, 0) for key in range(20) if key != 2} | {1: (1, 5), 3: (2, 1), 31: (2, 1)}
    assert contents(other) == contents(opened()) == expected


def test_a_condition_is_asked_of_the_rows_that_another_writer_has_committed(opened: Open) -> None:
    one, other = opened(), opened()
    one.load("t", changes([(1, 1, 5), (2, 1, 5), (30, 1, 5)]), mode="upsert")
    given = changes([(1, 2, 4), (2, 2, 6), (3, 2, 4), (30, 2, 4), (31, 2, 4)])
    assert other.load("t", given, mode="upsert", condition="new.ts > old.ts") == 3
    expected = dict.fromkeys(range(20), (0, 0)) | {1: (1, 5), 2: (2, 6), 3: (2, 4), 30: (1, 5), 31: (2, 4)}
    assert contents(other) == contents(opened()) == expected


def test_a_batch_that_another_writer_has_applied_changes_nothing(opened: Open) -> None:
    one, other = opened(), opened()
    one.load("t", changes([(1, 1, 1)]), mode="upsert", batch_id=("feed", 7))
    one.load("t", changes([(1, 2, 2)]), mode="upsert")
    other.load("t", changes([(1, 9, 9), (40, 9, 9)]), mode="upsert", batch_id=("feed", 7))
    assert contents(opened())[1] == (2, 2)
    assert 40 not in contents(opened())
    other.load("t", changes([(1, 3, 3)]), mode="upsert", batch_id=("feed", 8))
    assert contents(opened())[1] == (3, 3)


def test_deliveries_of_changes(opened: Open) -> None:
    """As tasks of Spark hand them in; one that is handed in again, as its answer was lost, changes nothing."""
    grid = opened()
    (definition,) = grid.store.catalog.maps.values()
    inbox = RemoteInbox(grid.store.remote)
    rules = ChangeRules("ts", bind_condition("new.ts > old.ts", definition), BatchId("feed", 1))
    for number in range(2):
        delivery = f"load{new_id()}"
        infos = []
        for rows in ([(1, 5, 1, "u"), (2, 5, 1, "u")], [(1, 6, 2, "d"), (3, 6, -1, "d"), (50, number, 2, "i")]):
            form = ChangeFormat("op", "ts")
            segments = build_change_segments(definition, form.read(definition, changes(rows)))
            infos += inbox.save_changes(delivery, segments)
        inbox.deliver(delivery, definition, infos, "apply", rules=rules)
    expected = {key: (0, 0) for key in range(20) if key != 1} | {2: (5, 1), 50: (0, 2)}
    assert contents(opened()) == expected


@pytest.mark.parametrize("seed", range(2))
def test_writers_at_the_same_time_against_the_newest_change_of_each_key(opened: Open, seed: int) -> None:
    """Under the condition the newest change of a key wins, in whatever order the commits were made."""
    draw = random.Random(seed)
    writers, loads = 3, 6
    batches = [
        [
            [(key, draw.randrange(10**6), ts * writers + writer + 1, "u") for key in draw.sample(range(40), 12)]
            for ts in range(loads)
        ]
        for writer in range(writers)
    ]
    grids = [opened() for _ in range(writers)]

    def write(writer: int) -> None:
        for number, rows in enumerate(batches[writer]):
            for _ in range(2):  # each batch is sent twice
                grids[writer].load(
                    "t",
                    changes(rows),
                    mode="apply",
                    operation="op",
                    condition="new.ts > old.ts",
                    batch_id=(f"writer {writer}", number),
                )

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    expected = dict.fromkeys(range(20), (0, 0))
    for rows in (rows for writer in batches for rows in writer):
        for key, v, ts, _ in rows:
            if key not in expected or ts > expected[key][1]:
                expected[key] = (v, ts)
    assert contents(opened()) == expected
