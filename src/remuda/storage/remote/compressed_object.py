"""Objects that hold a file compressed by the chunk, so that any range of the file can be read.

    chunk, chunk, ...      64 KiB of the file each, compressed, or as it is where that is not longer
    lengths                how many bytes each chunk has in the object: 4 bytes each
    trailer                the size of the file (8 bytes), how many chunks (4), the codec (4), `REMUDAZ1`

An object without the trailer is the file as it is: older versions have uploaded such, and `compression = 'none'` does.
A file on this machine is never compressed: lookups read it where it is mapped.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import damage_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

CHUNK_BYTES = 1 << 16
"""As much as is fetched at least."""
_CODECS = ("zstd", "lz4")
_TRAILER = struct.Struct("<QII8s")
_MAGIC = b"REMUDAZ1"
_TAIL_BYTES = 1 << 16
"""What is read of an object first: the trailer, the lengths of ten thousand chunks, and often the end of the file."""


def compressed_pieces(source: BinaryIO, codec: str) -> Iterator[bytes]:
    """Yield the object of a file, piece by piece."""
    lengths: list[int] = []
    size = 0
    while chunk := source.read(CHUNK_BYTES):
        packed = pa.compress(chunk, codec=codec, asbytes=True)
        shorter = packed if len(packed) < len(chunk) else chunk
        lengths.append(len(shorter))
        size += len(chunk)
        yield shorter
    yield np.array(lengths, "<u4").tobytes()
    yield _TRAILER.pack(size, len(lengths), _CODECS.index(codec), _MAGIC)


class ObjectFile:
    """Reads ranges of the file that an object holds, compressed or not. `shown` is how errors call it."""

    __slots__ = ("_codec", "_file", "_offsets", "_shown", "_size", "_tail", "_tail_start")

    def __init__(self, file: Any, shown: str) -> None:
        self._file = file
        self._shown = shown
        self._size = int(file.size())
        self._tail_start = max(0, self._size - _TAIL_BYTES)
        self._tail = memoryview(file.read_at(self._size - self._tail_start, self._tail_start))
        self._codec: str | None = None
        self._offsets = np.zeros(1, np.int64)
        if self._size >= _TRAILER.size:
            self._read_trailer()

    def _read_trailer(self) -> None:
        """Find where the chunks lie, if this is a compressed object."""
        size, chunks, codec, magic = _TRAILER.unpack(self._tail[-_TRAILER.size :])
        if magic != _MAGIC:
            return
        end = self._size - _TRAILER.size
        start = end - 4 * chunks
        if codec >= len(_CODECS) or start < 0 or chunks != -(-size // CHUNK_BYTES):
            raise self._damaged()
        lengths = np.frombuffer(self._raw(start, end), "<u4")
        self._offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if self._offsets[-1] != start or (lengths > CHUNK_BYTES).any():
            raise self._damaged()
        self._codec, self._size = _CODECS[codec], size

    def size(self) -> int:
        """Return how many bytes the file has."""
        return self._size

    def read(self, start: int, stop: int) -> memoryview:
        """Return the bytes of the file from `start` up to `stop`; `OSError` where fewer have come."""
        if self._codec is None:
            return self._raw(start, stop)
        first, end = start // CHUNK_BYTES, -(-stop // CHUNK_BYTES)
        offsets = self._offsets[first : end + 1].tolist()
        raw = self._raw(offsets[0], offsets[-1])
        chunks = [
            self._unpacked(raw[begin - offsets[0] : finish - offsets[0]], number)
            for number, (begin, finish) in enumerate(itertools.pairwise(offsets), first)
        ]
        whole = chunks[0] if len(chunks) == 1 else memoryview(b"".join(chunks))
        return whole[start - first * CHUNK_BYTES : stop - first * CHUNK_BYTES]

    def _unpacked(self, packed: memoryview, number: int) -> memoryview:
        length = min(CHUNK_BYTES, self._size - number * CHUNK_BYTES)
        if len(packed) == length:
            return packed
        try:
            return memoryview(pa.decompress(packed, decompressed_size=length, codec=self._codec, asbytes=True))
        except (OSError, pa.ArrowException) as error:
            raise self._damaged() from error

    def _raw(self, start: int, stop: int) -> memoryview:
        """Return bytes of the object."""
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : stop - self._tail_start]
        found = memoryview(self._file.read_at(stop - start, start))
        if len(found) != stop - start:
            raise OSError(f"{len(found)} of {stop - start} bytes have come")
        return found

    def _damaged(self) -> Exception:
        return damage_error("the file is not as it was written", self._shown)
