"""Statements that write run on the members that own the partitions; the coordinator gets counts, never their rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError
from remuda.exec import RowBatch
from remuda.exec.memory import bytes_held
from remuda.grid import statement_writer
from remuda.optimizer import cost
from remuda.runtime.channel import BoundedChannel
from remuda.runtime.edges import Edges
from remuda.storage.load import group_compaction
from tests.grid.test_bulk_statements import SIDES, store_of

ROWS = 30_000


@pytest.fixture(params=SIDES)
def grid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(cost, "SEGMENT_START", SIDES[request.param])
    with remuda.open(members=3) as opened:
        opened.load("s", source(ROWS), key="id")
        opened.sql("CREATE TABLE t (id BIGINT, n BIGINT, name VARCHAR, PRIMARY KEY (id))")
        yield opened


def source(rows: int) -> pa.Table:
    return pa.table({"id": range(rows), "n": [i % 9 for i in range(rows)], "name": [f"n{i % 50}" for i in range(rows)]})


class _Counted:
    """Counts what the fragments send, to the coordinator and to members."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.to_root = self.rows_to_root = self.to_members = 0
        roots: set[int] = set()
        take, offer = Edges.into_root, BoundedChannel.offer

        def into_root(edges: Edges) -> Any:
            received = take(edges)
            roots.update(id(channel) for channels in received.values() for channel in channels)
            self.kept = received
            return received

        def counted(channel: BoundedChannel, batch: RowBatch) -> bool:
            sent = offer(channel, batch)
            if sent and id(channel) in roots:
                self.to_root += bytes_held(batch)
                self.rows_to_root += batch.row_count
            elif sent:
                self.to_members += batch.row_count
            return sent

        monkeypatch.setattr(Edges, "into_root", into_root)
        monkeypatch.setattr(BoundedChannel, "offer", counted)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("INSERT INTO t SELECT id, n, name FROM s", False),
        ("SINK INTO t SELECT id * 3, n, name FROM s", True),
        ("INSERT INTO t SELECT s.id, o.n, s.name FROM s JOIN s AS o ON o.id = s.n", True),
        ("UPDATE s SET n = n + 1 WHERE id >= 0", False),
        ("DELETE FROM s WHERE n >= 0", False),
    ],
)
def test_no_row_comes_to_the_coordinator(grid: Any, monkeypatch: pytest.MonkeyPatch, text: str, moved: bool) -> None:
    counted = _Counted(monkeypatch)
    assert grid.sql(text).update_count == ROWS
    assert counted.rows_to_root == 3
    assert counted.to_root < 1000
    assert (counted.to_members > 0) is moved


def test_the_rows_are_those_of_the_query(grid: Any) -> None:
    assert grid.sql("INSERT INTO t SELECT id * 3, n, name FROM s").update_count == ROWS
    assert grid.sql("UPDATE t SET n = n + 1 WHERE id % 2 = 0").update_count == ROWS // 2
    assert grid.sql("DELETE FROM t WHERE id % 5 = 0").update_count == ROWS // 5
    expected = {(3 * i, i % 9 + (i % 2 == 0), f"n{i % 50}") for i in range(ROWS) if i % 5}
    assert {tuple(row) for row in grid.sql("SELECT id, n, name FROM t")} == expected
    for i in (1, 2, 29_998):
        assert grid.sql("SELECT n FROM t WHERE id = ?", 3 * i).fetchall() == [(i % 9 + (i % 2 == 0),)]


def test_members_are_named_with_what_they_did(grid: Any) -> None:
    lines = [str(row[0]) for row in grid.sql("EXPLAIN ANALYZE INSERT INTO t SELECT id * 3, n, name FROM s")]
    text = "\n".join(lines)
    assert "partitions=271 members=3" in text
    assert f"prepared: {ROWS} rows" in text
    assert any(told in text for told in (f"segments: {ROWS} rows", f"memtable: {ROWS} rows"))


@pytest.mark.parametrize("table_rows", [500, 1_000_000])
def test_an_error_on_one_member_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_rows: int
) -> None:
    """The others may still be making segments of their rows."""
    monkeypatch.setattr(cost, "SEGMENT_START", 0.0)
    monkeypatch.setattr(statement_writer, "TABLE_ROWS", table_rows)
    with remuda.open(str(tmp_path), members=3) as grid:
        grid.load("s", source(ROWS), key="id")
        grid.sql("CREATE TABLE t (id BIGINT, n BIGINT, name VARCHAR, PRIMARY KEY (id))")
        for text in (
            "INSERT INTO t SELECT id, 1 / (id - 777), name FROM s",
            "INSERT INTO t SELECT id / 2, n, name FROM s",
            "UPDATE s SET n = 1 / (id - 777)",
        ):
            with pytest.raises(SqlError):
                grid.sql(text)
        assert grid.sql("SELECT COUNT(*) FROM t").fetchall() == [(0,)]
        assert grid.sql("SELECT SUM(n) FROM s").fetchall() == [(sum(i % 9 for i in range(ROWS)),)]
    with remuda.open(str(tmp_path)) as grid:
        assert grid.sql("SELECT COUNT(*) FROM t").fetchall() == [(0,)]
        folder = store_of(grid, "t").folder
        assert folder is not None
        assert not list(folder.glob("*")) if folder.exists() else True


@pytest.mark.slow
def test_five_million_rows_are_inserted_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The growth of the process's own memory, without mapped files, stays below a part of what is written.

    Smaller tables make more segments, which are not to be merged here: that holds a part of them at once.
    """
    rows = 5_000_000
    monkeypatch.setattr(statement_writer, "TABLE_ROWS", 100_000)
    monkeypatch.setattr(group_compaction, "MOST_SEGMENTS", 64)
    with remuda.open(str(tmp_path), members=3) as grid:
        for first in range(0, rows, 1_000_000):
            ids = pa.array(range(first, first + 1_000_000))
            grid.load("s", pa.table({"id": ids} | dict.fromkeys("abcdefg", ids)), key="id")
        columns = ", ".join(f"{name} BIGINT" for name in "abcdefg")
        grid.sql(f"CREATE TABLE t (id BIGINT, {columns}, PRIMARY KEY (id))")
        counted = _Counted(monkeypatch)
        del ids
        pa.default_memory_pool().release_unused()
        with _PeakMemory() as peak:
            assert grid.sql("INSERT INTO t SELECT id * 7, a, b, c, d, e, f, g FROM s").update_count == rows
        assert counted.rows_to_root == 3
        written = sum(each.segment.batch.nbytes for each in store_of(grid, "t").stored)
        assert written >= rows * 64
        assert peak.growth < written / 2, f"{peak.growth} bytes for {written}"
        assert grid.sql("SELECT COUNT(*), SUM(id), SUM(g) FROM t").fetchall() == [
            (rows, 7 * rows * (rows - 1) // 2, rows * (rows - 1) // 2)
        ]


class _PeakMemory:
    """Looks every few milliseconds how much anonymous memory the process has."""

    def __enter__(self) -> Self:
        self._before = self._peak = _anonymous_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.003):
            self._peak = max(self._peak, _anonymous_bytes())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self._peak - self._before


def _anonymous_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
