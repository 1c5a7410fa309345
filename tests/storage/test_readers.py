"""Readers beside a writer: what they see, and that the files they need stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda import Grid
from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.storage import Store, open_snapshot
from remuda.storage.commit import recovery, store_loader
from remuda.storage.folder import execution_pin
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.folders import abandon, filled, names_in_force, only_map
from tests.storage.maps import contents, index_on, orders_map, table_of


def test_a_reader_sees_what_is_acknowledged_and_refreshes(tmp_path: Path) -> None:
    store = filled(tmp_path)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    reader = Store.open(tmp_path, read_only=True)
    read = only_map(reader)
    assert len(read) == ROWS
    before = read.snapshot()
    orders.insert(statement_rows(2))
    assert len(read) == ROWS
    reader.refresh()
    assert len(read) == 2 * ROWS
    store.checkpoint()
    orders.delete([10])
    store.create_index(orders.definition, index_on("customer", "amount"))
    reader.refresh()
    assert reader.catalog == store.catalog
    assert contents(read.snapshot()) == contents(orders.snapshot())
    assert contents(before) == statement_rows(1)
    for write in (
        lambda: read.insert([(99, "x", 1.0)]),
        lambda: read.load(table_of(read.definition, [])),
        lambda: reader.create_map(orders_map()),
        read.truncate,
    ):
        with pytest.raises(StorageError, match="reading only"):
            write()
    store.drop_map(orders.definition)
    reader.refresh()
    with pytest.raises(SqlError) as caught:
        read.snapshot()
    assert caught.value.code is ErrorCode.MAP_DESTROYED


def _files(folder: Path) -> set[Path]:
    return set(folder.glob("maps/*/*")) | set(folder.glob("wal/*"))


def _rewrite(store: Store, number: int) -> None:
    """Makes every file of the state before unneeded."""
    orders = only_map(store)
    orders.load(table_of(orders.definition, statement_rows(number)), "replace")
    orders.insert(statement_rows(number + 1))
    store.checkpoint()


def test_files_stay_as_long_as_a_reader_of_their_state_lives(tmp_path: Path) -> None:
    store = filled(tmp_path)
    _rewrite(store, 1)
    reader = Store.open(tmp_path, read_only=True)
    before = _files(tmp_path)
    held = only_map(reader).snapshot()
    _rewrite(store, 3)
    assert before <= _files(tmp_path)
    reader.refresh()
    _rewrite(store, 5)
    # The reader has gone on, but its snapshot has not: other processes may still be told of it.
    assert before <= _files(tmp_path)
    assert contents(open_snapshot(held.describe())) == statement_rows(1) + statement_rows(2)
    del held
    _rewrite(store, 7)
    assert not before & _files(tmp_path)
    reader.close()
    store.checkpoint()
    _rewrite(store, 9)
    assert not list((tmp_path / "readers").iterdir())
    assert {path.name.partition(".")[0] for path in tmp_path.glob("maps/*/*")} == names_in_force(store)
    assert len(list(tmp_path.glob("wal/*"))) == 1


READER = """
import sys
from pathlib import Path
from remuda.storage import Store
reader = Store.open(Path(sys.argv[1]), read_only=True)
(definition,) = reader.catalog.maps.values()
held = reader.map(definition).snapshot()
print(held.rows, flush=True)
for line in sys.stdin:
    if line.strip() == "refresh":
        reader.refresh()
        held = reader.map(definition).snapshot()
    print(held.rows, flush=True)
"""


def test_readers_in_other_processes_are_waited_for_unless_they_are_dead(tmp_path: Path) -> None:
    store = filled(tmp_path)
    _rewrite(store, 1)
    child = subprocess.Popen(
        [sys.executable, "-c", READER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
    )
    assert child.stdin is not None
    assert child.stdout is not None

    def answer(line: str) -> int:
        print(line, file=child.stdin, flush=True)
        return int(child.stdout.readline())

    assert int(child.stdout.readline()) == 2 * ROWS
    first = _files(tmp_path)
    _rewrite(store, 3)
    only_map(store).insert(statement_rows(8))
    assert answer("again") == 2 * ROWS
    assert first <= _files(tmp_path)
    assert answer("refresh") == 3 * ROWS
    present = names_in_force(store)
    second = {path for path in _files(tmp_path) if path.suffix == ".log" or path.name.partition(".")[0] in present}
    # Another writer takes over: the state that it finds is the one the reader has.
    abandon(store)
    store = Store.open(tmp_path)
    assert not first & _files(tmp_path)
    _rewrite(store, 5)
    assert {path for path in second - first if path.suffix != ".log"} <= _files(tmp_path)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdin.close()
    child.stdout.close()
    # This process reads the files too, to compare their checksums: they go when it has finished with them.
    store.verification.wait()
    _rewrite(store, 6)
    assert not (second - first) & _files(tmp_path)
    assert not list((tmp_path / "readers").iterdir())
    store.close()


def test_a_reader_opens_and_refreshes_while_everything_changes(tmp_path: Path) -> None:
    """Every refresh finds a whole state: rows of one number and of the next."""
    store = filled(tmp_path)
    _rewrite(store, 1)
    reader = Store.open(tmp_path, read_only=True)
    for number in range(3, 40):
        _rewrite(store, number)
        other = Store.open(tmp_path, read_only=True)
        reader.refresh()
        for each in (reader, other):
            assert contents(only_map(each).snapshot()) == statement_rows(number) + statement_rows(number + 1)
        other.close()


def test_files_stay_for_a_time_though_the_reader_that_asked_for_it_is_gone(tmp_path: Path) -> None:
    store = filled(tmp_path)
    _rewrite(store, 1)
    reader = Store.open(tmp_path, read_only=True)
    needed = set(tmp_path.glob("maps/*/*"))
    told = only_map(reader).snapshot().describe()
    reader.keep_files(3600.0)
    reader.close()
    _rewrite(store, 3)
    store.close()
    store = Store.open(tmp_path)
    _rewrite(store, 5)
    assert needed <= _files(tmp_path)
    assert contents(open_snapshot(told)) == statement_rows(1) + statement_rows(2)
    (lease,) = (tmp_path / "readers").iterdir()
    version, end = lease.read_text().split()
    lease.write_text(f"{version} {float(end) - 3600.0}")
    _rewrite(store, 7)
    assert not needed & _files(tmp_path)
    assert list((tmp_path / "readers").iterdir()) == []
    store.close()


def test_a_lease_that_means_nothing_keeps_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path)
    _rewrite(store, 1)
    before = set(tmp_path.glob("maps/*/*"))
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / "0.until").write_text("soon")
    store.keep_files(3600.0)
    _rewrite(store, 3)
    assert not before & _files(tmp_path)
    store.close()


def _overtakes(monkeypatch: pytest.MonkeyPatch, module: ModuleType, grid: Grid, times: int) -> None:
    """Have a writer load one map and then change another, each time before a reader reads the log."""
    read_log, numbers = vars(module)["read_log"], iter(range(1, times + 1))

    def overtaking(*arguments: Any) -> Any:
        number = next(numbers, None)
        if number is not None:
            grid.load("loaded", pa.table({"id": range(number * 20_000)}), mode="replace")
            grid.sql("INSERT INTO written VALUES (?)", number)
        return read_log(*arguments)

    monkeypatch.setattr(module, "read_log", overtaking)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "s.remuda") as grid:
        grid.sql("CREATE TABLE loaded (id BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE written (id BIGINT, PRIMARY KEY (id))")
        grid.checkpoint()
        yield grid


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(("module", "execution"), [(recovery, None), (execution_pin, "0" * 32)])
def test_a_reader_never_sees_a_statement_without_the_load_before_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: Grid,
    module: ModuleType,
    execution: str | None,
    times: int,
) -> None:
    """The load is in the next manifest and the statement in the log, which are read one after the other."""
    _overtakes(monkeypatch, module, written, times)
    with closing(Store.open(tmp_path / "s.remuda", read_only=True, execution=execution)) as reader:
        held = {each.name: len(reader.map(each)) for each in reader.catalog.maps.values()}
    assert held == {"loaded": times * 20_000, "written": times}


def test_a_reader_without_a_lease_never_sees_a_statement_without_the_load_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Grid
) -> None:
    """It may not write the folder, so the writer knows nothing of it."""
    monkeypatch.setattr(store_loader, "take_lease", lambda _: None)
    _overtakes(monkeypatch, recovery, written, 1)
    with closing(Store.open(tmp_path / "s.remuda", read_only=True)) as reader:
        held = {each.name: len(reader.map(each)) for each in reader.catalog.maps.values()}
    assert held == {"loaded": 20_000, "written": 1}


def test_a_reader_that_is_overtaken_every_time_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Grid
) -> None:
    _overtakes(monkeypatch, recovery, written, 3)
    monkeypatch.setattr(recovery, "_OVERTAKEN_TRIES", 3)
    with pytest.raises(StorageError, match="commits too often"):
        Store.open(tmp_path / "s.remuda", read_only=True)
