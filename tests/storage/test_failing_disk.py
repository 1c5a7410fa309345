"""Disks that are full and folders that may not be written, real ones: a clear error, reads go on, nothing is lost."""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from remuda.errors import OutcomeUnknownError, StorageError
from remuda.storage import Durability, Lookup, Store
from remuda.storage.folder.manifest import decode_manifest
from remuda.storage.load.statement_load import StatementLoad
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.folders import abandon, filled, log_files, names_in_force, only_map, recorded_length
from tests.storage.maps import contents, index_on, table_of

NOBODY = 65534
SMALL_DISK = "256k"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own that is soon full; only the superuser can have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_refuses_writes_and_keeps_all_that_was_acknowledged(small_disk: Path) -> None:
    folder = small_disk / "store"
    store = filled(folder, Durability.FSYNC)
    orders = only_map(store)
    acknowledged: list[tuple[int, str, float]] = []

    def write_until_full() -> None:
        for number in range(10_000):
            row = (number, "x" * 200, float(number))
            orders.insert([row])
            acknowledged.append(row)

    with pytest.raises(StorageError, match=r"could not be made durable: No space left on device.*\.log"):
        write_until_full()
    assert len(acknowledged) > 100
    assert contents(orders.snapshot()) == acknowledged
    assert orders.lookup(len(acknowledged), (0,)) is None
    with (small_disk / "ballast").open("wb") as file, suppress(OSError):
        file.write(bytes(_free(small_disk)))
    for write in (
        lambda: orders.put([(0, "y" * 20_000, 1.0)]),
        lambda: orders.load(table_of(orders.definition, [(-1, "y", 1.0)]), "replace"),
        store.checkpoint,
    ):
        with pytest.raises(StorageError, match="No space left on device"):
            write()
        assert contents(orders.snapshot()) == acknowledged
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    # With space the same store goes on, and its numbers are not mixed up with those of the refused records.
    orders.insert([(-1, "after", 1.0)])
    store.checkpoint()
    orders.insert([(-2, "after", 1.0)])
    expected = contents(orders.snapshot())
    assert len(expected) == len(acknowledged) + 2
    abandon(store)
    store = Store.open(folder)
    assert contents(only_map(store).snapshot()) == expected
    only_map(store).put([(0, "y", 1.0)])
    store.close()


@pytest.mark.parametrize("durability", Durability)
def test_a_checkpoint_after_one_that_could_not_commit_commits_for_both(tmp_path: Path, durability: Durability) -> None:
    """The segments that the first one has flushed are in no manifest, and nothing is left for the second to flush."""
    folder = tmp_path / "store"
    store = filled(folder, durability)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    store.checkpoint()
    orders.delete([row[0] for row in statement_rows(1)])
    orders.insert(statement_rows(2))
    (folder / "MANIFEST.new").mkdir()  # No manifest can be written.
    for tries in range(3):
        with pytest.raises(StorageError, match="the manifest cannot be written"):
            store.checkpoint()
        gc.collect()
        killed = tmp_path / f"killed {tries}"
        shutil.copytree(folder, killed, ignore=shutil.ignore_patterns("*.new"))
        again = Store.open(killed)
        expected = statement_rows(1 if durability is Durability.NONE else 2)
        assert contents(only_map(again).snapshot()) == expected
        again.close()
    (folder / "MANIFEST.new").rmdir()
    store.checkpoint()
    store.close()
    again = Store.open(folder)
    assert contents(only_map(again).snapshot()) == statement_rows(2)
    assert {path.name.partition(".")[0] for path in folder.glob("maps/*/*")} == names_in_force(again)
    again.close()


def test_a_store_without_a_log_commits_at_closing_what_a_checkpoint_could_not(tmp_path: Path) -> None:
    store = filled(tmp_path, Durability.NONE)
    only_map(store).insert(statement_rows(1))
    (tmp_path / "MANIFEST.new").mkdir()
    with pytest.raises(StorageError, match="the manifest cannot be written"):
        store.checkpoint()
    (tmp_path / "MANIFEST.new").rmdir()
    store.close()
    again = Store.open(tmp_path)
    assert contents(only_map(again).snapshot()) == statement_rows(1)
    again.close()


def test_a_statement_of_many_rows_that_misses_a_file_says_which(tmp_path: Path) -> None:
    store = filled(tmp_path)
    orders = only_map(store)
    orders.load(table_of(orders.definition, statement_rows(1)), "replace")
    info = orders.stored[0].info
    assert info is not None
    with pytest.raises(StorageError, match="No such file or directory") as caught:
        StatementLoad(orders, "append").take_over([replace(info, id="0" * 16)])
    assert caught.value.path is not None
    store.close()


@pytest.mark.parametrize("free", ["truncate", "drop"])
def test_on_a_full_disk_space_can_still_be_freed(small_disk: Path, free: str) -> None:
    """The manifest that frees it takes the place of the log's room."""
    store = filled(small_disk / "store", Durability.FSYNC)
    orders = only_map(store)
    orders.insert([(number, "x" * 100, 1.0) for number in range(200)])
    store.checkpoint()
    (small_disk / "ballast").write_bytes(bytes(_free(small_disk) - 20_000))

    def write_until_full() -> None:
        for number in range(1000, 10_000):
            orders.insert([(number, "x" * 200, 1.0)])

    with pytest.raises(StorageError, match="No space left on device"):
        write_until_full()
    with (small_disk / "more").open("wb") as file, suppress(OSError):
        file.write(bytes(_free(small_disk)))
    if free == "truncate":
        orders.truncate()
        (small_disk / "ballast").unlink()
        orders.insert([(1, "after", 1.0)])
        assert len(orders) == 1
    else:
        store.drop_map(orders.definition)
        assert not store.catalog.maps
    store.close()
    again = Store.open(small_disk / "store")
    assert len(again.catalog.maps) == (free == "truncate")
    again.close()


@pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
def test_a_load_that_does_not_fit_leaves_everything_as_it_was(small_disk: Path, mode: str) -> None:
    store = filled(small_disk / "store", Durability.FSYNC)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    large = table_of(orders.definition, [(number, f"customer {number}", 1.0) for number in range(20_000)])
    with pytest.raises(StorageError, match="No space left on device"):
        orders.load(large, mode)
    assert contents(orders.snapshot()) == statement_rows(1)
    orders.insert(statement_rows(2))
    with pytest.raises(StorageError, match="No space left on device"):
        orders.load(large, mode)
    store.close()
    again = Store.open(small_disk / "store")
    assert contents(only_map(again).snapshot()) == statement_rows(1) + statement_rows(2)
    assert len(list(small_disk.glob("store/maps/*/*"))) == 0
    again.close()


def test_a_checkpoint_and_an_index_that_do_not_fit_change_nothing(small_disk: Path) -> None:
    store = filled(small_disk / "store", Durability.FSYNC)
    orders = only_map(store)
    rows = [(number, f"customer {number % 7}", float(number)) for number in range(1000)]
    orders.insert(rows)
    store.checkpoint()
    orders.delete(list(range(0, 1000, 2)))
    (small_disk / "ballast").write_bytes(bytes(_free(small_disk) - 4096))
    definition = orders.definition
    with pytest.raises(StorageError, match="No space left on device"):
        store.create_index(definition, index_on("customer", "amount"))
    with pytest.raises(StorageError, match="No space left on device"):
        store.checkpoint()
    assert orders.definition == definition
    assert store.catalog.holds(definition)
    assert contents(orders.snapshot()) == rows[1::2]
    abandon(store)
    (small_disk / "ballast").unlink()
    again = Store.open(small_disk / "store")
    assert contents(only_map(again).snapshot()) == rows[1::2]
    again.close()


def _free(folder: Path) -> int:
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def test_a_write_that_ends_half_way_is_taken_back(tmp_path: Path) -> None:
    """The system's own limit on the size of files stands in for the full disk."""
    store = filled(tmp_path, Durability.FSYNC)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (recorded_length(tmp_path) + 30, hard))
    try:
        with pytest.raises(StorageError, match="could not be made durable: File too large"):
            orders.insert(statement_rows(2))
        with pytest.raises(StorageError, match="File too large"):
            orders.insert(statement_rows(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(orders.snapshot()) == statement_rows(1)
    assert len(orders) == len(statement_rows(1))
    assert orders.lookup(20, (1,)) is None
    by_amount = orders.definition.indexes[1].id
    assert not any(len(source.positions(by_amount, Lookup((2.0,)))) for source in orders.snapshot().sources)
    store.close()
    again = only_map(Store.open(tmp_path))
    assert contents(again.snapshot()) == statement_rows(1)
    again.insert(statement_rows(2))


def test_a_statement_of_several_writes_is_taken_back_and_a_snapshot_keeps_what_it_saw(tmp_path: Path) -> None:
    store = filled(tmp_path, Durability.FSYNC)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    store.checkpoint()
    orders.insert(statement_rows(2))
    orders.delete([10])
    held = []

    def write_three() -> None:
        with orders.writing():
            orders.insert(statement_rows(3))
            orders.delete([11, 20, 30])
            held.append(orders.snapshot())

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (recorded_length(tmp_path) + 30, hard))
    before = contents(orders.snapshot())
    try:
        with pytest.raises(StorageError, match="File too large"):
            write_three()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(orders.snapshot()) == before
    assert [orders.lookup(key, (0,)) for key in (10, 11, 20, 30)] == [None, (11,), (20,), None]
    assert len(contents(held[0])) == len(before) + 1
    store.close()


@pytest.mark.parametrize("durability", [Durability.FSYNC, Durability.OS])
def test_writers_of_several_maps_go_on_when_there_is_space_again(tmp_path: Path, durability: Durability) -> None:
    """Statements that read and write, while there is space and while there is none: each is there as told, or not."""
    store = filled(tmp_path, durability)
    store.create_map(replace(only_map(store).definition, id="0123456789abcdef", name="other"))
    maps = [store.map(definition) for definition in store.catalog.maps.values()]
    expected: list[set[int]] = [set(), set()]
    refused = []
    stopped = threading.Event()

    def write(thread: int) -> None:
        place = thread % 2
        number = 0
        while not stopped.is_set():
            number += 1
            key = thread * 1_000_000 + 2 * number
            try:
                with maps[place].writing():
                    # A statement that reads what others have written, and says so in its row.
                    before = maps[place].lookup(-1, (2,))
                    count = 0.0 if before is None else before[0]
                    maps[place].put([(-1, "count", count + 1), (key, "first", 1.0), (key + 1, "second" * 40, 1.0)])
            except StorageError as error:
                refused.append(str(error))
            else:
                expected[place] |= {key, key + 1}

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        for turn in range(8):
            written = sum(map(len, expected))
            while sum(map(len, expected)) < written + 100:
                time.sleep(0.001)
            resource.setrlimit(resource.RLIMIT_FSIZE, (log_files(tmp_path)[-1].stat().st_size // 2, hard))
            count = len(refused)
            while len(refused) < count + 50:
                time.sleep(0.001)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            if turn % 3 == 2:
                with suppress(StorageError):  # A record that is refused just then.
                    store.checkpoint()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        stopped.set()
        for thread in threads:
            thread.join()
    assert all("File too large; nothing of it was kept" in message for message in refused)
    for found, keys in zip(maps, expected, strict=True):
        assert {row[0] for row in contents(found.snapshot())} == keys | {-1}
        assert found.lookup(-1, (2,)) == (len(keys) / 2,)
    abandon(store)
    again = Store.open(tmp_path, durability=durability)
    for found, keys in zip(maps, expected, strict=True):
        assert {row[0] for row in contents(again.map(found.definition).snapshot())} == keys | {-1}
        assert again.map(found.definition).lookup(-1, (2,)) == (len(keys) / 2,)
    again.close()


AS_NOBODY = """
import os
import sys
from pathlib import Path
from remuda.errors import OutcomeUnknownError, StorageError
from remuda.storage import Store

def rows(folder, **options):
    store = Store.open(folder, **options)
    (definition,) = store.catalog.maps.values()
    found = store.map(definition).snapshot().rows
    store.close()
    return found

folder = Path(sys.argv[1])
rows(folder)
os.setuid(int(sys.argv[2]))
try:
    rows(folder)
except StorageError as error:
    print(error)
print(rows(folder, read_only=True))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become somebody else")
def test_a_folder_without_permission_can_still_be_read() -> None:
    with tempfile.TemporaryDirectory(prefix="remuda-test-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "store"
        store = filled(folder)
        only_map(store).insert(statement_rows(1))
        store.checkpoint()
        only_map(store).insert(statement_rows(2))
        store.close()
        child = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(folder), str(NOBODY)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
        )
    assert child.returncode == 0, child.stderr
    refused, rows = child.stdout.splitlines()
    assert "the folder cannot be written: Permission denied" in refused
    assert rows == "8"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_becomes_unwritable_refuses_structure_and_keeps_reads(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    orders = only_map(store)
    orders.insert(statement_rows(1))
    (tmp_path / "store").chmod(0o500)
    try:
        with pytest.raises(StorageError, match="Permission denied"):
            store.create_index(orders.definition, index_on("customer", "amount"))
        assert contents(orders.snapshot()) == statement_rows(1)
    finally:
        (tmp_path / "store").chmod(0o700)
    store.close()


def test_a_checkpoint_that_cannot_begin_a_log_file_leaves_the_old_one_in_use(tmp_path: Path) -> None:
    store = filled(tmp_path, Durability.FSYNC)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    gc.collect()  # not later: a file that is closed then would make room for one
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(StorageError, match="write-ahead log cannot be written: Too many open files"):
            store.checkpoint()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # A file opened now gets the number of one that was closed: records must not go there.
    with (tmp_path / "other").open("w+b") as other:
        orders.insert(statement_rows(2))
        assert other.read() == b""
    reader = Store.open(tmp_path, read_only=True)
    assert len(only_map(reader)) == 2 * ROWS
    reader.close()
    store.checkpoint()
    orders.insert(statement_rows(3))
    abandon(store)
    assert len(only_map(Store.open(tmp_path))) == 3 * ROWS


class FailingFolder:
    """A disk that does not sync the names in one folder, as from a moment on; and what it held at that moment."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._sync = os.fsync
        self.fails = False
        self.manifest = b""
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fsync(self, descriptor: int) -> None:
        if self.fails and os.path.samestat(os.fstat(descriptor), self._folder.stat()):
            self.manifest = (self._folder / "MANIFEST").read_bytes()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(descriptor)


CHANGES: dict[str, Callable[[Store], object]] = {
    "load": lambda store: only_map(store).load(table_of(only_map(store).definition, [(-1, "y", 1.0)] * 1), "replace"),
    "truncate": lambda store: only_map(store).truncate(),
    "checkpoint": lambda store: store.checkpoint(),
    "index": lambda store: store.create_index(only_map(store).definition, index_on("customer", "amount")),
    "drop": lambda store: store.drop_map(only_map(store).definition),
    "create": lambda store: store.create_map(replace(only_map(store).definition, id="0123456789abcdef", name="other")),
}


@pytest.mark.parametrize("crash", [False, True], ids=["the old manifest is found", "the new manifest is found"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_manifest_that_is_there_but_not_synced(
    change: str, crash: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is refused and undone; whichever manifest a crash leaves, it names files that are there."""
    disk = FailingFolder(tmp_path, monkeypatch)
    store = filled(tmp_path, Durability.FSYNC)
    only_map(store).insert(statement_rows(1))
    store.checkpoint()
    only_map(store).insert(statement_rows(2))
    before = contents(only_map(store).snapshot())
    old = (tmp_path / "MANIFEST").read_bytes()
    disk.fails = True
    with pytest.raises(OutcomeUnknownError, match=r"1012 OUTCOME_UNKNOWN.*could not be made durable: Input/output"):
        CHANGES[change](store)
    assert contents(only_map(store).snapshot()) == before
    assert disk.manifest not in (b"", old)
    if not crash:
        assert decode_manifest((tmp_path / "MANIFEST").read_bytes(), "") == decode_manifest(old, "")
    disk.fails = False
    for refused in ("create", "truncate", "index", "checkpoint"):
        with pytest.raises(StorageError, match="opened anew"):
            CHANGES[refused](store)
    with pytest.raises(StorageError, match="opened anew"):
        only_map(store).insert(statement_rows(3))
    assert contents(only_map(store).snapshot()) == before
    gc.collect()
    abandon(store)
    if crash:
        (tmp_path / "MANIFEST").write_bytes(disk.manifest)
    again = Store.open(tmp_path)
    again.verify()
    if not crash or change == "checkpoint":
        assert contents(only_map(again).snapshot()) == before
    again.close()


def test_a_store_that_could_not_sync_its_manifest_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FailingFolder(tmp_path, monkeypatch)
    store = filled(tmp_path, Durability.FSYNC)
    only_map(store).insert(statement_rows(1))
    disk.fails = True
    with pytest.raises(StorageError, match="could not be made durable"):
        store.create_map(replace(only_map(store).definition, id="0123456789abcdef", name="other"))
    store.close()
    disk.fails = False
    assert contents(only_map(Store.open(tmp_path)).snapshot()) == statement_rows(1)
