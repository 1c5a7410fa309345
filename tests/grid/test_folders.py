"""Grids in folders: opened again, read by others, closed."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, RemudaError, SqlError, StorageError

CREATE = "CREATE TABLE m (id BIGINT, n BIGINT, s VARCHAR, PRIMARY KEY (id))"
QUERIES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("SELECT * FROM m", ()),
    ("SELECT s FROM m WHERE id = ?", (5,)),
    ("SELECT id FROM m WHERE n = ?", (3,)),
    ("SELECT id FROM m WHERE s = ?", ("s2",)),
    ("SELECT s, COUNT(*), SUM(n) FROM m GROUP BY s", ()),
    ("SELECT id FROM m ORDER BY n DESC, id LIMIT 5", ()),
)


def answers(grid: Any) -> list[list[Any]]:
    return [sorted(map(tuple, grid.sql(text, *values)), key=repr) for text, values in QUERIES]


def shape(plan: str) -> list[str]:
    """A plan without estimates: replaced rows count in those until a checkpoint has dropped them."""
    return [re.sub(r" +rows≈\S+ cost≈\S+", "", line) for line in plan.splitlines()]


@pytest.mark.parametrize("durability", ["fsync", "os", "none"])
def test_a_folder_opened_again_gives_the_same_answers(tmp_path: Path, durability: str) -> None:
    with remuda.open(tmp_path / "grid", durability=durability) as grid:
        grid.sql(CREATE)
        grid.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        grid.load("m", pa.table({"id": range(20_000), "n": [id_ % 100 for id_ in range(20_000)], "s": ["s1"] * 20_000}))
        grid.sql("CREATE INDEX m_s ON m (s) TYPE HASH")
        grid.sql("INSERT INTO m VALUES (?, ?, ?)", 20_001, 3, "s2")
        grid.sql("UPDATE m SET s = 's2' WHERE id = 3")
        grid.sql("UPDATE m SET n = n + 1 WHERE n > 50")
        grid.sql("DELETE FROM m WHERE id IN (7, 8)")
        expected = answers(grid)
        plan = shape(grid.explain("SELECT id FROM m WHERE s = 's2'"))
    for members in (1, 3):
        with remuda.open(str(tmp_path / "grid"), members=members) as grid:
            assert answers(grid) == expected
            if members == 1:
                assert shape(grid.explain("SELECT id FROM m WHERE s = 's2'")) == plan
            assert [row.name for row in grid.sql("SHOW INDEXES")] == ["m_n", "m_s"]
            with pytest.raises(SqlError):
                grid.sql("INSERT INTO m VALUES (20001, 1, 'x')")


def test_an_existing_folder_keeps_its_partitions(tmp_path: Path) -> None:
    with remuda.open(tmp_path, partitions=13) as grid:
        grid.sql(CREATE)
        grid.sql("INSERT INTO m VALUES (1, 1, 'x')")
    for asked in (None, 13):
        with remuda.open(tmp_path, partitions=asked, members=2) as grid:
            assert grid.cluster.partition_table.partitions == 13
            assert grid.sql("SELECT s FROM m WHERE id = 1").fetchall() == [("x",)]
            assert {row.partition for row in grid.sql("SHOW PARTITIONS")} == set(range(13))
            grid.sql("CREATE TABLE IF NOT EXISTS later (id BIGINT, PRIMARY KEY (id))")
            grid.sql("SINK INTO later VALUES (1)")
            assert grid.sql("SELECT id FROM later").fetchall() == [(1,)]


@pytest.mark.parametrize("read_only", [False, True])
def test_another_number_of_partitions_than_the_folder_has_is_refused(tmp_path: Path, read_only: bool) -> None:
    with remuda.open(tmp_path, partitions=13) as grid:
        grid.sql(CREATE)
    for asked in (271, 5):
        with pytest.raises(RemudaError, match=f"has 13 partitions, .* open it without partitions={asked}"):
            remuda.open(tmp_path, partitions=asked, read_only=read_only)
    with remuda.open(tmp_path) as grid:  # nothing holds it
        assert grid.store.partitions == 13


def test_one_process_writes(tmp_path: Path) -> None:
    with remuda.open(tmp_path):
        with pytest.raises(StorageError):
            remuda.open(tmp_path)
        remuda.open(tmp_path, read_only=True).close()
    remuda.open(tmp_path).close()


def test_a_reader_sees_what_was_acknowledged_when_it_looked(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as writer:
        writer.sql(CREATE)
        writer.sql("INSERT INTO m VALUES (1, 1, 'x')")
        with remuda.open(tmp_path, read_only=True, members=2) as reader:
            count = "SELECT COUNT(*) FROM m"
            by_key = "SELECT s FROM m WHERE id = ?"
            assert reader.sql(count).fetchall() == [(1,)]
            assert reader.sql(by_key, 2).fetchall() == []
            writer.sql("INSERT INTO m VALUES (2, 2, 'y')")
            writer.sql("UPDATE m SET s = 'z' WHERE id = 1")
            assert reader.sql(count).fetchall() == [(1,)]
            for change in (None, writer.checkpoint):
                if change is not None:
                    change()
                reader.refresh()
                assert reader.sql(count).fetchall() == [(2,)]
                assert reader.sql(by_key, 2).fetchall() == [("y",)]
                assert reader.sql(by_key, 1).fetchall() == [("z",)]
                assert len(reader.map("m")) == 2


@pytest.mark.parametrize("empty_at", ["opening", "refresh"])
def test_a_reader_follows_a_map_that_was_empty_when_it_looked(tmp_path: Path, empty_at: str) -> None:
    """The plan of a text, and a `Map` that the user holds, keep reading the map's own store after each refresh."""
    texts: tuple[tuple[str, Any], ...] = (
        ("SELECT s FROM m WHERE id = ?", 1),  # by the key, compiled once
        ("SELECT s FROM m WHERE n = ?", 7),  # by the index, compiled once
        ("SELECT s FROM m WHERE n BETWEEN ? AND 9", 0),
        ("SELECT s FROM m WHERE s >= ?", "a"),
    )
    with remuda.open(tmp_path) as writer:
        writer.sql(CREATE)
        writer.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        if empty_at == "refresh":
            writer.map("m").put(1, (7, "gone"))
        with remuda.open(tmp_path, read_only=True) as reader:
            held = reader.map("m")
            for known in ([], ["y"], [], ["z"]):
                if known:
                    writer.map("m").put(1, (7, known[0]))
                else:
                    writer.sql("DELETE FROM m")
                reader.refresh()
                found = [[row.s for row in reader.sql(text, value)] for text, value in texts]
                assert found == [known] * len(texts)
                assert [row.s for row in [held.get(1)] if row is not None] == known
                assert len(held) == len(known)


def test_a_reader_follows_definitions(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as writer, remuda.open(tmp_path, read_only=True) as reader:
        with pytest.raises(SqlError) as caught:
            reader.sql("SELECT * FROM m")
        assert caught.value.code is ErrorCode.OBJECT_NOT_FOUND
        writer.sql(CREATE)
        writer.sql("INSERT INTO m VALUES (1, 3, 'x')")
        reader.refresh()
        assert reader.sql("SELECT id FROM m WHERE n = ?", 3).fetchall() == [(1,)]
        writer.sql("CREATE INDEX m_n ON m (n) TYPE HASH")
        reader.refresh()
        assert [row.name for row in reader.sql("SHOW INDEXES")] == ["m_n"]
        assert reader.sql("SELECT id FROM m WHERE n = ?", 3).fetchall() == [(1,)]
        writer.sql("DROP TABLE m")
        reader.refresh()
        with pytest.raises(SqlError, match="unknown table"):
            reader.sql("SELECT id FROM m WHERE n = ?", 3).fetchall()
        writer.sql(CREATE)
        reader.refresh()
        assert reader.sql("SELECT id FROM m WHERE n = ?", 3).fetchall() == []


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql(CREATE)
        grid.sql("INSERT INTO m VALUES (1, 1, 'x')")
    with remuda.open(tmp_path, read_only=True) as reader:
        for text in (
            "INSERT INTO m VALUES (2, 2, 'y')",
            "SINK INTO m VALUES (2, 2, 'y')",
            "UPDATE m SET n = 5 WHERE id = 1",
            "UPDATE m SET n = 5 WHERE n > 0",
            "DELETE FROM m WHERE id = 1",
            "DELETE FROM m WHERE n > 0",
            "TRUNCATE TABLE m",
            "CREATE TABLE other (id BIGINT, PRIMARY KEY (id))",
            "CREATE INDEX m_n ON m (n) TYPE HASH",
            "DROP TABLE m",
        ):
            with pytest.raises(RemudaError, match="reading only"):
                reader.sql(text)
        with pytest.raises(RemudaError, match="reading only"):
            reader.load("m", pa.table({"id": [5], "n": [5], "s": ["x"]}))
        with pytest.raises(RemudaError, match="reading only"):
            reader.map("m").put(5, (5, "x"))
        reader.checkpoint()
        assert reader.sql("SELECT * FROM m").fetchall() == [(1, 1, "x")]


def test_a_refresh_is_seen_whole_or_not_at_all(tmp_path: Path) -> None:
    """A query that runs while the reader refreshes reads the state before or the one after."""
    count = 3_000
    with remuda.open(tmp_path, durability="os") as writer, remuda.open(tmp_path, read_only=True) as reader:
        writer.sql(CREATE)
        writer.map("m").put_all(dict.fromkeys(range(count), (0, "x")))
        reader.refresh()
        done = threading.Event()
        wrong: list[Any] = []

        def read() -> None:
            while not done.is_set() and not wrong:
                rows = reader.sql("SELECT n FROM m").fetchall()
                if len(rows) != count or len(set(rows)) != 1:
                    wrong.append((len(rows), len(set(rows))))

        thread = threading.Thread(target=read)
        thread.start()
        for turn in range(12):
            writer.sql("UPDATE m SET n = ? WHERE id >= 0", turn + 1)
            if turn == 6:
                writer.checkpoint()
            for _ in range(3):
                reader.refresh()
        done.set()
        thread.join()
        assert not wrong, wrong[0]


def test_there_is_no_grid_to_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StorageError, match="there is no store in this folder"):
            remuda.open(path, read_only=True)


@pytest.mark.parametrize("durable", [True, False])
def test_a_closed_grid(tmp_path: Path, durable: bool) -> None:
    grid = remuda.open(tmp_path if durable else None)
    grid.sql(CREATE)
    statements = ["SELECT n FROM m WHERE id = 1", "SELECT n FROM m", "INSERT INTO m VALUES (1, 1, 'x')", "SHOW TABLES"]
    for text in statements[:3]:
        grid.sql(text)
    held = grid.map("m")
    grid.close()
    grid.close()
    for text in (*statements, CREATE, "SET timeout = 1"):
        with pytest.raises(SqlError, match="the grid is closed") as caught:
            grid.sql(text)
        assert caught.value.code is ErrorCode.GENERIC
    for use in (
        lambda: grid.load("m", pa.table({"id": [5], "n": [5], "s": ["x"]})),
        lambda: held.put(5, (5, "x")),
        lambda: grid.map("m"),
        lambda: grid.explain("SELECT 1"),
        grid.checkpoint,
    ):
        with pytest.raises(RemudaError, match="closed"):
            use()
    with pytest.raises(SqlError, match="closed"), grid:
        grid.sql("SELECT 1")


def test_opening_with_options_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RemudaError, match="durability must be one of"):
        remuda.open(tmp_path, durability="maybe")
    with pytest.raises(RemudaError, match="at least one member"):
        remuda.open(members=0)
    with pytest.raises(RemudaError, match="at least one"):
        remuda.open(partitions=0)


def test_a_folder_that_is_moved_away_takes_no_more_loads(tmp_path: Path) -> None:
    """They would go to the old place, and be lost to whoever opens the new one."""
    place, moved = tmp_path / "shop", tmp_path / "elsewhere"
    with remuda.open(place) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
        place.rename(moved)
        grid.sql("INSERT INTO t VALUES (1)")  # into the log, which went along
        for change in (
            lambda: grid.load("t", pa.table({"id": range(10, 200_000)})),
            lambda: grid.sql("CREATE TABLE other (id BIGINT, PRIMARY KEY (id))"),
            lambda: grid.sql("CREATE INDEX by_id ON t (id)"),
        ):
            with pytest.raises(StorageError, match="was moved or removed"):
                change()
        assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (1,)
    with remuda.open(moved) as grid:
        assert grid.sql("SELECT id FROM t").fetchall() == [(1,)]
        assert [row.name for row in grid.sql("SHOW TABLES")] == ["t"]
