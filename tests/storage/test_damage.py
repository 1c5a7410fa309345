"""Torn and flipped bytes in every kind of file: recovery or an error that names the place, never silent loss."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from pathlib import Path

import pytest

from remuda.errors import StorageError
from remuda.storage import Durability, Store
from remuda.storage.segment.segment_file import SegmentFiles
from remuda.storage.wal.log_file import file_header
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.folders import abandon, filled, flipped, log_files, only_map, recorded_length
from tests.storage.maps import contents, index_on


def test_a_torn_tail_is_cut_off_at_every_length(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    store = filled(killed)
    orders = only_map(store)
    sizes = []
    for number in range(1, 4):
        orders.insert(statement_rows(number))
        sizes.append(log_files(killed)[-1].stat().st_size)
    abandon(store)
    for length in range(sizes[-1], sizes[0] - 1, -7):
        folder = shutil.copytree(killed, tmp_path / str(length))
        os.truncate(log_files(folder)[-1], length)
        store = Store.open(folder, durability=Durability.OS)
        whole = sum(size <= length for size in sizes)
        assert len(only_map(store)) == whole * ROWS
        only_map(store).put([(7, "after", 1.0)])
        abandon(store)
        store = Store.open(folder, read_only=True)
        assert only_map(store).lookup(7, (1,)) == ("after",)


@pytest.mark.parametrize("durability", [Durability.OS, Durability.FSYNC])
def test_sectors_that_a_power_failure_left_empty_are_cut_off(tmp_path: Path, durability: Durability) -> None:
    """The file has got its new length, or had room, but not all of the record's sectors were written."""
    store = filled(tmp_path, durability)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    path = log_files(tmp_path)[-1]
    before = recorded_length(tmp_path)
    orders.insert([(number, "x" * 100, 1.0) for number in range(100, 130)])
    abandon(store)
    raw, end = path.read_bytes(), recorded_length(tmp_path)
    cuts = [before, *range((before // 512 + 1) * 512, end, 512), end]
    assert len(cuts) > 5
    for start, stop in itertools.pairwise(cuts):
        path.write_bytes(raw[:start] + bytes(stop - start) + raw[stop:])
        reader = Store.open(tmp_path, read_only=True)
        assert contents(only_map(reader).snapshot()) == statement_rows(1)


def test_every_flipped_byte_in_the_synced_part_of_the_write_ahead_log_is_an_error(tmp_path: Path) -> None:
    """In the last record too, although the process was killed and no manifest has recorded that it was synced."""
    store = filled(tmp_path, Durability.FSYNC)
    for number in range(1, 6):
        only_map(store).insert(statement_rows(number))
    abandon(store)
    path = log_files(tmp_path)[-1]
    raw = path.read_bytes()
    for offset in range(recorded_length(tmp_path)):
        # In place: a file that is cut and written anew is synced by some systems, seven hundred times.
        with path.open("r+b") as file:
            file.write(flipped(raw, offset)[: offset + 1])
        with pytest.raises(StorageError) as caught:
            Store.open(tmp_path, read_only=True)
        assert caught.value.path == str(path)
        assert caught.value.offset is not None


def test_a_killed_process_leaves_the_beginning_of_a_record_in_the_room(tmp_path: Path) -> None:
    """It is killed between two pages of the file: a record, or its header, ends in zeros there."""
    store = filled(tmp_path, Durability.FSYNC)
    orders = only_map(store)
    start, page = recorded_length(tmp_path), 4096
    orders.put([(1, "x" * 1000, 1.0)])
    second = recorded_length(tmp_path)
    around = second - start - 1000
    orders.put([(2, "x" * (page - 10 - second - around), 1.0)])
    assert recorded_length(tmp_path) == page - 10
    orders.insert(statement_rows(3))
    abandon(store)
    path = log_files(tmp_path)[-1]
    raw = path.read_bytes()
    for written, rows in ((page, 2), (2048, 1)):
        path.write_bytes(raw[:written] + bytes(len(raw) - written))
        assert len(only_map(Store.open(tmp_path, read_only=True))) == rows


def test_a_clean_close_makes_even_a_missing_end_an_error(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    store.close()
    path = log_files(tmp_path)[-1]
    raw = path.read_bytes()
    for damaged in (flipped(raw, len(raw) - 1), raw[:-1], raw[:-200]):
        path.write_bytes(damaged)
        with pytest.raises(StorageError, match="write-ahead log is damaged"):
            Store.open(tmp_path)
    path.unlink()
    for read_only in (False, True):
        with pytest.raises(StorageError, match=path.name):
            Store.open(tmp_path, read_only=read_only)
    path.write_bytes(raw)
    assert len(only_map(Store.open(tmp_path))) == ROWS


def test_a_change_of_the_catalog_syncs_the_records_before_it(tmp_path: Path) -> None:
    """With durability "os" too: the manifest is synced, and must not outlive what it builds on."""
    store = filled(tmp_path)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    length = recorded_length(tmp_path)
    orders.insert(statement_rows(2))
    store.create_index(orders.definition, index_on("customer", "amount"))
    abandon(store)
    path = log_files(tmp_path)[-1]
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StorageError, match="a record of the write-ahead log is damaged"):
        Store.open(tmp_path, durability=Durability.OS)


def test_a_damaged_tail_is_cut_off_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing was synced here, so that any byte may be the trace of a power failure; and no later statement is kept."""
    killed = tmp_path / "killed"
    store = filled(killed)
    ends = [recorded_length(killed)]
    for number in range(1, 4):
        only_map(store).insert(statement_rows(number))
        ends.append(recorded_length(killed))
    abandon(store)
    raw = log_files(killed)[-1].read_bytes()
    for offset in range(ends[0], ends[-1], 11):
        folder = shutil.copytree(killed, tmp_path / str(offset))
        log_files(folder)[-1].write_bytes(flipped(raw, offset))
        caplog.clear()
        store = Store.open(folder, durability=Durability.OS)
        kept = sum(end <= offset for end in ends[1:])
        assert len(only_map(store)) == kept * ROWS
        dropped = store.dropped_tail
        assert dropped is not None
        # The last record may end in zeros.
        assert (dropped.offset, dropped.size) == (ends[kept], len(flipped(raw, offset).rstrip(b"\0")) - ends[kept])
        # The header of the record that was hit may be gone, those behind it are not.
        assert dropped.statements in {3 - kept, 2 - kept}
        assert f"{dropped.size} bytes" in caplog.text
        only_map(store).insert(statement_rows(7))
        abandon(store)
        again = Store.open(folder, durability=Durability.OS)
        assert again.dropped_tail is None
        assert len(only_map(again)) == (kept + 1) * ROWS
        abandon(again)


@pytest.mark.parametrize("header", [b"", b"REM", b"REMUDAW2", b"REMUDAW2\x07", bytes(32), bytes(4096)])
def test_a_half_written_header_is_a_new_log(tmp_path: Path, header: bytes) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    abandon(store)
    (tmp_path / "wal" / "00000002.log").write_bytes(header)
    store = Store.open(tmp_path)
    only_map(store).insert(statement_rows(2))
    store.close()
    assert len(only_map(Store.open(tmp_path, read_only=True))) == 2 * ROWS


def test_a_later_format_is_not_taken_for_a_new_log(tmp_path: Path) -> None:
    store = filled(tmp_path)
    abandon(store)
    (tmp_path / "wal" / "00000002.log").write_bytes(b"REMUDAW3" + bytes(64))
    with pytest.raises(StorageError, match="not a write-ahead log of format REMUDAW1 or REMUDAW2"):
        Store.open(tmp_path)


@pytest.mark.parametrize("left", ["nothing", "folders", "header", "zeros", "whole header"])
def test_a_first_opening_that_did_not_end_starts_over(tmp_path: Path, left: str) -> None:
    header = {"header": b"REMU", "zeros": bytes(32), "whole header": file_header(1, 0, 5, syncs=True)}
    if left != "nothing":
        (tmp_path / "wal").mkdir()
        (tmp_path / "maps").mkdir()
        (tmp_path / "LOCK").write_bytes(b"")
    if left in header:
        (tmp_path / "wal" / "00000001.log").write_bytes(header[left])
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    store.close()
    assert len(only_map(Store.open(tmp_path))) == ROWS


def test_records_without_a_manifest_are_not_overwritten(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    abandon(store)
    (tmp_path / "MANIFEST").unlink()
    with pytest.raises(StorageError, match="the manifest is missing"):
        Store.open(tmp_path)


def test_a_log_file_that_ends_in_its_header_is_made_anew(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    abandon(store)
    (tmp_path / "wal" / "00000002.log").write_bytes(b"REMUDA")
    store = Store.open(tmp_path, durability=Durability.OS)
    only_map(store).insert(statement_rows(2))
    store.checkpoint()
    only_map(store).insert(statement_rows(3))
    store.close()
    assert len(only_map(Store.open(tmp_path))) == 3 * ROWS


@pytest.fixture
def settled(tmp_path: Path) -> Path:
    """A folder with every kind of file and nothing in the log."""
    store = filled(tmp_path)
    only_map(store).insert([(number, f"customer {number}", 1.0) for number in range(100)])
    store.create_index(only_map(store).definition, index_on("customer", "amount"))
    store.checkpoint()
    only_map(store).delete([1, 2, 3])
    store.checkpoint()
    store.close()
    return tmp_path


def test_a_flipped_byte_in_any_other_file_is_found_without_being_asked(settled: Path) -> None:
    names = [path for path in [settled / "MANIFEST", *settled.glob("maps/*/*")] if path.stat().st_size]
    assert {path.suffix for path in names} == {"", ".arrow", ".group", ".keys", ".index", ".deleted"}
    choose = random.Random(1)
    for path in names:
        raw = path.read_bytes()
        for offset in choose.sample(range(len(raw)), 25):
            path.write_bytes(flipped(raw, offset))
            try:
                found = Store.open(settled, read_only=True)
                found.verification.wait()
                snapshot = only_map(found).snapshot()
            except StorageError as error:
                damaged = str(error)
            else:
                # Bytes between aligned arrays mean nothing.
                assert path.suffix in {".keys", ".index", ".deleted"}
                assert len(contents(snapshot)) == 97
                continue
            assert str(path) in damaged
        path.write_bytes(raw)


def test_a_damaged_map_refuses_reads_and_writes_and_names_the_place(settled: Path) -> None:
    (path,) = settled.glob("maps/*/*.arrow")
    raw = path.read_bytes()
    path.write_bytes(flipped(raw, raw.index(b"customer 50") + 10))
    store = Store.open(settled)
    store.verification.wait()
    orders = only_map(store)
    for use in (orders.snapshot, lambda: orders.lookup(1, (0,)), lambda: orders.put([(1, "x", 1.0)])):
        with pytest.raises(StorageError, match=rf"orders cannot be used: .*{path.name}"):
            use()
    store.close()


def test_damage_is_not_copied_into_new_files(settled: Path) -> None:
    (path,) = settled.glob("maps/*/*.arrow")
    raw = path.read_bytes()
    store = Store.open(settled)
    store.verification.stop()
    orders = only_map(store)
    orders.snapshot()
    path.write_bytes(flipped(raw, raw.index(b"customer 50") + 10))
    for segment in orders.stored:
        assert isinstance(segment.segment.hold, SegmentFiles)
        segment.segment.hold.verified = False
    with pytest.raises(StorageError, match="damaged"):
        store.create_index(orders.definition, index_on("amount", "customer"))
    orders.delete(list(range(60)))
    with pytest.raises(StorageError, match="damaged"):
        store.checkpoint()


def test_missing_files_are_named(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    store.checkpoint()
    store.close()
    (path,) = tmp_path.glob("maps/*/*.keys")
    path.unlink()
    for read_only in (False, True):
        store = Store.open(tmp_path, read_only=read_only)
        with pytest.raises(StorageError, match=path.name):
            only_map(store).snapshot()
        store.close()
    with pytest.raises(StorageError, match="no store"):
        Store.open(tmp_path / "elsewhere", read_only=True)
