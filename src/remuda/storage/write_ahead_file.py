"""The files of the write-ahead log: their format, and what can be read of them after whatever has happened.

    file    magic (8 bytes), sequence number of the first record (8), checksum of the two (4)
    record  mark (4 bytes), length (4), synced (8), checksum of these three (4), checksum of the payload (4), payload

A record without a payload only takes up its number. Behind the last record of the last file there may be zeros: room
that was made for more. `synced` is how much of the file was known to be safe when the
record was appended. A crash leaves a torn tail, which is cut off; damage must not pass for one. A record that cannot be
read was damaged

- if a later one says that it was synced, or a manifest, which every clean close writes, has recorded it;
- if it is there in full: a process that is killed leaves the beginning of a record, a power failure leaves sectors of
  zeros; neither changes a byte in the middle. A header that cannot be read is there in full if no sector's part of it
  is zeros.

So every flipped byte is found, in the last record too. What cannot be told from a torn tail is a file that lost
acknowledged records at its very end, by being cut or zeroed there after a process was killed.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from errno import ENOENT, EOPNOTSUPP
from itertools import pairwise
from typing import TYPE_CHECKING

from remuda.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = b"REMUDAW1"
"""The last character is the version of the format."""

_FILE_HEADER = struct.Struct("<8sQI")
_FILE_HEADER_CHECKED = 16
_MARK = b"\xf5RW\xf6"
_RECORD_HEADER = struct.Struct("<4sIQII")
_RECORD_HEADER_CHECKED = 16
_record_start = struct.Struct("<4sIQ").pack
_checksums = struct.Struct("<II").pack
_READING_TRIES = 5
_SECTOR = 512
"""What a disk writes wholly or not at all."""
_SYNCED_WRITE: int | None = getattr(os, "RWF_DSYNC", None)
"""The flag of a write that returns when it is durable: of Linux, and not of all its file systems."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log as found: its payloads up to the last whole record, which ends at `length`."""

    number: int
    first_sequence: int
    payloads: list[bytes]
    length: int

    @property
    def last_sequence(self) -> int:
        """One below the first where there is no record."""
        return self.first_sequence + len(self.payloads) - 1


def file_header(first_sequence: int) -> bytes:
    start = _FILE_HEADER.pack(MAGIC, first_sequence, 0)[:_FILE_HEADER_CHECKED]
    return _FILE_HEADER.pack(MAGIC, first_sequence, zlib.crc32(start))


def record_header(payload: bytes, synced: int) -> bytes:
    start = _record_start(_MARK, len(payload), synced)
    return start + _checksums(zlib.crc32(start), zlib.crc32(payload))


def write_at(descriptor: int, chunk: bytes, place: int, *, sync: bool) -> None:
    """Writes all of the chunk, and where it is to be synced in the same system call, if there is such a one.

    A sync after it does the same, but after each call a thread has to get the interpreter's lock back, for which
    writers that go on meanwhile compete with it, while the disk has nothing to do.
    """
    if sync and _SYNCED_WRITE is not None:
        try:
            _write(descriptor, chunk, place, _SYNCED_WRITE)
        except OSError as error:
            if error.errno != EOPNOTSUPP:
                raise
        else:
            return
    _write(descriptor, chunk, place, 0)
    if sync:
        sync_data(descriptor)


def _write(descriptor: int, chunk: bytes, place: int, flags: int) -> None:
    left = memoryview(chunk)
    while left:
        written = os.pwritev(descriptor, (left,), place, flags)
        place += written
        left = left[written:]


def sync_data(descriptor: int) -> None:
    """Makes a file's data durable, and of its metadata what is needed to read them."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def log_path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.log"


def log_numbers(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdigit())


def read_log(folder: Path, first: int, known_safe: tuple[int, int]) -> Iterator[LogFile]:
    """The files from number `first` on. Only the last may end in a torn record, and not below what is known to be safe.

    `known_safe` is a file's number and a length of it that a manifest has recorded.
    """
    numbers = [number for number in log_numbers(folder) if number >= first]
    if known_safe[0] >= first and known_safe[0] not in numbers:
        # For a reader this means that the writer is ahead of it.
        raise FileNotFoundError(ENOENT, "missing", str(log_path(folder, known_safe[0])))
    expected = None
    for number in numbers:
        file = _read_file(folder, number, torn_allowed=number == numbers[-1], known_safe=known_safe)
        if file is None:
            return
        if expected is not None and file.first_sequence != expected:
            raise StorageError(
                f"the write-ahead log has a gap before record {file.first_sequence}", log_path(folder, number), 0
            )
        expected = file.last_sequence + 1
        yield file


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_file(folder: Path, number: int, *, torn_allowed: bool, known_safe: tuple[int, int]) -> LogFile | None:
    """None for a last file that was cut off inside its header: it never held a record."""
    path = log_path(folder, number)
    for tries_left in reversed(range(_READING_TRIES)):
        raw = path.read_bytes()
        try:
            return _parse_file(path, number, raw, torn_allowed=torn_allowed, known_safe=known_safe)
        except StorageError:
            # A reader may have met a record that was just being written; damage stays as it is.
            if not tries_left or path.read_bytes() == raw:
                raise
    raise AssertionError("the last try returns or raises")


def _parse_file(
    path: Path, number: int, raw: bytes, *, torn_allowed: bool, known_safe: tuple[int, int]
) -> LogFile | None:
    if len(raw) < _FILE_HEADER.size:
        if torn_allowed and known_safe[0] != number:
            return None
        raise StorageError("the write-ahead log is damaged: the file is cut off", path, len(raw))
    magic, first_sequence, checksum = _FILE_HEADER.unpack_from(raw, 0)
    if magic != MAGIC:
        raise StorageError(f"not a write-ahead log of format {MAGIC.decode()}", path, 0)
    if checksum != zlib.crc32(raw[:_FILE_HEADER_CHECKED]):
        raise StorageError("the header of the write-ahead log is damaged", path, len(MAGIC))
    payloads: list[bytes] = []
    offset = _FILE_HEADER.size
    while (payload := _payload_at(raw, offset)) is not None:
        payloads.append(payload)
        offset += _RECORD_HEADER.size + len(payload)
    recorded = known_safe[1] if known_safe[0] == number else 0
    damaged = offset < recorded or (
        offset < len(raw) and (not torn_allowed or _was_synced(raw, offset) or not _is_torn(raw, offset))
    )
    if damaged:
        raise StorageError("a record of the write-ahead log is damaged", path, offset)
    return LogFile(number, first_sequence, payloads, offset)


def _payload_at(raw: bytes, offset: int) -> bytes | None:
    length = _length_at(raw, offset)
    if length is None:
        return None
    start = offset + _RECORD_HEADER.size
    payload = raw[start : start + length]
    checksum = _RECORD_HEADER.unpack_from(raw, offset)[4]
    return payload if len(payload) == length and zlib.crc32(payload) == checksum else None


def _length_at(raw: bytes, offset: int) -> int | None:
    """The length of the payload of the record here; None where the record's header is not whole."""
    if offset + _RECORD_HEADER.size > len(raw):
        return None
    mark, length, _, checksum, _ = _RECORD_HEADER.unpack_from(raw, offset)
    whole = mark == _MARK and zlib.crc32(raw[offset : offset + _RECORD_HEADER_CHECKED]) == checksum
    return int(length) if whole else None


def _was_synced(raw: bytes, offset: int) -> bool:
    """Whether a whole record further on says that the file was safe beyond `offset` when it was written."""
    found = raw.find(_MARK, offset + 1)
    while found >= 0:
        if _payload_at(raw, found) is not None and _RECORD_HEADER.unpack_from(raw, found)[2] > offset:
            return True
        found = raw.find(_MARK, found + 1)
    return False


def _is_torn(raw: bytes, offset: int) -> bool:
    """Whether the record here was never written in full: the file ends inside it, or a sector of it is all zeros."""
    length = _length_at(raw, offset)
    end = offset + _RECORD_HEADER.size + (length or 0)
    if end > len(raw):
        return True
    # To the end of its last sector: where what follows there was written, the record's part of it was too.
    end = min(-(-end // _SECTOR) * _SECTOR, len(raw))
    cuts = [offset, *range((offset // _SECTOR + 1) * _SECTOR, end, _SECTOR), end]
    return any(not any(raw[start:stop]) for start, stop in pairwise(cuts))
