"""Folders whose write-ahead log was written by an earlier version: format 1 is read, and never written."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from remuda.errors import StorageError
from remuda.storage import Durability, Store
from remuda.storage.folder.manifest import encode_manifest, read_manifest
from remuda.storage.wal.log_file import read_log
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.folders import abandon, filled, flipped, log_files, only_map
from tests.storage.maps import contents

ROOM = 4096


def _format_1(first_sequence: int, payloads: list[bytes]) -> bytes:
    """A log file as format 1 has it."""
    start = struct.pack("<8sQ", b"REMUDAW1", first_sequence)
    raw = start + struct.pack("<I", zlib.crc32(start))
    for payload in payloads:
        head = struct.pack("<4sIQ", b"\xf5RW\xf6", len(payload), len(raw))
        raw += head + struct.pack("<II", zlib.crc32(head), zlib.crc32(payload)) + payload
    return raw


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder that a process of an earlier version has left, killed, with three statements in its log."""
    store = filled(tmp_path)
    for number in range(1, 4):
        only_map(store).insert(statement_rows(number))
    abandon(store)
    (file,) = read_log(tmp_path / "wal", 1, (1, 0))
    log_files(tmp_path)[0].write_bytes(_format_1(1, [payload for _, payload in file.records]) + bytes(ROOM))
    manifest = replace(read_manifest(tmp_path), safe_log=(1, 20))
    (tmp_path / "MANIFEST").write_bytes(encode_manifest(manifest))
    return tmp_path


def _all(*numbers: int) -> list[tuple[int, str, float]]:
    return [row for number in numbers for row in statement_rows(number)]


@pytest.mark.parametrize("durability", list(Durability))
def test_an_old_log_is_read_and_a_new_one_begun_behind_it(old: Path, durability: Durability) -> None:
    before = log_files(old)[0].read_bytes()[:-ROOM]
    reader = Store.open(old, read_only=True)
    assert contents(only_map(reader).snapshot()) == _all(1, 2, 3)
    reader.close()
    store = Store.open(old, durability=durability)
    assert contents(only_map(store).snapshot()) == _all(1, 2, 3)
    only_map(store).insert(statement_rows(4))
    if durability is not Durability.NONE:
        abandon(store)
        assert [path.read_bytes()[:8] for path in log_files(old)] == [b"REMUDAW1", b"REMUDAW2"]
        assert log_files(old)[0].read_bytes() == before
    else:
        store.close()
    again = Store.open(old, durability=Durability.OS)
    assert contents(only_map(again).snapshot()) == _all(1, 2, 3, 4)
    again.checkpoint()
    only_map(again).insert(statement_rows(5))
    again.close()
    last = Store.open(old)
    assert contents(only_map(last).snapshot()) == _all(1, 2, 3, 4, 5)
    last.checkpoint()
    assert {path.read_bytes()[:8] for path in log_files(old)} == {b"REMUDAW2"}
    last.close()


def test_a_torn_end_of_an_old_log_is_cut_off_and_damage_is_refused(old: Path) -> None:
    path = log_files(old)[0]
    raw = path.read_bytes()[:-ROOM]
    path.write_bytes(raw[:-10])
    assert len(only_map(Store.open(old, read_only=True))) == 2 * ROWS
    for offset in range(0, len(raw), 13):
        path.write_bytes(flipped(raw, offset))
        with pytest.raises(StorageError) as caught:
            Store.open(old)
        assert caught.value.path == str(path)
    path.write_bytes(raw)
    Store.open(old).close()


def test_damage_in_an_old_log_is_refused_when_a_new_one_follows(old: Path) -> None:
    store = Store.open(old, durability=Durability.OS)
    only_map(store).insert(statement_rows(4))
    abandon(store)
    path = log_files(old)[0]
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StorageError, match="a record of the write-ahead log is damaged"):
        Store.open(old)
