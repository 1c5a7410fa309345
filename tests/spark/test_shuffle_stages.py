"""Which fragments run in which stage, in how many tasks, and what they send to each other; without Spark."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.catalog import ColumnStatistics, MapStatistics
from remuda.errors import SqlError
from remuda.exec import ArrowBatch
from remuda.expr import Column
from remuda.plan import physical
from remuda.plan.checker import check_physical
from remuda.plan.fragments import Plan, split
from remuda.plan.partition_map import PartitionMap
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, walk
from remuda.spark.query import shuffle_blocks, shuffle_stages
from remuda.spark.query.shuffle_blocks import (
    BLOCK_ROWS,
    HELD_BYTES,
    TASK_INLINE_BYTES,
    Mailbox,
    OpenedBlocks,
    ReceivedBlocks,
    SentBlocks,
    ShuffleBlockWriter,
    inline_limit,
)
from remuda.spark.query.shuffle_stages import stages_of
from remuda.spark.query.spark_runtime import own_works
from remuda.types import BIGINT
from tests.optimizer.maps import define, plan

if TYPE_CHECKING:
    from pathlib import Path

    from remuda.spark.query.shuffle_stages import Stages

MAP = define("SORTED(a, b)")
REPLICATED = define(replicated=True)
SPARK = (Convention.SPARK,)
PARTITIONS = 271
LARGE = MapStatistics(
    rows=50_000_000,
    columns={name: ColumnStatistics(distinct=20_000_000) for name in ("id", "a", "b")}
    | {"g": ColumnStatistics(distinct=5)},
)
SMALL = MapStatistics(rows=1_000, columns={name: ColumnStatistics(distinct=700) for name in ("id", "a", "b")})


def tree_of(sql: str, statistics: MapStatistics = LARGE) -> physical.Root:
    return plan(sql, MAP, conventions=SPARK, statistics=statistics).tree


def kinds_of(tree: physical.Root) -> list[str]:
    return [type(node).__name__ for node in walk(tree) if isinstance(node, physical.ExchangeNode)]


def stages(sql: str, slots: int = 4, statistics: MapStatistics = LARGE) -> Stages:
    tree = tree_of(sql, statistics)
    owned = (("m1", tuple(range(PARTITIONS))),)
    made = Plan(sql, tree, split(tree), (), (), (), (MAP,), PartitionMap(1, owned, PARTITIONS))
    (edge,) = made.root.received
    return stages_of(made, made.fragments[edge], (), slots)


@pytest.mark.parametrize(
    ("sql", "exchanges"),
    [
        ("SELECT g, COUNT(*) FROM m GROUP BY g", ["RootExchange"]),
        ("SELECT MAX(n) FROM (SELECT a, COUNT(*) AS n FROM m GROUP BY a) AS t", ["RootExchange", "HashExchange"]),
        ("SELECT id, COUNT(*) FROM m GROUP BY id", ["RootExchange"]),
        ("SELECT x.g, COUNT(*) FROM m x JOIN m y ON x.a = y.id GROUP BY x.g", ["RootExchange", "HashExchange"]),
        ("SELECT COUNT(*) FROM m x JOIN m y ON x.a = y.b", ["RootExchange", "HashExchange", "HashExchange"]),
        ("SELECT COUNT(*) FROM m x JOIN m y ON x.id = y.id", ["RootExchange"]),
        (
            "SELECT COUNT(*) FROM m x JOIN m y ON x.a = y.b AND y.g = 1 AND y.id < 9",
            ["RootExchange", "BroadcastExchange"],
        ),
        (
            "SELECT MAX(r) FROM (SELECT RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM m) AS t",
            ["RootExchange", "HashExchange"],
        ),
        ("SELECT a FROM m ORDER BY a, b", ["RootExchange"]),
    ],
)
def test_large_maps_meet_in_tasks(sql: str, exchanges: list[str]) -> None:
    """Rows that are where they are needed stay there: a map is partitioned by its key."""
    assert kinds_of(tree_of(sql)) == exchanges


def test_small_maps_meet_on_the_coordinator() -> None:
    assert kinds_of(tree_of("SELECT COUNT(*) FROM m x JOIN m y ON x.c = y.g", SMALL)) == ["RootExchange"] * 2
    assert kinds_of(tree_of("SELECT a, COUNT(*) FROM m GROUP BY a", SMALL)) == ["RootExchange"]


def test_rows_that_do_not_meet_are_no_plan() -> None:
    tree = tree_of("SELECT COUNT(*) FROM m x JOIN m y ON x.a = y.b")
    check_physical(tree, members=1)

    def without_exchanges(node: Any) -> Any:
        below = node.input if isinstance(node, physical.HashExchange) else node
        return change_inputs(below, without_exchanges)

    with pytest.raises(SqlError, match="rows with equal keys are on one member"):
        check_physical(without_exchanges(tree), members=1)


def test_a_replicated_map_is_in_every_task() -> None:
    sql = "SELECT COUNT(*) FROM m WHERE a < 5"
    assert kinds_of(plan(sql, REPLICATED, conventions=SPARK, statistics=LARGE).tree) == []


def test_tasks_of_all_stages_have_the_same_partitions() -> None:
    found = stages("SELECT x.g, COUNT(*) FROM m x JOIN m y ON x.a = y.id GROUP BY x.g")
    assert [len(stage.fragments) for stage in (*found.before, found.last)] == [1, 1]
    assert np.concatenate(found.blocks).tolist() == list(range(PARTITIONS))
    assert len(found.blocks) == len(found.last.tasks) == len(found.before[0].tasks)
    assert len(found.blocks) % 4 == 0


def test_more_rows_need_more_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT MAX(n) FROM (SELECT a, COUNT(*) AS n FROM m GROUP BY a) AS t"
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 1 << 40)
    assert len(stages(sql).blocks) == 4
    monkeypatch.setattr(shuffle_stages, "TASK_BYTES", 1 << 10)
    assert len(stages(sql).blocks) == PARTITIONS


def test_a_pruned_scan_runs_only_where_its_partitions_are() -> None:
    found = stages("SELECT a, COUNT(*) FROM m WHERE id = 5 GROUP BY a", statistics=replace(LARGE, rows=50_000))
    assert not found.before
    assert [len(block) for block in found.blocks] == [1]


def test_fragments_of_one_stage_share_its_tasks() -> None:
    found = stages("SELECT COUNT(*) FROM m x JOIN m y ON x.a = y.b WHERE y.id = 7 OR y.id > 8")
    (first,) = found.before
    assert len(first.fragments) == 2
    assert all(len(fragments) == 2 for fragments in first.tasks.values())
    assert first.maps == {MAP.id}


def test_the_payload_of_a_task_does_not_grow_with_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of the second stage, whose tasks have all received a file from each task of the first."""
    sizes = {}
    for tasks in (10, 250):
        monkeypatch.setattr(shuffle_stages, "_task_count", lambda _, slots: slots)
        found = stages("SELECT x.g, COUNT(*) FROM m x JOIN m y ON x.a = y.id GROUP BY x.g", slots=tasks)
        assert len(found.last.tasks) == tasks
        mailbox = Mailbox(SentBlocks(sender, 2**62 + sender) for sender in range(tasks))
        own = own_works(found, found.last, mailbox, {})
        sizes[tasks] = max(len(pickle.dumps(work)) for work in own.values())
    assert sizes[250] <= sizes[10] < 500


COLUMNS = (Column(1, "n", BIGINT),)


def batch(start: int, rows: int) -> ArrowBatch:
    return ArrowBatch(COLUMNS, pa.RecordBatch.from_arrays([pa.array(np.arange(start, start + rows))], names=["0"]))


def received(sent: SentBlocks, folder: Path, task: int, edge: int) -> list[int]:
    mailbox = Mailbox([sent])
    blocks = ReceivedBlocks(task, mailbox.for_task(task, {edge}), mailbox.files, str(folder))
    channel = OpenedBlocks(COLUMNS, blocks.open(edge))
    values: list[int] = []
    while not channel.is_finished:
        found = channel.poll()
        values.extend(row[0] for row in ([] if found is None else found.tuples()))
    return values


@pytest.mark.parametrize("rows", [10, BLOCK_ROWS, 3 * BLOCK_ROWS + 1])
@pytest.mark.parametrize("with_folder", [True, False])
@pytest.mark.parametrize("held", [HELD_BYTES, 100_000])
def test_shuffle_blocks_arrive_where_they_are_sent(
    tmp_path: Path, rows: int, with_folder: bool, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle_blocks, "HELD_BYTES", held)
    writer = ShuffleBlockWriter(3, str(tmp_path) if with_folder else None)
    first, second, everyone = writer.channel(1, 0), writer.channel(1, 1), writer.channel(2, None)
    for start in range(0, rows, 10_000):
        count = min(10_000, rows - start)
        assert first.offer(batch(start, count))
        assert second.offer(batch(-start - count, count))
    assert everyone.offer(batch(7, 2))
    sent = writer.finish()
    assert received(sent, tmp_path, 0, 1) == list(range(rows))
    assert sorted(received(sent, tmp_path, 1, 1)) == list(range(-rows, 0))
    assert received(sent, tmp_path, 0, 2) == received(sent, tmp_path, 1, 2) == [7, 8]
    assert received(sent, tmp_path, 2, 1) == []
    assert len(list(tmp_path.iterdir())) == (with_folder and rows * 8 > TASK_INLINE_BYTES)


def test_rows_without_columns_are_counted(tmp_path: Path) -> None:
    writer = ShuffleBlockWriter(0, str(tmp_path))
    rows = batch(0, 9).arrow().select([])
    for _ in range(2):
        writer.channel(1, None).offer(ArrowBatch((), rows))
    (block,) = writer.finish().inline
    assert block.open().num_rows == 18


def test_blocks_come_in_the_order_of_their_senders(tmp_path: Path) -> None:
    """A few rows inline, many in a file, whatever order the tasks have answered in."""
    sent = []
    for sender, rows in ((2, 3), (0, 20_000), (1, 2), (3, 20_000)):
        writer = ShuffleBlockWriter(sender, str(tmp_path))
        writer.channel(1, 0).offer(batch(sender * 100_000, rows))
        sent.append(writer.finish())
    mailbox = Mailbox(sent)
    blocks = ReceivedBlocks(0, mailbox.for_task(0, {1}), mailbox.files, str(tmp_path))
    found = [(each.column(0)[0].as_py() // 100_000, each.num_rows) for each in blocks.open(1)]
    assert found == [(0, 20_000), (1, 2), (2, 3), (3, 20_000)]


def test_a_task_that_runs_twice_has_two_files_and_one_is_read(tmp_path: Path) -> None:
    sent = []
    for first in (0, 500_000):
        writer = ShuffleBlockWriter(0, str(tmp_path))
        writer.channel(1, 0).offer(batch(first, 20_000))
        sent.append(writer.finish())
    assert len(list(tmp_path.iterdir())) == 2
    assert received(sent[0], tmp_path, 0, 1)[0] == 0
    assert received(sent[1], tmp_path, 0, 1)[0] == 500_000


def test_what_the_driver_handles_grows_with_the_senders(tmp_path: Path) -> None:
    """Each of many senders has rows for each of many receivers; the driver has one entry for each sender."""
    tasks = 100
    sent = []
    for sender in range(tasks):
        writer = ShuffleBlockWriter(sender, str(tmp_path), inline_limit(tasks))
        for target in range(tasks):
            writer.channel(1, target).offer(batch(sender * tasks + target, 1))
        sent.append(writer.finish())
    assert sum(len(pickle.dumps(each)) for each in sent) < tasks * 200
    mailbox = Mailbox(sent)
    assert len(pickle.dumps(mailbox.files)) < tasks * 16
    assert all(mailbox.for_task(task, {1}) == () for task in range(tasks))
    blocks = ReceivedBlocks(7, (), mailbox.files, str(tmp_path))
    assert [each.column(0)[0].as_py() for each in blocks.open(1)] == [sender * tasks + 7 for sender in range(tasks)]
