"""A file of named numpy arrays, memory-mapped: what partition offsets, indexes and deletions are kept in.

    magic (8 bytes), length of the header (4), checksum of the header (4), header (JSON), arrays, aligned to 64 bytes

The header names each array with its type, its place and its checksum. Behind the arrays stand the checksums of the
blocks that they lie in (`checksum.BLOCK_BYTES`, counted from the first array); files of earlier versions have none.
Opening checks the header, that the file is as long as the header says, and the arrays it is told to;
`array_file_damages` reads them all.
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

from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.store_files import create_file, map_file, open_for_reading, remove_file
from remuda.storage.segment.block_guard import BlockGuard
from remuda.storage.segment.checksum import BlockDigest, checksum_of, no_pause

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from remuda.storage.segment.block_guard import BlockSource

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

    @property
    def size(self) -> int:
        """Return how many bytes it has; 0 where the type makes no sense."""
        return self.count * np.dtype(self.dtype).itemsize if self.dtype in _DTYPES else 0


class _Header(msgspec.Struct, frozen=True, omit_defaults=True):
    arrays: list[_Array]
    blocks: _Array | None = None
    """The checksums of all blocks before it."""


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """An open file. `guard` verifies its blocks, where it has checksums of them."""

    arrays: Mapping[str, np.ndarray]
    guard: BlockGuard | None


def write_array_file(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes and fsyncs, or leaves nothing behind.

    The offsets stand in the header whose length they depend on, so they count from its end.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    entries: list[_Array] = []
    offset, digest = 0, BlockDigest()
    for name, array in contiguous.items():
        entries.append(_entry(name, array, offset))
        digest.update(_bytes_of(array))
        offset = _aligned(offset + array.nbytes)
        digest.update(bytes(offset - entries[-1].offset - array.nbytes))
    checksums = digest.blocks()
    blocks = _entry("blocks", checksums, offset)
    header = msgspec.json.encode(_Header(entries, blocks))
    body = _aligned(_PREFIX.size + len(header))
    try:
        with create_file(path, levels=_LEVELS) as file:
            file.write(_PREFIX.pack(MAGIC, len(header), zlib.crc32(header)) + header)
            for entry, array in zip((*entries, blocks), (*contiguous.values(), checksums), strict=True):
                file.seek(body + entry.offset)
                file.write(_bytes_of(array))
            file.truncate(body + _aligned(offset + checksums.nbytes))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):  # The next opening of the folder removes it.
            remove_file(path, levels=_LEVELS)
        raise StorageError(f"the file cannot be written: {error.strerror}", path) from error


def open_array_file(path: Path, checked: Collection[str] = (), source: BlockSource | None = None) -> ArrayFile:
    """Map the file into memory.

    The arrays in `checked`, which should be small, are compared with their checksums. With a `source` the file is
    mapped there, and only what is read here is fetched.
    """
    mapped = _mapped(path) if source is None else _mapped_holes(source)
    shown = path if source is None else source.shown
    header, body = _read_header(shown, mapped, source)
    if source is not None:
        source.fetch(_needed_ranges(header, body, checked, len(mapped)))
    arrays = {}
    for entry in header.arrays:
        arrays[entry.name] = _open_array(shown, mapped, body, entry)
        if entry.name in checked or (source is not None and header.blocks is None):
            _check_array(shown, arrays[entry.name], entry, body)
    if header.blocks is None:
        return ArrayFile(arrays, None)
    checksums = _open_array(shown, mapped, body, header.blocks)
    guarded = mapped[: body + header.blocks.offset]
    return ArrayFile(arrays, BlockGuard(shown, guarded, body, checksums, header.blocks.checksum, source))


def _needed_ranges(header: _Header, body: int, checked: Collection[str], size: int) -> list[tuple[int, int]]:
    """Return what is read before any guard: all of a file that has no checksums of blocks."""
    if header.blocks is None:
        return [(0, size)]
    needed = [entry for entry in header.arrays if entry.name in checked] + [header.blocks]
    ranges = [(body + each.offset, body + each.offset + each.size) for each in needed]
    return [(max(start, 0), min(stop, size)) for start, stop in ranges]


def _read_header(path: Path | str, mapped: memoryview, source: BlockSource | None = None) -> tuple[_Header, int]:
    """Return the header, and where the arrays begin."""
    if source is not None:
        source.fetch([(0, _PREFIX.size)])
    magic, length, checksum = _PREFIX.unpack_from(mapped, 0)
    if magic != MAGIC:
        raise damage_error(f"not an array file of format {MAGIC.decode()}", path, 0)
    if source is not None:
        source.fetch([(0, min(_PREFIX.size + length, len(mapped)))])
    raw = bytes(mapped[_PREFIX.size : _PREFIX.size + length])
    if zlib.crc32(raw) != checksum:
        raise damage_error("the header is damaged", path, _PREFIX.size)
    try:
        header = msgspec.json.decode(raw, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damage_error(f"the header cannot be read: {error}", path, _PREFIX.size) from error
    return header, _aligned(_PREFIX.size + length)


def _open_array(path: Path | str, mapped: memoryview, body: int, entry: _Array) -> np.ndarray:
    if entry.dtype not in _DTYPES or entry.count < 0 or entry.offset < 0:
        raise damage_error(f"the header describes an impossible array {entry.name[:100]!r}", path, _PREFIX.size)
    dtype = np.dtype(entry.dtype)
    if body + entry.offset + entry.count * dtype.itemsize > len(mapped):
        raise damage_error(f"the array {entry.name} is cut off", path, len(mapped))
    return np.frombuffer(mapped, dtype, entry.count, body + entry.offset)


def _check_array(path: Path | str, array: np.ndarray, entry: _Array, body: int) -> None:
    if array.size and xxh3_64_hexdigest(_bytes_of(array)) != entry.checksum:
        raise _damaged(path, entry, body)


def array_file_damages(path: Path, pause: Callable[[], None] = no_pause) -> Iterator[StorageError]:
    """Yield where the file differs from what was written. One that cannot be opened has one damage."""
    try:
        opened = open_array_file(path)
        header, body = _read_header(path, _mapped(path))
    except StorageError as error:
        yield error
        return
    with open_for_reading(path, levels=_LEVELS) as file:
        found = [
            _damaged(path, entry, body)
            for entry, array in zip(header.arrays, opened.arrays.values(), strict=True)
            if array.size and checksum_of(file, body + entry.offset, array.nbytes, pause) != entry.checksum
        ]
        if opened.guard is not None:
            try:
                opened.guard.checksums()
            except StorageError as error:
                found.append(error)
            else:
                found = (opened.guard.damages(file) or found) if found else found
    yield from found


def verify_array_file(path: Path) -> None:
    """Raises where any byte differs from what was written."""
    for damage in array_file_damages(path):
        raise damage


def _mapped(path: Path) -> memoryview:
    try:
        mapped = map_file(path, levels=_LEVELS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"the file cannot be opened: {error.strerror}", path) from error
    return _with_prefix(mapped, path)


def _mapped_holes(source: BlockSource) -> memoryview:
    return _with_prefix(map_file(source.path, levels=_LEVELS), source.shown)


def _with_prefix(mapped: memoryview, path: Path | str) -> memoryview:
    if len(mapped) < _PREFIX.size:
        raise damage_error("the file is cut off", path, len(mapped))
    return mapped


def _entry(name: str, array: np.ndarray, offset: int) -> _Array:
    checksum = xxh3_64_hexdigest(_bytes_of(array)) if array.size else ""
    return _Array(name, array.dtype.str, array.size, offset, checksum)


def _bytes_of(array: np.ndarray) -> memoryview | bytes:
    return memoryview(array).cast("B") if array.size else b""


def _damaged(path: Path | str, entry: _Array, body: int) -> StorageError:
    return damage_error(f"the array {entry.name} is damaged", path, body + entry.offset)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
