"""A file of named numpy arrays, memory-mapped: what partition offsets, indexes and deletions are kept in.

    magic (8 bytes), length of the header (4), checksum of the header (4), header (JSON), arrays, aligned to 64 bytes

The header names each array with its type, its place and its checksum. Opening checks the header, that the file is
as long as the header says, and the arrays it is told to; `verify_array_file` reads them all.
"""

from __future__ import annotations

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
from remuda.storage.store_files import create_file, map_file, open_for_reading, remove_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

MAGIC = b"REMUDAA1"
"""The last character is the version of the format."""

_PREFIX = struct.Struct("<8sII")
_ALIGNMENT = 64
_DTYPES = frozenset(f"<{kind}{size}" for kind in "iuf" for size in (2, 4, 8)) | {"|i1", "|u1", "|b1"}
_LEVELS = 2
"""Array files lie in the folder of a map, or of a delivery."""


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
        with create_file(path, levels=_LEVELS) as file:
            file.write(_PREFIX.pack(MAGIC, len(header), zlib.crc32(header)) + header)
            for entry, array in zip(entries, contiguous.values(), strict=True):
                file.seek(body + entry.offset)
                file.write(memoryview(array).cast("B") if array.size else b"")
            file.truncate(body + offset)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):  # The next opening of the folder removes it.
            remove_file(path, levels=_LEVELS)
        raise StorageError(f"the file cannot be written: {error.strerror}", path) from error


def open_array_file(path: Path, checked: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Memory-maps the file and gives its arrays by name.

    Those in `checked`, which should be small, are compared with their checksums.
    """
    mapped = _mapped(path)
    size = len(mapped)
    magic, length, checksum = _PREFIX.unpack_from(mapped, 0)
    if magic != MAGIC:
        raise StorageError(f"not an array file of format {MAGIC.decode()}", path, 0)
    raw = bytes(mapped[_PREFIX.size : _PREFIX.size + length])
    if zlib.crc32(raw) != checksum:
        raise StorageError("the header is damaged", path, _PREFIX.size)
    try:
        header = msgspec.json.decode(raw, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"the header cannot be read: {error}", path, _PREFIX.size) from error
    body = _aligned(_PREFIX.size + length)
    arrays = {}
    for entry in header.arrays:
        if entry.dtype not in _DTYPES or entry.count < 0 or entry.offset < 0:
            raise StorageError(f"the header describes an impossible array {entry.name[:100]!r}", path, _PREFIX.size)
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
    with open_for_reading(path, levels=_LEVELS) as file:
        _, length, _ = _PREFIX.unpack(file.read(_PREFIX.size))
        header = msgspec.json.decode(file.read(length), type=_Header)
        body = _aligned(_PREFIX.size + length)
        for entry in header.arrays:
            size = entry.count * np.dtype(entry.dtype).itemsize
            if size and checksum_of(file, body + entry.offset, size, pause) != entry.checksum:
                raise _damaged(path, entry, body)


def _mapped(path: Path) -> memoryview:
    try:
        mapped = map_file(path, levels=_LEVELS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"the file cannot be opened: {error.strerror}", path) from error
    if len(mapped) < _PREFIX.size:
        raise StorageError("the file is cut off", path, len(mapped))
    return mapped


def _damaged(path: Path, entry: _Array, body: int) -> StorageError:
    return StorageError(f"the array {entry.name} is damaged", path, body + entry.offset)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
