"""Plans made for another distribution of partitions: noticed at set-up, and made anew; a running query goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda import sql
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext, ExpressionCache
from remuda.exec.scan.map_scan import MapScanExec
from remuda.expr import Parameters
from remuda.grid import query_run
from remuda.plan.partition_map import PartitionMap
from remuda.runtime import QueryState, Scheduler, local
from remuda.runtime.local import LocalRuntime
from remuda.runtime.offload_pool import OffloadPool

ROWS = 40_000


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open(members=2, partitions=8) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        opened.load("m", pa.table({"id": range(ROWS), "n": [number % 100 for number in range(ROWS)]}))
        yield opened


def run(grid: Any, text: str, owned: dict[str, tuple[int, ...]]) -> int:
    """Runs a query by a plan that expects the members to own these partitions; gives the number of rows."""
    query = sql.parse(text)
    plan = grid.default_session.planner().plan(text, query)
    plan = replace(plan, partition_map=PartitionMap(0, tuple(owned.items()), 8))
    scheduler = Scheduler(parallelism=2)
    try:
        execution = LocalRuntime(grid.cluster, scheduler, OffloadPool()).start(
            plan,
            Parameters(),
            {each.definition.id: each for each in grid.store.snapshot(plan.maps)},
            ExpressionCache(),
            QueryState(),
            check_objects=lambda: None,
        )
        rows = 0
        while (batch := execution.next_batch()) is not None:
            rows += batch.row_count
        return rows
    finally:
        scheduler.close()


TRUE = {"member-1": (0, 1, 2, 3), "member-2": (4, 5, 6, 7)}


@pytest.mark.parametrize(
    "text", ["SELECT id FROM m", "SELECT id FROM m WHERE n >= 0", "SELECT id FROM m ORDER BY n", "SELECT id, n FROM m"]
)
def test_the_three_cases(grid: Any, text: str) -> None:
    assert run(grid, text, TRUE) == ROWS
    for wrong in (
        {"member-1": (0, 1, 2, 3, 4), "member-2": (4, 5, 6, 7)},  # member-1 owns fewer than expected
        {"member-1": (0, 1, 2), "member-2": (4, 5, 6, 7)},  # and more than expected
        {"member-1": (4, 5, 6, 7), "member-2": (0, 1, 2, 3)},
    ):
        with pytest.raises(SqlError) as caught:
            run(grid, text, wrong)
        assert caught.value.code is ErrorCode.PARTITION_DISTRIBUTION


@pytest.mark.parametrize("members", [1, 2])
def test_a_wrong_plan_reads_nothing(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fragment is checked before its operators are set up."""
    scanned: list[Any] = []
    monkeypatch.setattr(MapScanExec, "setup", lambda scan, _: scanned.append(scan))
    with remuda.open(members=members, partitions=8) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        owned = {member.id: (0,) for member in grid.cluster.members}
        with pytest.raises(SqlError) as caught:
            run(grid, "SELECT id FROM m", owned)
    assert caught.value.code is ErrorCode.PARTITION_DISTRIBUTION
    assert not scanned


def test_a_member_that_left_is_noticed(grid: Any) -> None:
    with pytest.raises(SqlError) as caught:
        run(grid, "SELECT id FROM m", {**TRUE, "member-7": (0,)})
    assert caught.value.code is ErrorCode.PARTITION_DISTRIBUTION


def test_the_user_sees_nothing_of_a_migration_before_the_first_row(grid: Any) -> None:
    for change in (grid.cluster.add_member, lambda: grid.cluster.remove_member("member-1")):
        result = grid.sql("SELECT id FROM m")
        change()
        assert sorted(row.id for row in result) == list(range(ROWS))


CHANGES = ("join", "leave", "both")


def change(grid: Any, what: str) -> None:
    if what != "leave":
        grid.cluster.add_member()
    if what != "join":
        grid.cluster.remove_member("member-1")


MOVING_QUERIES = (
    "SELECT id FROM m",
    "SELECT id FROM m WHERE n >= 0",
    "SELECT id FROM m ORDER BY n, id",
    "SELECT a.id FROM m AS a JOIN m AS b ON a.id = b.id",
    "SELECT id FROM m WHERE id IN (SELECT id FROM m)",
)


@pytest.mark.parametrize("text", MOVING_QUERIES)
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("members", [1, 3, 5])
def test_a_result_that_is_being_read_survives_migrations(
    members: int, what: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fragment keeps the partitions that it was given: each row comes exactly once, also after writes."""
    monkeypatch.setattr(local, "ExecContext", partial(ExecContext, scan_batch_rows=100))
    rows = 6_000
    with remuda.open(members=members) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        grid.load("m", pa.table({"id": range(rows), "n": [number % 100 for number in range(rows)]}))
        result = grid.sql(text)
        found = [row.id for row in result.fetchmany(3)]
        if members == 1 and what == "leave":
            grid.cluster.add_member()
        change(grid, what)
        found += [row.id for row in result.fetchmany(500)]
        grid.sql("DELETE FROM m WHERE n > 50")
        grid.cluster.add_member()
        found += [row.id for row in result.fetchall()]
        assert sorted(found) == list(range(rows))


def test_fragments_that_begin_after_the_first_row_keep_their_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is made once, for all members, and not by each fragment when it has a thread."""
    with remuda.open(members=3, partitions=8) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(ROWS)}))
        waiting: list[Any] = []
        submit = grid.engine.scheduler.submit
        monkeypatch.setattr(grid.engine.scheduler, "submit", waiting.append)
        result = grid.sql("SELECT id FROM m")
        assert len(waiting) == 3
        submit(waiting.pop(0))
        found = [row.id for row in result.fetchmany(3)]
        assert len(found) == 3
        change(grid, "both")
        for task in waiting:
            submit(task)
        found += [row.id for row in result.fetchall()]
        assert sorted(found) == list(range(ROWS))


def test_members_that_never_stop_changing_are_told_to_the_user(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try meets a table that changed after its planning: bounded tries, then TOPOLOGY_CHANGE."""
    monkeypatch.setattr(query_run, "MAXIMUM_TRIES", 5)
    execute = grid.engine.start
    tries = []

    def change_and_execute(*arguments: Any, **named: Any) -> Any:
        tries.append(1)
        grid.cluster.remove_member(grid.cluster.members[0].id)
        grid.cluster.add_member()
        return execute(*arguments, **named)

    monkeypatch.setattr(grid.engine, "start", change_and_execute)
    for text in ("SELECT id FROM m", "UPDATE m SET n = 1 WHERE n > 50"):
        tries.clear()
        with pytest.raises(SqlError) as caught:
            grid.sql(text).fetchall()
        assert caught.value.code is ErrorCode.TOPOLOGY_CHANGE
        assert len(tries) == 5
    monkeypatch.undo()
    assert grid.sql("SELECT id FROM m WHERE n > 50").fetchall()


def fragments(grid: Any) -> dict[str, int]:
    return {member.id: member.fragments_run for member in grid.cluster.members}


def asked(grid: Any, text: str, *parameters: Any) -> set[str]:
    before = fragments(grid)
    grid.sql(text, *parameters).fetchall()
    after = fragments(grid)
    return {member for member in after if after[member] != before[member]}


def owner(grid: Any, id_: int) -> str:
    from remuda.storage import hash_values, partition_of
    from remuda.types import BIGINT

    owners: tuple[str, ...] = grid.cluster.partition_table.owners
    return owners[partition_of(hash_values((id_,), (BIGINT,)), len(owners))]


def test_members_without_needed_partitions_are_not_asked() -> None:
    with remuda.open(members=5) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        grid.load("m", pa.table({"id": range(1_000), "n": [number % 10 for number in range(1_000)]}))
        everyone = set(fragments(grid))
        assert asked(grid, "SELECT * FROM m") == everyone
        pair = "SELECT n FROM m WHERE id IN (?, ?)"
        for ids in ((1, 2), (3, 3), (500, 77)):
            assert asked(grid, pair, *ids) == {owner(grid, id_) for id_ in ids}
        assert asked(grid, pair, None, None) == set()
        assert asked(grid, "SELECT n FROM m WHERE id BETWEEN ? AND ?", 10, 11) == {owner(grid, 10), owner(grid, 11)}
        assert asked(grid, "SELECT n FROM m WHERE id BETWEEN 11 AND 10") == set()
        assert asked(grid, "SELECT COUNT(*) FROM m WHERE id = 5 OR (id = 6 AND n > 0)") == {
            owner(grid, 5),
            owner(grid, 6),
        }
        assert asked(grid, "UPDATE m SET n = n + 1 WHERE id IN (7, 8)") == {owner(grid, 7), owner(grid, 8)}
        assert asked(grid, "DELETE FROM m WHERE id IN (7, 8)") == {owner(grid, 7), owner(grid, 8)}
        assert asked(grid, "SELECT * FROM m WHERE id = 1 OR n = 2") == everyone
        grid.sql("SET partition_pruning = off")
        assert asked(grid, pair, 1, 2) == everyone


LOOKED_UP = "SELECT l.id, e.x FROM l JOIN e ON e.a = l.a AND e.id = l.id WHERE l.a IN (?, ?)"


def looked_up(members: int, partitions: int = 271) -> Any:
    """Open a grid with a map whose few rows are looked up in a large one, which is partitioned alike."""
    grid = remuda.open(members=members, partitions=partitions)
    grid.sql("CREATE TABLE l (a BIGINT, id BIGINT, PRIMARY KEY (a, id)) PARTITION BY (a)")
    grid.sql("CREATE TABLE e (a BIGINT, id BIGINT, x BIGINT, PRIMARY KEY (a, id)) PARTITION BY (a)")
    grid.load("l", pa.table({"a": [n % 100 for n in range(300)], "id": range(300)}))
    grid.load("e", pa.table({"a": [n % 100 for n in range(60_000)], "id": range(60_000), "x": range(60_000)}))
    plan = "\n".join(line for (line,) in grid.sql(f"EXPLAIN {LOOKED_UP}", 1, 2))
    assert "LookupJoin INNER e by its key [PARTITIONED by a]" in plan
    return grid


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_members_without_rows_to_be_looked_up_are_not_asked(kind: str) -> None:
    with looked_up(5) as grid:
        text = LOOKED_UP.replace("JOIN", kind)
        for pair in ((1, 2), (3, 3), (50, 77), (None, 4)):
            expected = [(id_, id_) for id_ in range(300) if id_ % 100 in pair]
            assert sorted(grid.sql(text, *pair).fetchall()) == expected
            assert asked(grid, text, *pair) == {owner(grid, a) for a in pair if a is not None}
        everywhere = "SELECT e.x FROM (VALUES (1, 1), (2, 102)) AS v(a, id) JOIN e ON e.a = v.a AND e.id = v.id"
        assert sorted(grid.sql(everywhere).fetchall()) == [(1,), (102,)]


def test_losing_a_member_without_rows_to_be_looked_up_does_not_disturb() -> None:
    with looked_up(2, partitions=2) as small:
        mine = [a for a in range(100) if owner(small, a) == "member-1"][:2]
        result = small.sql(LOOKED_UP, *mine)
        small.cluster.add_member()  # three members, two partitions: the second moves
        assert sorted(row.id for row in result) == [id_ for id_ in range(300) if id_ % 100 in mine]


def test_losing_a_member_that_is_not_needed_does_not_disturb(grid: Any) -> None:
    """The partitions of the others stay where they are: the plan is stale as a whole, but not for this query."""
    with remuda.open(members=2, partitions=2) as small:
        small.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        small.load("m", pa.table({"id": range(100), "n": range(100)}))
        mine = [id_ for id_ in range(100) if owner(small, id_) == "member-1"][:2]
        result = small.sql("SELECT n FROM m WHERE id IN (?, ?)", *mine)
        small.cluster.add_member()  # three members, two partitions: the second moves
        assert sorted(row.n for row in result) == mine


QUERIES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("SELECT * FROM m", ()),
    ("SELECT n FROM m WHERE id = ?", (5,)),
    ("SELECT id FROM m WHERE id IN (?, ?, ?)", (5, 6, 5)),
    ("SELECT id FROM m WHERE id BETWEEN ? AND ?", (10, 40)),
    ("SELECT id FROM m WHERE id BETWEEN ? AND ?", (40, 10)),
    ("SELECT id FROM m WHERE (id = 1 OR id = 2) AND n > 0", ()),
    ("SELECT id FROM m WHERE id = 1 OR n = 2", ()),
    ("SELECT id FROM m WHERE id IN (1, 2, 3) AND n BETWEEN 1 AND 2", ()),
    ("SELECT n, COUNT(*) FROM m WHERE id BETWEEN 1 AND 500 GROUP BY n", ()),
    ("SELECT id FROM m WHERE id = ?", (None,)),
    ("SELECT id FROM m WHERE id = ?", (1.5,)),
)


@pytest.mark.parametrize("members", [1, 2])
def test_without_pruning_the_answers_are_the_same(members: int) -> None:
    with remuda.open(members=members, partitions=8) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        grid.load("m", pa.table({"id": range(2_000), "n": [number % 100 for number in range(2_000)]}))
        answers = {}
        for switch in ("on", "off"):
            grid.sql(f"SET partition_pruning = {switch}")
            answers[switch] = [sorted(grid.sql(text, *values).fetchall()) for text, values in QUERIES]
        assert answers["on"] == answers["off"]
        assert len(answers["on"][0]) == 2_000
