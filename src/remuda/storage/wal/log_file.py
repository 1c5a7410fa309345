"""The files of the write-ahead log: their format, and what can be read of them after any crash.

    file    magic (8 bytes), lower bound of its sequence numbers (8), synced length of the file before (8), salt (4),
            whether every write is synced (4), checksum of these (4)
    record  mark (4 bytes), length (4), synced (8), sequence number (8), checksum of these with the salt (4),
            checksum of the payload (4), payload

`synced` is how much of the file had been *synced* when the record was appended. Behind the last record there may be
zeros: room that was made for more.

Proven is what a later record, the header of the next file or the manifest says to have been synced. Recovery treats the
two parts of a file differently:

- damage below the proven length is an error that names file and offset: what was durable is no longer there;
- above it lies the tail, which a power failure may have dropped, reordered, torn or filled with zeros, in any mixture.
  It ends at the first record that cannot be read. Whatever follows is cut off, with a warning that counts it: these
  statements were not durable, and a later one is not kept without those before it.

Where every write is synced before it is acknowledged, the tail is the last group of writes, and more is known of it: it
was written into zeros, or to the end of the file, so that a record which is not there in full lacks a whole sector. One
that has all its sectors and cannot be read was damaged later, perhaps after it was acknowledged: an error too.

The sequence number and the salt keep bytes of other files, or of other places, from passing for records. Files of
format 1 are read by `write_ahead_file_1` and never appended to.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from dataclasses import field
from errno import ENOENT, EOPNOTSUPP
from itertools import pairwise
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.store_files import list_files, open_for_reading, read_file
from remuda.storage.wal import log_file_format_1 as format_1

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEVELS = 1
_LOG_NAME = re.compile(r"[0-9]{8,}\.log")
MAGIC = b"REMUDAW2"
"""The last character is the version of the format."""

HEADER_BYTES = 36
_FAMILY = MAGIC[:-1]
_file_start = struct.Struct("<8sQQII")
_MARK = b"\xf5RW\xf6"
_record_start = struct.Struct("<4sIQQ")
_checksums = struct.Struct("<II")
_RECORD_START_BYTES = _record_start.size
RECORD_HEADER_BYTES = _RECORD_START_BYTES + _checksums.size
_READING_TRIES = 5
_SECTOR = 512
"""What a disk writes wholly or not at all."""
_SYNCED_WRITE: int | None = getattr(os, "RWF_DSYNC", None)
"""The flag of a write that returns when it is durable: of Linux, and not of all its file systems."""

_pack_start, _pack_checksums, _checksum = _record_start.pack, _checksums.pack, zlib.crc32


@dataclass(frozen=True, slots=True)
class DroppedTail:
    """What recovery cut off: so many bytes from `offset` on, in which so many statements can be recognised."""

    path: Path
    offset: int
    size: int
    statements: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log as found: its records up to the last whole one, which ends at `length`.

    `proven` is the length that is known to have been synced, `tail` what lies between it and `length`.
    """

    number: int
    first_sequence: int
    records: list[tuple[int, bytes]]
    length: int
    proven: int
    tail: bytes = field(repr=False)
    salt: int | None
    """None in a file of format 1."""
    syncs: bool
    """Whether every write to it was synced."""
    dropped: DroppedTail | None

    @property
    def last_sequence(self) -> int:
        """Return the number of the last record; one below the first where there is none."""
        return self.records[-1][0] if self.records else self.first_sequence - 1


# Writing


def file_header(first_sequence: int, previous_length: int, salt: int, *, syncs: bool) -> bytes:
    start = _file_start.pack(MAGIC, first_sequence, previous_length, salt, syncs)
    return start + zlib.crc32(start).to_bytes(4, "little")


def record_header(payload: bytes, synced: int, sequence: int, salt: int) -> bytes:
    start = _pack_start(_MARK, len(payload), synced, sequence)
    return start + _pack_checksums(_checksum(start, salt), _checksum(payload))


def write_at(descriptor: int, chunk: bytes, offset: int, *, sync: bool) -> bool:
    """Writes all of the chunk, and says whether it is synced as well: where that is asked for, and can be done at once.

    A sync after it does the same, but after each call a thread has to get the interpreter's lock back, for which
    writers that go on meanwhile compete with it, while the disk has nothing to do.
    """
    if sync and _SYNCED_WRITE is not None:
        try:
            _write(descriptor, chunk, offset, _SYNCED_WRITE)
        except OSError as error:
            if error.errno != EOPNOTSUPP:
                raise
        else:
            return True
    _write(descriptor, chunk, offset, 0)
    return False


def _write(descriptor: int, chunk: bytes, offset: int, flags: int) -> None:
    left = memoryview(chunk)
    while left:
        written = os.pwritev(descriptor, (left,), offset, flags)
        offset += written
        left = left[written:]


def sync_data(descriptor: int) -> None:
    """Makes a file's data durable, and of its metadata what is needed to read them."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def settle_tail(descriptor: int, file: LogFile) -> None:
    """Makes a file durable just as it was read.

    The tail is written again: after a sync that failed, the system takes its pages for clean and would never write
    them, so that a later sync would vouch for bytes that are in memory only.
    """
    if file.tail:
        _write(descriptor, file.tail, file.proven, 0)
    os.ftruncate(descriptor, file.length)
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Reading


def log_path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.log"


def log_numbers(folder: Path) -> list[int]:
    return sorted(int(name.removesuffix(".log")) for name in list_files(folder, levels=LEVELS, form=_LOG_NAME))


def read_log(folder: Path, first: int, known_safe: tuple[int, int]) -> Iterator[LogFile]:
    """Yield the files from number `first` on, but for those at the end that no record was ever written to.

    `known_safe` is a file's number and a length of it that a manifest has recorded. Only the last file may have a
    tail: a new one is begun when the one before is synced.
    """
    numbers = [number for number in log_numbers(folder) if number >= first]
    if known_safe[0] >= first and known_safe[0] not in numbers:
        # For a reader this means that the writer is ahead of it.
        raise FileNotFoundError(ENOENT, "missing", str(log_path(folder, known_safe[0])))
    least = 0
    while numbers and numbers[-1] > known_safe[0] and holds_nothing(log_path(folder, numbers[-1])):
        # It was begun when the one before was synced up to there, or it is of a checkpoint that failed and went on in
        # the one before: then that one is longer now.
        least = _previous_length(log_path(folder, numbers.pop()))
    found = [_read_header(log_path(folder, number)) for number in numbers]
    expected = None
    for ordinal, number in enumerate(numbers):
        path = log_path(folder, number)
        if ordinal and number != numbers[ordinal - 1] + 1:
            raise FileNotFoundError(ENOENT, "missing", str(log_path(folder, numbers[ordinal - 1] + 1)))
        proven = max(known_safe[1] if known_safe[0] == number else 0, least if ordinal + 1 == len(numbers) else 0)
        following = found[ordinal + 1] if ordinal + 1 < len(found) else None
        file = _read_file(path, number, proven, following)
        if expected is not None and file.first_sequence < expected:
            raise damage_error(f"the write-ahead log has a gap before record {file.first_sequence}", path, 0)
        expected = file.last_sequence + 1
        yield file


def holds_nothing(path: Path) -> bool:
    """Tell whether a log file was begun, perhaps not even its header, and no record was ever written to it."""
    raw = read_file(path, levels=LEVELS)
    if raw.startswith(_FAMILY) and raw[len(_FAMILY) : len(MAGIC)] not in (b"", b"\0", b"1", b"2"):
        return False  # A later format: there may be anything in it.
    if format_1.first_sequence_of(raw) is not None:
        return format_1.payloads_of(raw)[1] >= len(raw)
    header = _header_of(raw)
    if header is not None and header.salt is not None:
        return not any(_heads_in(raw, HEADER_BYTES, header.salt))
    # With the header its salt is lost: whatever looks like the beginning of a record may be one.
    return raw.find(_MARK) < 0 and not format_1.has_record(raw)


def _previous_length(path: Path) -> int:
    header = _header_of(read_file(path, levels=LEVELS))
    return 0 if header is None or header.previous_length is None else header.previous_length


@dataclass(frozen=True, slots=True)
class _Header:
    """Holds the header of a log file.

    `previous_length` and `salt` are None in a file of format 1.
    """

    first_sequence: int
    previous_length: int | None = None
    salt: int | None = None
    syncs: bool = False


def _header_of(raw: bytes) -> _Header | None:
    if len(raw) < HEADER_BYTES:
        return None
    magic, first_sequence, previous_length, salt, syncs = _file_start.unpack_from(raw, 0)
    checksum = int.from_bytes(raw[_file_start.size : HEADER_BYTES], "little")
    if magic != MAGIC or checksum != zlib.crc32(raw[: _file_start.size]):
        return None
    return _Header(first_sequence, previous_length, salt, bool(syncs))


def _read_header(path: Path) -> _Header:
    with open_for_reading(path, levels=LEVELS) as file:
        return _parse_header(path, file.read(HEADER_BYTES))


def _parse_header(path: Path, raw: bytes) -> _Header:
    first_sequence = format_1.first_sequence_of(raw)
    header = _header_of(raw) if first_sequence is None else _Header(first_sequence)
    if header is not None:
        return header
    if len(raw) < HEADER_BYTES:
        raise damage_error("the write-ahead log is damaged: the file is cut off", path, len(raw))
    if raw[: len(MAGIC)] not in (MAGIC, format_1.MAGIC):
        raise damage_error(f"not a write-ahead log of format {format_1.MAGIC.decode()} or {MAGIC.decode()}", path, 0)
    raise damage_error("the header of the write-ahead log is damaged", path, len(MAGIC))


def _read_file(path: Path, number: int, proven: int, following: _Header | None) -> LogFile:
    for tries_left in reversed(range(_READING_TRIES)):
        raw = read_file(path, levels=LEVELS)
        try:
            return _parse_file(path, number, raw, proven, following)
        except StorageError:
            # A reader may have met a record that was just being written; damage stays as it is.
            if not tries_left or read_file(path, levels=LEVELS) == raw:
                raise
    raise AssertionError("the last try returns or raises")


def _parse_file(path: Path, number: int, raw: bytes, proven: int, following: _Header | None) -> LogFile:
    header = _parse_header(path, raw)
    if following is not None and following.previous_length is not None:
        proven = following.previous_length
        raw = raw[:proven]
    if header.salt is None:
        return _parse_format_1(path, number, raw, proven, is_last=following is None)
    records, end, claimed = _records_of(raw, header)
    dropped = None
    damaged = False
    if raw.count(0, end) < len(raw) - end:
        claimed = max(claimed, _claim_beyond(raw, end, header.salt))
        damaged = header.syncs and not _lacks_a_sector(raw, end, header.salt)
        size = len(raw.rstrip(b"\0")) - end
        dropped = DroppedTail(path, end, size, sum(_heads_in(raw, end, header.salt)))
    proven = max(proven, claimed, HEADER_BYTES)
    if damaged or end < proven:
        raise damage_error("a record of the write-ahead log is damaged", path, end)
    tail = raw[proven:end]
    return LogFile(number, header.first_sequence, records, end, proven, tail, header.salt, header.syncs, dropped)


def _parse_format_1(path: Path, number: int, raw: bytes, proven: int, *, is_last: bool) -> LogFile:
    payloads, end = format_1.payloads_of(raw)
    whole = end >= len(raw)
    if end < proven or not (whole or (is_last and format_1.ends_torn(raw, end))):
        raise damage_error("a record of the write-ahead log is damaged", path, end)
    first_sequence = format_1.first_sequence_of(raw) or 0
    records = list(enumerate(payloads, first_sequence))
    return LogFile(number, first_sequence, records, end, proven, raw[proven:end], None, syncs=False, dropped=None)


def _records_of(raw: bytes, header: _Header) -> tuple[list[tuple[int, bytes]], int, int]:
    """Return the records, where the last of them ends, and the synced length they tell."""
    assert header.salt is not None, "format 1 has its own reader"
    records: list[tuple[int, bytes]] = []
    last, claimed = header.first_sequence - 1, 0
    end = HEADER_BYTES
    while (found := _record_at(raw, end, header.salt)) is not None:
        synced, sequence, payload = found
        if sequence <= last:
            break
        records.append((sequence, payload))
        last, claimed = sequence, max(claimed, synced)
        end += RECORD_HEADER_BYTES + len(payload)
    return records, end, claimed


def _record_at(raw: bytes, offset: int, salt: int) -> tuple[int, int, bytes] | None:
    """Return the synced length it tells, its sequence number and its payload; None where there is no whole record."""
    head = _head_at(raw, offset, salt)
    if head is None:
        return None
    length, synced, sequence = head
    start = offset + RECORD_HEADER_BYTES
    payload = raw[start : start + length]
    checksum = int.from_bytes(raw[start - 4 : start], "little")
    return (synced, sequence, payload) if len(payload) == length and zlib.crc32(payload) == checksum else None


def _head_at(raw: bytes, offset: int, salt: int) -> tuple[int, int, int] | None:
    """Return length, synced length and sequence number of the record here; None where its header is not whole."""
    if offset + RECORD_HEADER_BYTES > len(raw):
        return None
    mark, length, synced, sequence = _record_start.unpack_from(raw, offset)
    end = offset + _RECORD_START_BYTES
    checksum = int.from_bytes(raw[end : end + 4], "little")
    if mark != _MARK or zlib.crc32(raw[offset:end], salt) != checksum:
        return None
    return length, synced, sequence


def _claim_beyond(raw: bytes, start: int, salt: int) -> int:
    """Return the greatest synced length that a whole record from `start` on tells."""
    claimed, found = 0, raw.find(_MARK, start)
    while found >= 0:
        record = _record_at(raw, found, salt)
        if record is not None:
            claimed = max(claimed, record[0])
        found = raw.find(_MARK, found + 1)
    return claimed


def _heads_in(raw: bytes, start: int, salt: int) -> Iterator[bool]:
    """Yield true for each head of a record that can be recognised from `start` on."""
    found = raw.find(_MARK, start)
    while found >= 0:
        if _head_at(raw, found, salt) is not None:
            yield True
        found = raw.find(_MARK, found + 1)


def _lacks_a_sector(raw: bytes, offset: int, salt: int) -> bool:
    """Tell whether the record here was never written in full: the file ends inside it, or a sector of it is zero."""
    head = _head_at(raw, offset, salt)
    end = offset + RECORD_HEADER_BYTES + (0 if head is None else head[0])
    if end > len(raw):
        return True
    # To the end of its last sector: where what follows there was written, the record's part of it was too.
    end = min(-(-end // _SECTOR) * _SECTOR, len(raw))
    cuts = [offset, *range((offset // _SECTOR + 1) * _SECTOR, end, _SECTOR), end]
    return any(not any(raw[start:stop]) for start, stop in pairwise(cuts))
