"""A file of named numpy arrays, memory-mapped: what partition offsets, indexes and deletions are kept in.

    magic (8 bytes), length of the header (4), checksum of the header (4), header (JSON), arrays, aligned to 64 bytes

The header names each array with its type, its place and its checksum. Opening checks the header, that the file is
as long as the header says, and the arrays it is told to; `verify_array_file` reads them all.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from xxhash import xxh3_64_hexdigest

from remuda.errors import StorageError
from remuda.storage.checksum import checksum_of, no_pause

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

MAGIC = b"REMUDAA1"
"""The last character is the version of the format."""

_PREFIX = struct.Struct("<8sII")
_ALIGNMENT = 64


class _Array(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    count: int
    offset: int
    checksum: str


class _Header(msgspec.Struct, frozen=True):
    arrays: list[_Array]


def write_array_file(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes and fsyncs, or leaves nothing behind.

    The offsets stand in the header whose length they depend on, so they count from its end.
    """
    entries, offset = [], 0
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        checksum = xxh3_64_hexdigest(memoryview(array).cast("B")) if array.size else ""
        entries.append(_Array(name, array.dtype.str, array.size, offset, checksum))
        offset = _aligned(offset + array.nbytes)
    header = msgspec.json.encode(_Header(entries))
    body = _aligned(_PREFIX.size + len(header))
    try:
        with path.open("wb") as file:
            file.write(_PREFIX.pack(MAGIC, len(header), zlib.crc32(header)) + header)
            for entry, array in zip(entries, contiguous.values(), strict=True):
                file.seek(body + entry.offset)
                file.write(memoryview(array).cast("B") if array.size else b"")
            file.truncate(body + offset)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):  # The next opening of the folder removes it.
            path.unlink(missing_ok=True)
        raise StorageError(f"the file cannot be written: {error.strerror}", path) from error


def open_array_file(path: Path, checked: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Memory-maps the file and gives its arrays by name.

    Those in `checked`, which should be small, are compared with their checksums.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _PREFIX.size:
            raise StorageError("the file is cut off", path, size)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    magic, length, checksum = _PREFIX.unpack_from(mapped, 0)
    if magic != MAGIC:
        raise StorageError(f"not an array file of format {MAGIC.decode()}", path, 0)
    raw = mapped[_PREFIX.size : _PREFIX.size + length]
    if zlib.crc32(raw) != checksum:
        raise StorageError("the header is damaged", path, _PREFIX.size)
    try:
        header = msgspec.json.decode(raw, type=_Header)
    except msgspec.DecodeError as error:
        raise StorageError(f"the header cannot be read: {error}", path, _PREFIX.size) from error
    body = _aligned(_PREFIX.size + length)
    arrays = {}
    for entry in header.arrays:
        dtype = np.dtype(entry.dtype)
        if body + entry.offset + entry.count * dtype.itemsize > size:
            raise StorageError(f"the array {entry.name} is cut off", path, size)
        array = arrays[entry.name] = np.frombuffer(mapped, dtype, entry.count, body + entry.offset)
        if entry.name in checked and array.size and xxh3_64_hexdigest(memoryview(array).cast("B")) != entry.checksum:
            raise _damaged(path, entry, body)
    return arrays


def verify_array_file(path: Path, pause: Callable[[], None] = no_pause) -> None:
    """Raises where any byte of any array differs from what was written."""
    open_array_file(path)
    with path.open("rb") as file:
        _, length, _ = _PREFIX.unpack(file.read(_PREFIX.size))
        header = msgspec.json.decode(file.read(length), type=_Header)
        body = _aligned(_PREFIX.size + length)
        for entry in header.arrays:
            size = entry.count * np.dtype(entry.dtype).itemsize
            if size and checksum_of(file, body + entry.offset, size, pause) != entry.checksum:
                raise _damaged(path, entry, body)


def _damaged(path: Path, entry: _Array, body: int) -> StorageError:
    return StorageError(f"the array {entry.name} is damaged", path, body + entry.offset)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
