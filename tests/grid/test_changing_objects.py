"""Maps and indexes dropped and created anew at every moment of a query's life: the new object is found, or none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext
from remuda.exec.scan import ordered_index_scan
from remuda.runtime import local

CREATE = "CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))"
INDEX = "CREATE INDEX m_n ON m (n) TYPE SORTED"
ROWS = 5_000


def fill(grid: Any, value: int) -> None:
    grid.load("m", pa.table({"id": range(ROWS), "n": [value] * ROWS}))


def recreate(grid: Any) -> None:
    grid.sql("DROP TABLE m")
    grid.sql(CREATE)
    grid.sql(INDEX)
    fill(grid, 2)


def drop(grid: Any) -> None:
    grid.sql("DROP TABLE m")


def drop_index(grid: Any) -> None:
    grid.sql("DROP INDEX m_n")


def recreate_index(grid: Any) -> None:
    grid.sql("DROP INDEX m_n")
    grid.sql("CREATE INDEX m_n ON m (n) TYPE HASH")


@pytest.fixture(params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql(CREATE)
        opened.sql(INDEX)
        fill(opened, 1)
        yield opened


def between_planning_and_setup(grid: Any, change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The next execution meets a catalog that is not the one of its plan."""
    execute = grid.engine.start

    def change_first(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(grid.engine, "start", execute)
        change(grid)
        return execute(*arguments, **named)

    monkeypatch.setattr(grid.engine, "start", change_first)


def during_planning(grid: Any, change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The next planning has read the catalog when it changes."""
    planner = grid.default_session.planner

    def change_after(**changes: Any) -> Any:
        made = planner(**changes)
        monkeypatch.setattr(grid.default_session, "planner", planner)
        change(grid)
        return made

    monkeypatch.setattr(grid.default_session, "planner", change_after)


def after_start(grid: Any, change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The fragments are started, no row is read."""
    execute = grid.engine.start

    def change_last(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(grid.engine, "start", execute)
        execution = execute(*arguments, **named)
        change(grid)
        return execution

    monkeypatch.setattr(grid.engine, "start", change_last)


MOMENTS = [during_planning, between_planning_and_setup, after_start]
SELECTS = ["SELECT n FROM m", "SELECT n FROM m WHERE n >= 0 ORDER BY n", "SELECT n FROM m WHERE n IN (1, 2)"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("text", SELECTS)
def test_a_map_created_anew_is_found(grid: Any, moment: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moment(grid, recreate, monkeypatch)
    assert set(grid.sql(text).fetchall()) == {(2,)}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("text", SELECTS)
def test_a_map_that_is_gone_is_reported(grid: Any, moment: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moment(grid, drop, monkeypatch)
    with pytest.raises(SqlError, match="unknown table: m") as caught:
        grid.sql(text).fetchall()
    assert caught.value.code is ErrorCode.OBJECT_NOT_FOUND
    assert caught.value.position is not None


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", [drop_index, recreate_index])
@pytest.mark.parametrize("text", SELECTS)
def test_an_index_may_go(
    grid: Any, moment: Any, change: Callable[[Any], None], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment(grid, change, monkeypatch)
    assert len(grid.sql(text).fetchall()) == ROWS


@pytest.mark.parametrize("members", [1, 3])
def test_an_index_that_goes_while_its_rows_are_read_is_an_error(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows were handed out, so that the query cannot be run again. One that does not use the index goes on."""
    monkeypatch.setattr(ordered_index_scan, "LARGEST_CHUNK", 32)
    monkeypatch.setattr(local, "ExecContext", partial(ExecContext, scan_batch_rows=32))
    with remuda.open(members=members) as grid:
        grid.sql(CREATE)
        grid.sql(INDEX)
        fill(grid, 1)
        by_index, by_scan = grid.sql("SELECT id FROM m ORDER BY n"), grid.sql("SELECT id FROM m")
        assert by_index.fetchone() is not None
        assert by_scan.fetchone() is not None
        drop_index(grid)
        with pytest.raises(SqlError, match="m_n was dropped") as caught:
            by_index.fetchall()
        assert caught.value.code is ErrorCode.INDEX_INVALID
        assert len(by_scan.fetchall()) == ROWS - 1


@pytest.mark.parametrize("moment", [during_planning, between_planning_and_setup])
def test_a_statement_that_writes_finds_the_new_map(grid: Any, moment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several rows, so that they go the long way."""
    moment(grid, recreate, monkeypatch)
    assert grid.sql("UPDATE m SET n = n + 10 WHERE n < 5").update_count == ROWS
    assert grid.sql("SELECT MIN(n), MAX(n) FROM m").fetchall() == [(12, 12)]


def test_a_write_waits_with_the_writers_of_the_new_map(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement was planned for a map that is gone; on the new one it must not lose what others write."""
    started = threading.Event()

    def anew(grid: Any) -> None:
        recreate(grid)
        started.set()

    between_planning_and_setup(grid, anew, monkeypatch)

    def write_meanwhile() -> None:
        started.wait(60)
        for _ in range(100):
            grid.sql("UPDATE m SET n = n + 1 WHERE id = 0")

    other = threading.Thread(target=write_meanwhile)
    other.start()
    assert grid.sql("UPDATE m SET n = n + 1 WHERE n > 0").update_count == ROWS
    other.join()
    assert grid.sql("SELECT n FROM m WHERE id = 0").fetchall() == [(2 + 1 + 100,)]


SHORTCUTS: list[tuple[str, tuple[Any, ...]]] = [
    ("SELECT n FROM m WHERE id = ?", (1,)),
    ("SELECT id FROM m WHERE n = ?", (77,)),
    ("INSERT INTO m VALUES (?, ?)", (ROWS + 1, 1)),
    ("SINK INTO m VALUES (?, ?)", (ROWS + 1, 1)),
    ("UPDATE m SET n = n WHERE id = ?", (1,)),
    ("DELETE FROM m WHERE id = ?", (1,)),
]


@pytest.mark.parametrize(("text", "values"), SHORTCUTS)
def test_a_shortcut_meets_a_dropped_map(grid: Any, text: str, values: tuple[Any, ...]) -> None:
    """The map goes, and the cache does not know it yet: the window that another thread's DROP leaves open."""
    grid.sql(text, *values)
    definition = grid.store.catalog.find_map("m", ("public",))
    grid.store.drop_map(definition)
    with pytest.raises(SqlError, match="unknown table: m") as caught:
        grid.sql(text, *values)
    assert caught.value.code is ErrorCode.OBJECT_NOT_FOUND


@pytest.mark.parametrize(("text", "values"), SHORTCUTS)
def test_a_shortcut_finds_the_map_created_anew(grid: Any, text: str, values: tuple[Any, ...]) -> None:
    from dataclasses import replace

    from remuda.catalog import new_id

    grid.sql(text, *values)
    definition = grid.store.catalog.find_map("m", ("public",))
    grid.store.drop_map(definition)
    grid.store.create_map(replace(definition, id=new_id(), indexes=()))
    result = grid.sql(text, *values)
    if text.startswith("SELECT"):
        assert result.fetchall() == []
    else:
        assert result.update_count == (1 if "INTO" in text else 0)


def test_a_shortcut_meets_a_dropped_index() -> None:
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.sql(INDEX)
        for id_ in range(1_000):
            grid.sql("INSERT INTO m VALUES (?, ?)", id_, id_ // 2)
        text = "SELECT id FROM m WHERE n = ?"
        assert sorted(grid.sql(text, 5)) == [(10,), (11,)]
        definition = grid.store.catalog.find_map("m", ("public",))
        grid.store.drop_index(definition, definition.indexes[0])
        assert sorted(grid.sql(text, 5)) == [(10,), (11,)]


def test_maps_come_and_go_while_others_read() -> None:
    """Readers see a whole map, old or new, or are told that there is none; nothing else ever."""
    with remuda.open(members=2) as grid:
        end = time.monotonic() + 2.0
        problems: list[Any] = []
        seen: set[str] = set()

        def churn() -> None:
            value = 0
            while time.monotonic() < end:
                value += 1
                grid.sql(CREATE)
                grid.sql(INDEX)
                fill(grid, value)
                time.sleep(0.02)
                grid.sql("DROP TABLE m")

        def read(text: str, *values: Any) -> None:
            while time.monotonic() < end and not problems:
                try:
                    found = grid.sql(text, *values).fetchall()
                except SqlError as error:
                    seen.add(error.code.name)
                    if error.code is not ErrorCode.OBJECT_NOT_FOUND:
                        problems.append(error)
                    continue
                if len(values) == 1:
                    continue
                if len(found) not in {0, ROWS} or len({row[0] for row in found}) > 1:
                    problems.append(found[:3])

        threads = [threading.Thread(target=churn)]
        threads += [threading.Thread(target=read, args=(text,)) for text in SELECTS[:2]]
        threads += [threading.Thread(target=read, args=("SELECT n FROM m WHERE id = ?", 5))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems, problems[0]
