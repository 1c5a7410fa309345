"""Reads log files of format 1, which earlier versions of Remuda wrote. Nothing is written in this format any more.

    file    magic (8 bytes), sequence number of the first record (8), checksum of the two (4)
    record  mark (4 bytes), length (4), safe (8), checksum of these three (4), checksum of the payload (4), payload

Records are numbered by their order. `safe` is the written length, which is the synced length only where every write was
synced, so a record that cannot be read is taken for torn only if it was never written in full: the file ends inside it,
or a sector of it is all zeros.
"""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

MAGIC = b"REMUDAW1"

_FILE_HEADER = struct.Struct("<8sQI")
_FILE_HEADER_CHECKED = 16
_MARK = b"\xf5RW\xf6"
_RECORD_HEADER = struct.Struct("<4sIQII")
_RECORD_HEADER_CHECKED = 16
_SECTOR = 512
"""What a disk writes wholly or not at all."""


def first_sequence_of(raw: bytes) -> int | None:
    """Return the number of the first record; None where the header is cut off or damaged."""
    if len(raw) < _FILE_HEADER.size:
        return None
    magic, first_sequence, checksum = _FILE_HEADER.unpack_from(raw, 0)
    if magic != MAGIC or checksum != zlib.crc32(raw[:_FILE_HEADER_CHECKED]):
        return None
    return int(first_sequence)


def payloads_of(raw: bytes) -> tuple[list[bytes], int]:
    """Return the payloads up to the last whole record, and where that ends."""
    payloads: list[bytes] = []
    offset = _FILE_HEADER.size
    while (payload := _payload_at(raw, offset)) is not None:
        payloads.append(payload)
        offset += _RECORD_HEADER.size + len(payload)
    return payloads, offset


def ends_torn(raw: bytes, offset: int) -> bool:
    """Tell whether what follows the last whole record is what a crash leaves, and not damage."""
    return offset >= len(raw) or (not _was_synced(raw, offset) and _is_torn(raw, offset))


def has_record(raw: bytes) -> bool:
    """Tell whether any record can be read, whatever the header of the file looks like."""
    found = raw.find(_MARK)
    while found >= 0 and _payload_at(raw, found) is None:
        found = raw.find(_MARK, found + 1)
    return found >= 0


def _payload_at(raw: bytes, offset: int) -> bytes | None:
    length = _length_at(raw, offset)
    if length is None:
        return None
    start = offset + _RECORD_HEADER.size
    payload = raw[start : start + length]
    checksum = _RECORD_HEADER.unpack_from(raw, offset)[4]
    return payload if len(payload) == length and zlib.crc32(payload) == checksum else None


def _length_at(raw: bytes, offset: int) -> int | None:
    """Return the length of the payload of the record here; None where the record's header is not whole."""
    if offset + _RECORD_HEADER.size > len(raw):
        return None
    mark, length, _, checksum, _ = _RECORD_HEADER.unpack_from(raw, offset)
    whole = mark == _MARK and zlib.crc32(raw[offset : offset + _RECORD_HEADER_CHECKED]) == checksum
    return int(length) if whole else None


def _was_synced(raw: bytes, offset: int) -> bool:
    """Tell whether a whole record further on says that the file was safe beyond `offset` when it was written."""
    found = raw.find(_MARK, offset + 1)
    while found >= 0:
        if _payload_at(raw, found) is not None and _RECORD_HEADER.unpack_from(raw, found)[2] > offset:
            return True
        found = raw.find(_MARK, found + 1)
    return False


def _is_torn(raw: bytes, offset: int) -> bool:
    """Tell whether the record here was never written in full: the file ends inside it, or a sector of it is zero."""
    length = _length_at(raw, offset)
    end = offset + _RECORD_HEADER.size + (length or 0)
    if end > len(raw):
        return True
    # To the end of its last sector: where what follows there was written, the record's part of it was too.
    end = min(-(-end // _SECTOR) * _SECTOR, len(raw))
    cuts = [offset, *range((offset // _SECTOR + 1) * _SECTOR, end, _SECTOR), end]
    return any(not any(raw[start:stop]) for start, stop in pairwise(cuts))
