"""Segments that others have written are taken over once or not at all, whoever has the folder open, whoever dies."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from remuda.catalog import IndexType, MapDefinition, new_id
from remuda.errors import ErrorCode, RemudaError, SqlError, StorageError
from remuda.storage import LoadMode, Lookup, MapStore, SegmentInfo, Store, write_segment
from remuda.storage.folder import kept_versions
from remuda.storage.folder.delivery import FolderInbox, deliver, delivery_folder, forget, hand_in, own_folder
from remuda.storage.folder.inbox import ANSWER, CLAIMED, FOLDER, REQUEST
from remuda.storage.folder.manifest import read_manifest
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.group_compaction import MOST_SEGMENTS
from remuda.storage.state.applied_batches import BatchId
from tests.storage.crash_writer import Row, statement_rows
from tests.storage.folders import filled, only_map
from tests.storage.inbox_writer import LATE_ROW, MOMENTS
from tests.storage.maps import contents, in_order, index_on, table_of

DAY = 24 * 3600.0
PATIENCE = 60.0
"""Seconds after which a test that hangs fails."""


@contextmanager
def _opened(folder: Path) -> Iterator[MapStore]:
    store = Store.open(folder)
    yield only_map(store)
    store.close()


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder with the rows of statement 1 that nobody has open."""
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    store.checkpoint()
    store.close()
    return tmp_path


def _definition(folder: Path) -> MapDefinition:
    reader = Store.open(folder, read_only=True)
    (definition,) = [each for each in reader.catalog.maps.values() if each.name != "created"]
    reader.close()
    return definition


def _written(folder: Path, definition: MapDefinition, statements: Sequence[int]) -> tuple[str, list[SegmentInfo]]:
    """A segment for each of these statements, as a job writes them, and the delivery they belong to."""
    delivery = f"load{new_id()}"
    place = delivery_folder(folder, delivery)
    return delivery, [
        write_segment(place, definition, table_of(definition, statement_rows(each))) for each in statements
    ]


def _deliver(folder: Path, definition: MapDefinition, statements: Sequence[int], mode: LoadMode = "append") -> int:
    delivery, infos = _written(folder, definition, statements)
    return deliver(folder, delivery, definition, infos, mode)


def _rows_of(*statements: int) -> list[Row]:
    return [row for number in statements for row in statement_rows(number)]


def _check(orders: MapStore, expected: list[Row]) -> None:
    """The rows, and that every index finds them."""
    snapshot = orders.snapshot()
    assert contents(snapshot) == in_order(expected)
    assert len(orders) == len(expected)
    for index in snapshot.definition.indexes:
        columns = snapshot.definition.positions(index.columns)
        for value in {tuple(row[column] for column in columns) for row in expected}:
            found = [
                row
                for source in snapshot.sources
                for row in source.rows_at((0, 1, 2), source.positions(index.id, Lookup(value)))
            ]
            assert sorted(found) == [row for row in sorted(expected) if tuple(row[at] for at in columns) == value]


def _inbox(folder: Path) -> list[Path]:
    return list((folder / FOLDER).iterdir())


def _wait_until_the_inbox_is_empty(folder: Path) -> None:
    """Where the writer lives: it gives the answer first, and only then removes what it had claimed."""
    end = time.monotonic() + PATIENCE
    while _inbox(folder):
        assert time.monotonic() < end, _inbox(folder)
        time.sleep(0.001)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("mode", "delivered", "expected"),
    [("append", [2, 3], [1, 2, 3]), ("upsert", [1, 2], [1, 2]), ("replace", [3], [3])],
)
def test_a_delivery_is_taken_over(
    closed: Path, mode: LoadMode, delivered: list[int], expected: list[int], is_open: bool
) -> None:
    """By the process that has the folder open; where there is none, the one that delivers opens it."""
    definition = _definition(closed)
    if is_open:
        with _opened(closed) as orders:
            assert _deliver(closed, definition, delivered, mode) == len(_rows_of(*delivered))
            _check(orders, _rows_of(*expected))
    else:
        assert _deliver(closed, definition, delivered, mode) == len(_rows_of(*delivered))
    assert _inbox(closed) == []
    with _opened(closed) as orders:
        _check(orders, _rows_of(*expected))


@pytest.mark.parametrize("is_open", [True, False])
def test_an_id_may_be_used_again_once_it_is_answered(closed: Path, is_open: bool) -> None:
    """As by a stream, which commits many batches one after the other."""
    definition = _definition(closed)
    store = Store.open(closed) if is_open else None
    delivery = new_id()
    for number in (2, 3):
        info = write_segment(
            delivery_folder(closed, delivery), definition, table_of(definition, statement_rows(number))
        )
        assert deliver(closed, delivery, definition, [info], "append") == len(statement_rows(number))
    if store is not None:
        store.close()
    with _opened(closed) as orders:
        _check(orders, _rows_of(1, 2, 3))


def test_replacing_by_nothing_is_a_delivery_too(closed: Path) -> None:
    definition = _definition(closed)
    with _opened(closed) as orders:
        assert deliver(closed, new_id(), definition, [], "replace") == 0
        _check(orders, [])


@pytest.mark.parametrize("is_open", [True, False])
def test_a_delivery_creates_its_map(closed: Path, is_open: bool) -> None:
    """In the commit that has its rows; a second one of that name is refused and leaves nothing."""
    definition = _created(closed)
    delivery, infos = _written(closed, definition, [1, 2])
    store = Store.open(closed) if is_open else None
    assert deliver(closed, delivery, definition, infos, "append", creates=True) == len(_rows_of(1, 2))
    other = _created(closed)
    delivery, infos = _written(closed, other, [3])
    with pytest.raises(SqlError, match="there is already a map created"):
        deliver(closed, delivery, other, infos, "append", creates=True)
    if store is not None:
        store.close()
    assert _inbox(closed) == []
    again = Store.open(closed)
    _check(again.map(definition), _rows_of(1, 2))
    assert {path.name for path in (closed / "maps").iterdir()} == {each.id for each in again.catalog.maps.values()}
    again.close()


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_writer_is_killed_while_it_creates_a_map(closed: Path, moment: str) -> None:
    definition = _created(closed)
    delivery, infos = _written(closed, definition, [1, 2])
    with _killed_writer(closed, moment):
        assert deliver(closed, delivery, definition, infos, "append", creates=True) == len(_rows_of(1, 2))
    for _ in range(2):
        store = Store.open(closed)
        _check(store.map(definition), _rows_of(1, 2))
        assert len(store.catalog.maps) == 2
        store.close()
    assert read_manifest(closed).deliveries == ()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_batch_whose_writer_is_killed_is_applied_once(closed: Path, moment: str) -> None:
    """A sender that did not hear that its batch was committed sends it again."""
    definition = _definition(closed)
    rules = ChangeRules(batch=BatchId("feed", 1))
    delivery, infos = _written(closed, definition, [2])
    with _killed_writer(closed, moment):
        deliver(closed, delivery, definition, infos, "upsert", rules=rules)
    late = [LATE_ROW] if moment == MOMENTS[1] else []
    for _ in range(2):
        delivery, infos = _written(closed, definition, [2, 3])
        deliver(closed, delivery, definition, infos, "append", rules=rules)
    with _opened(closed) as orders:
        _check(orders, _rows_of(1, 2) + late)


def _created(folder: Path) -> MapDefinition:
    """A map that is not in the store yet, with the columns and indexes of the one that is."""
    definition = _definition(folder)
    indexes = tuple(replace(each, id=new_id()) for each in definition.indexes)
    return replace(definition, id=new_id(), name="created", indexes=indexes)


@contextmanager
def _killed_writer(folder: Path, moment: str) -> Iterator[None]:
    """Another process has the folder open, and kills itself while it takes over what is delivered meanwhile."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.inbox_writer", str(folder), moment],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        yield
        assert writer.wait() == -signal.SIGKILL
    finally:
        writer.kill()
        writer.communicate()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("mode", ["append", "replace"])
def test_the_writer_is_killed_while_it_takes_over(closed: Path, mode: LoadMode, moment: str) -> None:
    """So many segments are merged at once: none of those that were delivered tells that the delivery was applied."""
    statements = range(2, MOST_SEGMENTS + 5)
    delivery, infos = _written(closed, _definition(closed), statements)
    with _killed_writer(closed, moment):
        rows = deliver(closed, delivery, _definition(closed), infos, mode)
        assert rows == len(_rows_of(*statements))
    late = [LATE_ROW] if moment == MOMENTS[1] else []
    kept = [1] if mode == "append" else []
    for _ in range(2):
        with _opened(closed) as orders:
            _check(orders, _rows_of(*kept, *statements) + late)
    assert read_manifest(closed).deliveries == ()
    # The next writer answers again, though the answer was fetched already.
    assert {path.suffix for path in _inbox(closed)} == ({ANSWER} if moment == MOMENTS[2] else set())


def test_a_refused_delivery_leaves_nothing(closed: Path) -> None:
    definition = _definition(closed)
    before = set(closed.glob("maps/*/*"))
    with _opened(closed) as orders:
        with pytest.raises(SqlError, match="duplicate key in orders: id = 1"):
            _deliver(closed, definition, [2, 1, 3])
        _check(orders, _rows_of(1))
        gc.collect()
        assert set(closed.glob("maps/*/*")) == before
        _wait_until_the_inbox_is_empty(closed)
        assert _deliver(closed, definition, [2]) == len(statement_rows(2))


@pytest.mark.parametrize("suffix", ["arrow", "keys", "index"])
def test_a_delivery_without_one_of_its_files_leaves_nothing(closed: Path, suffix: str) -> None:
    definition = _definition(closed)
    before = set(closed.glob("maps/*/*"))
    delivery, infos = _written(closed, definition, [2, 3])
    missing = max(delivery_folder(closed, delivery).glob(f"*.{suffix}"))
    missing.unlink()
    with _opened(closed) as orders:
        with pytest.raises(RemudaError, match=missing.name):
            deliver(closed, delivery, definition, infos, "append")
        _check(orders, _rows_of(1))
        gc.collect()
        assert set(closed.glob("maps/*/*")) == before


def test_the_map_was_dropped_meanwhile(closed: Path) -> None:
    definition = _definition(closed)
    delivery, infos = _written(closed, definition, [2])
    store = Store.open(closed)
    store.drop_map(definition)
    with pytest.raises(SqlError) as caught:
        deliver(closed, delivery, definition, infos, "append")
    assert caught.value.code is ErrorCode.MAP_DESTROYED
    store.close()
    assert _inbox(closed) == []


def test_indexes_were_created_and_dropped_meanwhile(closed: Path) -> None:
    definition = _definition(closed)
    delivery, infos = _written(closed, definition, [2, 3])
    store = Store.open(closed)
    gone = next(index for index in definition.indexes if index.type is IndexType.HASH)
    store.drop_index(definition, gone)
    changed = store.create_index(only_map(store).definition, index_on("customer", "amount"))
    assert deliver(closed, delivery, definition, infos, "append") == len(_rows_of(2, 3))
    _check(only_map(store), _rows_of(1, 2, 3))
    store.close()
    with _opened(closed) as orders:
        assert orders.definition == changed
        _check(orders, _rows_of(1, 2, 3))


@pytest.mark.parametrize("is_open", [True, False])
def test_several_deliveries_at_once(closed: Path, is_open: bool) -> None:
    definition = _definition(closed)
    store = Store.open(closed) if is_open else None
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda number: _deliver(closed, definition, [number]), range(2, 10)))
    assert rows == [len(statement_rows(number)) for number in range(2, 10)]
    if store is not None:
        store.close()
    with _opened(closed) as orders:
        _check(orders, _rows_of(*range(1, 10)))
    assert _inbox(closed) == []


def test_one_that_cannot_be_read_keeps_neither_the_folder_nor_others_waiting(closed: Path) -> None:
    (closed / FOLDER).mkdir()
    garbage, other = new_id(), new_id()
    for name, raw in {garbage: b"\xff{", other: b'{"mode": "append", "map": {}}'}.items():
        (closed / FOLDER / f"{name}{REQUEST}").write_bytes(raw)
    definition = _definition(closed)
    with _opened(closed) as orders:
        assert _deliver(closed, definition, [2]) == len(statement_rows(2))
        _check(orders, _rows_of(1, 2))
    assert {path.name for path in _inbox(closed)} == {f"{garbage}{ANSWER}", f"{other}{ANSWER}"}
    assert b"cannot be read" in (closed / FOLDER / f"{garbage}{ANSWER}").read_bytes()


def test_what_was_never_delivered_is_removed_after_a_day(closed: Path) -> None:
    definition = _definition(closed)
    (old, _), (recent, _) = _written(closed, definition, [2]), _written(closed, definition, [3])
    answer = closed / FOLDER / f"{new_id()}{ANSWER}"
    answer.write_bytes(b"{}")
    for path in (delivery_folder(closed, old), answer):
        os.utime(path, (time.time() - 2 * DAY,) * 2)
    with _opened(closed):
        assert _inbox(closed) == [delivery_folder(closed, recent)]
    forget(closed, recent)
    assert _inbox(closed) == []


def test_what_the_writer_let_others_put_there_for_itself_goes_with_the_next_writer(closed: Path) -> None:
    with _opened(closed):
        own = own_folder(closed, "job")
        own.mkdir(parents=True)
        (own / "rows.arrow").write_bytes(b"rows")
        Store.open(closed, read_only=True).close()
        assert own.exists()
    assert own.exists()
    with _opened(closed):
        assert _inbox(closed) == []


@pytest.mark.parametrize("claimed", [False, True])
def test_what_waits_is_taken_over_however_old_it_is(closed: Path, claimed: bool) -> None:
    """The process that asked was killed, and the one that had claimed it too: nobody is there for the answer."""
    definition = _definition(closed)
    delivery, infos = _written(closed, definition, [2])
    hand_in(closed, delivery, definition, infos, "append")
    if claimed:
        request = closed / FOLDER / f"{delivery}{REQUEST}"
        request.rename(request.with_suffix(CLAIMED))
    for path in _inbox(closed):
        os.utime(path, (time.time() - 2 * DAY,) * 2)
    with _opened(closed) as orders:
        _check(orders, _rows_of(1, 2))
    assert {path.suffix for path in _inbox(closed)} == {"", ANSWER}


def test_a_delivery_can_be_withdrawn(closed: Path) -> None:
    definition = _definition(closed)
    delivery, infos = _written(closed, definition, [2])
    hand_in(closed, delivery, definition, infos, "append")
    forget(closed, delivery)
    with _opened(closed) as orders:
        _check(orders, _rows_of(1))


def test_a_task_that_goes_on_after_its_job_has_failed_leaves_nothing(closed: Path) -> None:
    definition = _definition(closed)
    inbox, delivery = FolderInbox(str(closed)), f"load{new_id()}"

    def save(number: int) -> list[SegmentInfo]:
        columns = table_of(definition, statement_rows(number)).columns
        return inbox.save(delivery, build_segments(definition, columns))

    inbox.expect(delivery)
    assert sum(info.rows for info in save(2)) == len(statement_rows(2))
    inbox.forget(delivery)
    with pytest.raises(StorageError, match="a segment cannot be written"):
        save(3)
    assert _inbox(closed) == []


def test_a_closed_folder_has_no_thread_and_a_dropped_store_no_owner(closed: Path) -> None:
    def watching() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "remuda-inbox"}

    before = watching()
    store = Store.open(closed)
    mine = watching() - before
    assert len(mine) == 1
    store.close()
    assert not mine & watching()
    store = Store.open(closed)
    store.verification.wait()
    kept = weakref.ref(store)
    del store
    while kept() is not None:  # The thread may just be looking.
        time.sleep(0.001)
        gc.collect()


def test_files_that_a_killed_writer_linked_stay_when_the_next_one_takes_the_delivery_over(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are orphans at its opening and wait for the versions that are kept; then they are committed."""
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 3600)
    with _opened(closed) as found:
        found.insert(statement_rows(2))
        found.checkpoint()
    definition = _definition(closed)
    delivery, infos = _written(closed, definition, [3])
    hand_in(closed, delivery, definition, infos, "append")
    for path in delivery_folder(closed, delivery).iterdir():
        os.link(path, closed / "maps" / definition.id / path.name)
    store = Store.open(closed)
    assert list(closed.glob("versions/*.root"))
    assert contents(only_map(store).snapshot()) == in_order(_rows_of(1, 2, 3))
    monkeypatch.setattr(kept_versions, "MOST_VERSIONS", 0)
    store.vacuum()
    assert not list(closed.glob("versions/*.root"))
    store.close()
    with _opened(closed) as found:
        assert contents(found.snapshot()) == in_order(_rows_of(1, 2, 3))
        assert found.damages() == []
