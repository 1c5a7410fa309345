"""What survives what: killed processes, torn tails, flipped bytes, a second writer, a reader beside a writer."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.storage import Durability, Lookup, MapStore, Store
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.maps import contents, index_on, orders_map, table_of


def _only_map(store: Store) -> MapStore:
    (definition,) = store.catalog.maps.values()
    return store.map(definition)


def _filled(folder: Path, durability: Durability = Durability.OS) -> Store:
    store = Store.open(folder, durability=durability)
    store.create_map(orders_map())
    return store


def _abandon(store: Store) -> None:
    """As if the process had ended here: the lock goes, nothing else happens."""
    assert store._lock is not None
    store._lock.release()


def _log_files(folder: Path) -> list[Path]:
    return sorted((folder / "wal").glob("*.log"))


def _check_after_crash(folder: Path, acknowledged: set[int], doubtful: int) -> None:
    """Every acknowledged statement is there, each is whole or absent, and indexes agree with the rows."""
    store = Store.open(folder)
    store.verify()
    orders = _only_map(store)
    rows = contents(orders.snapshot())
    sizes = Counter(row[0] // 10 for row in rows)
    assert set(sizes.values()) <= {ROWS}
    deleted = {number - 4 for number in acknowledged if number % 5 == 0}
    expected = {number for number in acknowledged if number % 5} - deleted
    uncertain = {doubtful, doubtful - 4} if doubtful % 5 == 0 else {doubtful}
    assert set(sizes) - uncertain == expected - uncertain
    for index in orders.definition.indexes:
        for number in [*sorted(expected)[-5:], *sorted(deleted)[-5:]]:
            value = float(number) if index.columns == ("amount",) else f"statement {number}"
            found = [
                row
                for source in orders.snapshot().sources
                for row in source.rows_at((0, 1, 2), source.positions(index.id, Lookup((value,))))
            ]
            assert sorted(found) == [row for row in rows if row[0] // 10 == number]
    store.close()


def test_acknowledged_writes_survive_sigkill(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    acknowledged: set[int] = set()
    source = random.Random()
    for seed in range(5):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.crash_writer", str(folder), str(seed)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
        )
        assert child.stdout is not None
        wanted = source.randint(1, 60)
        lines = []
        for line in child.stdout:
            lines.append(int(line))
            if len(lines) == wanted:
                break
        time.sleep(source.random() * 0.01)
        child.send_signal(signal.SIGKILL)
        # What was printed before the signal arrived was acknowledged too.
        lines += [int(line) for line in child.stdout if line.endswith("\n")]
        child.wait()
        child.stdout.close()
        assert child.returncode == -signal.SIGKILL
        acknowledged |= set(lines)
        _check_after_crash(folder, acknowledged, max(acknowledged) + 1)
        # A statement that was whole on disk but never acknowledged counts from now on.
        store = Store.open(folder, read_only=True)
        there = {row[0] // 10 for row in contents(_only_map(store).snapshot())}
        acknowledged |= there
        if (doubtful := max(lines) + 1) % 5 == 0 and doubtful - 4 not in there:
            acknowledged.add(doubtful)


def test_a_torn_tail_is_cut_off_at_every_length(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    orders = _only_map(store)
    sizes = []
    for number in range(1, 4):
        orders.insert(statement_rows(number))
        sizes.append(_log_files(tmp_path)[-1].stat().st_size)
    _abandon(store)
    raw = _log_files(tmp_path)[-1].read_bytes()
    for length in range(len(raw), sizes[0] - 1, -7):
        _log_files(tmp_path)[-1].write_bytes(raw[:length])
        store = Store.open(tmp_path, durability=Durability.OS)
        whole = sum(size <= length for size in sizes)
        assert len(_only_map(store)) == whole * ROWS
        _only_map(store).put([(7, "after", 1.0)])
        _abandon(store)
        store = Store.open(tmp_path, read_only=True)
        assert _only_map(store).lookup(7, (1,)) == ("after",)
        _log_files(tmp_path)[-1].write_bytes(raw)


def test_a_flipped_byte_in_the_write_ahead_log_is_an_error(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    for number in range(1, 6):
        _only_map(store).insert(statement_rows(number))
    _abandon(store)
    path = _log_files(tmp_path)[-1]
    raw = path.read_bytes()
    record = (len(raw) - 16) // 5
    for offset in range(0, len(raw) - 2 * record, 5):
        path.write_bytes(_flipped(raw, offset))
        if 8 <= offset < 16:
            continue  # The number of the first record, which only the next file could contradict.
        with pytest.raises(StorageError) as caught:
            Store.open(tmp_path)
        assert caught.value.path == str(path)
        assert caught.value.offset is not None


def test_a_clean_close_makes_even_the_last_record_tamper_proof(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    _only_map(store).insert(statement_rows(1))
    store.close()
    path = _log_files(tmp_path)[-1]
    raw = path.read_bytes()
    for damaged in (_flipped(raw, len(raw) - 1), raw[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match="write-ahead log is damaged"):
            Store.open(tmp_path)
    path.write_bytes(raw)
    assert len(_only_map(Store.open(tmp_path))) == ROWS


def test_a_flipped_byte_in_any_other_file_is_found(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    _only_map(store).insert([(number, "x", 1.0) for number in range(100)])
    store.checkpoint()
    _only_map(store).delete([1, 2, 3])
    store.checkpoint()
    store.close()
    names = [path for path in [tmp_path / "MANIFEST", *tmp_path.glob("maps/*/*")] if path.stat().st_size]
    assert {path.suffix for path in names} == {"", ".arrow", ".keys", ".index", ".deleted"}
    for path in names:
        raw = path.read_bytes()
        for offset in random.Random(1).sample(range(len(raw)), 12):
            path.write_bytes(_flipped(raw, offset))
            try:
                found = Store.open(tmp_path, read_only=True)
                found.verify()
            except StorageError:
                continue
            # Bytes between aligned arrays mean nothing.
            assert path.suffix in {".keys", ".index", ".deleted"}
            assert len(contents(_only_map(found).snapshot())) == 97
        path.write_bytes(raw)


def _flipped(raw: bytes, offset: int) -> bytes:
    return raw[:offset] + bytes([raw[offset] ^ 0x40]) + raw[offset + 1 :]


def test_missing_files_are_named(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    _only_map(store).insert(statement_rows(1))
    store.checkpoint()
    store.close()
    (path,) = tmp_path.glob("maps/*/*.keys")
    path.unlink()
    with pytest.raises(StorageError, match=path.name):
        Store.open(tmp_path)
    with pytest.raises(StorageError, match=path.name):
        Store.open(tmp_path, read_only=True)
    with pytest.raises(StorageError, match="no store"):
        Store.open(tmp_path / "elsewhere", read_only=True)


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    with pytest.raises(StorageError, match=f"process {os.getpid()}.*read_only"):
        Store.open(tmp_path)
    store.close()
    Store.open(tmp_path).close()


def test_a_reader_sees_what_is_acknowledged_and_refreshes(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    orders = _only_map(store)
    orders.insert(statement_rows(1))
    reader = Store.open(tmp_path, read_only=True)
    read = _only_map(reader)
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


@pytest.mark.parametrize("durability", list(Durability))
def test_a_clean_close_keeps_everything(tmp_path: Path, durability: Durability) -> None:
    store = _filled(tmp_path, durability)
    orders = _only_map(store)
    for number in range(1, 30):
        orders.insert(statement_rows(number))
    orders.delete([10, 20])
    expected = contents(orders.snapshot())
    store.close()
    with pytest.raises(StorageError, match="closed"):
        orders.put([(1, "x", 1.0)])
    assert contents(orders.snapshot()) == expected
    again = Store.open(tmp_path, durability=durability)
    assert contents(_only_map(again).snapshot()) == expected
    again.close()


def test_threads_share_the_sync_and_lose_nothing(tmp_path: Path) -> None:
    store = _filled(tmp_path, Durability.FSYNC)
    orders = _only_map(store)

    def write(thread: int) -> None:
        for number in range(20):
            orders.put([(thread * 1000 + number, f"thread {thread}", 1.0)])

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.checkpoint()
    for thread in threads:
        thread.join()
    _abandon(store)
    assert len(_only_map(Store.open(tmp_path))) == 160


def test_checkpoints_leave_no_old_files_behind(tmp_path: Path) -> None:
    store = _filled(tmp_path)
    orders = _only_map(store)
    for number in range(1, 60):
        orders.insert(statement_rows(number))
        orders.put(statement_rows(number // 2))
        store.checkpoint()
    assert len(_log_files(tmp_path)) == 1
    named = {each.segment.id for each in orders.shelved}
    assert {path.name.partition(".")[0] for path in tmp_path.glob("maps/*/*")} == named
    assert len(named) <= 16
    store.drop_map(orders.definition)
    store.close()
    del orders
    Store.open(tmp_path).close()
    assert not list(tmp_path.glob("maps/*"))


def test_a_disk_that_takes_no_more_refuses_writes_and_keeps_reads(tmp_path: Path) -> None:
    """The system's own limit on the size of files stands in for the full disk: the write fails half-way."""
    store = _filled(tmp_path, Durability.FSYNC)
    orders = _only_map(store)
    orders.insert(statement_rows(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_log_files(tmp_path)[-1].stat().st_size + 30, hard))
    try:
        with pytest.raises(StorageError, match="could not be made durable: File too large"):
            orders.insert(statement_rows(2))
        with pytest.raises(StorageError, match="File too large"):
            orders.insert(statement_rows(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert orders.lookup(10, (1,)) == ("statement 1",)
    store.close()
    again = _only_map(Store.open(tmp_path))
    assert contents(again.snapshot()) == statement_rows(1)
    again.insert(statement_rows(2))
