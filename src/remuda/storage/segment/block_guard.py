"""Verifies blocks of mapped files at their first touch, as long as the files are not verified as a whole.

Values are read straight from mapped memory, and a lookup of 3 µs has no room to ask whether it may. So it is not asked:
until a segment is proven its readers are made over *guarded* arrays, which compare each block with its checksum before
the first value of it is handed out; from then on over the arrays themselves, and everything made before is made anew
(`Segment.use_proven`). A guarded array has the face of a numpy array, `view_of` gives that of a memoryview.

Memory is found by its address: what lies in a mapped file can be damaged, what lies elsewhere was copied or computed
from bytes that were verified.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

from remuda.errors import StorageError, damage_error
from remuda.storage.folder.store_files import address_of
from remuda.storage.segment.checksum import BLOCK_BYTES, BLOCK_SHIFT, block_count, damaged_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


class BlockSource(Protocol):
    """Where the bytes of a mapped file come from that has holes: a remote file."""

    @property
    def path(self) -> Path:
        """Return what is mapped."""

    @property
    def shown(self) -> str:
        """Return how errors call the file."""

    @property
    def size(self) -> int: ...

    def fetch(self, ranges: Sequence[tuple[int, int]], /) -> None:
        """Make ranges of bytes present."""

    def repair(self, start: int, stop: int, is_sound: Callable[[memoryview], bool], /) -> bool:
        """Read a range anew and write it where it is as it should be; tell whether it was."""


class Values(Protocol):
    """What memoryviews and guarded values have in common."""

    def __getitem__(self, index: Any, /) -> Any: ...

    def __len__(self) -> int: ...


class BlockGuard:
    """Compares blocks of one mapped file with their checksums, each at most once.

    The file is guarded from `first` to the end of `mapped`. `checksum` is that of the checksums, compared when they are
    first needed, as a store is opened more often than each of its indexes is used; None where they are verified. With a
    `source` the file may have holes: what is verified is fetched before.
    """

    __slots__ = (
        "_address",
        "_checksum",
        "_checksums",
        "_expected",
        "_first",
        "_mapped",
        "_path",
        "_source",
        "verified",
    )

    def __init__(
        self,
        path: Path | str,
        mapped: memoryview,
        first: int,
        checksums: np.ndarray,
        checksum: str | None = None,
        source: BlockSource | None = None,
    ) -> None:
        self._path = path
        self._source = source
        self._mapped = mapped[first:]
        self._first = first
        self._address = address_of(mapped) + first
        self._checksums = checksums
        self._checksum = checksum
        self._expected: memoryview | None = None
        self.verified = bytearray(len(checksums))
        """A byte for each block, 1 where it is known to be as it was written."""
        if checksums.dtype != np.uint64 or len(checksums) != block_count(len(self._mapped)):
            raise self._unfit()

    def offset_of(self, address: int, size: int) -> int | None:
        """Return the distance of some memory from the first block; None where it is not guarded here."""
        offset = address - self._address
        return offset if offset >= 0 and offset + size <= len(self._mapped) else None

    def check(self, start: int, stop: int) -> None:
        """Verify the blocks of the bytes from `start` up to `stop`, counted from the first block."""
        find, end = self.verified.find, (stop - 1 >> BLOCK_SHIFT) + 1
        block = find(0, start >> BLOCK_SHIFT, end)
        if block >= 0 and self._source is not None:
            self.fetch([(block << BLOCK_SHIFT, end << BLOCK_SHIFT)])
        while block >= 0:
            self._compare(block)
            block = find(0, block + 1, end)

    def check_offsets(self, offsets: np.ndarray) -> None:
        """Verify the blocks of single bytes."""
        self.check_blocks(self._unverified(offsets))

    def check_blocks(self, blocks: Sequence[int]) -> None:
        if self._source is not None:
            self.fetch([(block << BLOCK_SHIFT, block + 1 << BLOCK_SHIFT) for block in blocks])
        for block in blocks:
            self._compare(block)

    def check_block(self, block: int) -> None:
        if self._source is not None:
            self.fetch([(block << BLOCK_SHIFT, block + 1 << BLOCK_SHIFT)])
        self._compare(block)

    def check_all(self) -> None:
        self.check(0, len(self._mapped))

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Make ranges of bytes, counted from the first block, present."""
        if self._source is not None:
            self._source.fetch(self.file_ranges(ranges))

    def file_ranges(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return where in the file the blocks lie that ranges of bytes, counted from the first block, touch."""
        first, end = self._first, self._first + len(self._mapped)
        return [
            (first + (start & -BLOCK_BYTES), min(first + (stop + BLOCK_BYTES - 1 & -BLOCK_BYTES), end))
            for start, stop in ranges
        ]

    def _unverified(self, offsets: np.ndarray) -> list[int]:
        blocks = offsets >> BLOCK_SHIFT
        found: list[int] = np.unique(blocks[np.frombuffer(self.verified, np.uint8)[blocks] == 0]).tolist()
        return found

    def _compare(self, block: int) -> None:
        expected = self._expected
        if expected is None:
            expected = memoryview(self.checksums())
        start = block << BLOCK_SHIFT
        found = self._mapped[start : start + BLOCK_BYTES]
        if xxh3_64_intdigest(found) != expected[block] and not self._repair(start, len(found), expected[block]):
            raise damaged_range(self._path, self._first + start, self._first + start + len(found))
        self.verified[block] = 1

    def _repair(self, start: int, length: int, expected: int) -> bool:
        """Read a block anew whose copy on this machine is damaged."""
        start += self._first
        return self._source is not None and self._source.repair(
            start, start + length, lambda raw: xxh3_64_intdigest(raw) == expected
        )

    def checksums(self) -> np.ndarray:
        """Return the checksums of the blocks, verified."""
        if self._expected is None:
            expected = memoryview(self._checksums)
            if self._checksum is not None and expected and _checksum(expected) != self._checksum:
                raise self._unfit()
            self._expected = expected
        return self._checksums

    def damages(self, file: BinaryIO) -> list[StorageError]:
        """Return where the file differs from the checksums of its blocks; it need not be verified at all so far."""
        ranges = damaged_ranges(file, self._first, len(self._mapped), self.checksums())
        return [damaged_range(self._path, *each) for each in ranges]

    def _unfit(self) -> StorageError:
        """Make the error for checksums that do not fit.

        Of an array file, which has the checksums behind what is guarded.
        """
        return damage_error("the checksums of the blocks are damaged", self._path, self._first + len(self._mapped))


def _checksum(values: memoryview) -> str:
    return xxh3_64_hexdigest(values.cast("B"))


def damaged_range(path: Path | str, start: int, stop: int) -> StorageError:
    return damage_error(f"the bytes from {start} to {stop - 1} are damaged", path, start)


class GuardedArray:
    """An array of numbers in a guarded file: what is read of it is an ordinary array, and was verified."""

    __slots__ = ("_array", "_guard", "_offset", "dtype", "values")

    def __init__(self, guard: BlockGuard, array: np.ndarray, offset: int) -> None:
        self._guard = guard
        self._array = array
        self._offset = offset
        self.dtype = array.dtype
        self.values = GuardedValues(guard, array, offset)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Any:
        width = self.dtype.itemsize
        if isinstance(key, slice):
            start, stop, _ = key.indices(len(self._array))
            if start < stop:
                self._guard.check(self._offset + start * width, self._offset + stop * width)
        elif isinstance(key, np.ndarray):
            self._guard.check_offsets(self._offset + key.astype(np.int64, copy=False) * width)
        else:
            at = self._offset + (key if key >= 0 else key + len(self._array)) * width
            self._guard.check(at, at + width)
        return self._array[key]

    def searchsorted(self, keys: Iterable[Any]) -> np.ndarray:
        """Find keys in order.

        `ndarray.searchsorted`, which touches what it does not hand out, by Python's bisection.
        """
        return np.array([bisect_left(self.values, each) for each in keys], np.intp)

    def view(self, dtype: Any) -> GuardedArray:
        return GuardedArray(self._guard, self._array.view(dtype), self._offset)


class GuardedValues:
    """The same with the face of a memoryview: Python's numbers. Indexes are not negative."""

    __slots__ = ("_guard", "_items", "_offset", "_verified", "_width")

    def __init__(self, guard: BlockGuard, array: np.ndarray, offset: int) -> None:
        self._guard = guard
        self._items = memoryview(array)
        self._offset = offset
        self._verified = guard.verified
        self._width = array.dtype.itemsize

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is slice:
            start, stop, _ = index.indices(len(self._items))
            if start < stop:
                self._guard.check(self._offset + start * self._width, self._offset + stop * self._width)
        else:
            block = self._offset + index * self._width >> BLOCK_SHIFT
            if not self._verified[block]:
                self._guard.check_block(block)
        return self._items[index]


Array = np.ndarray | GuardedArray


def is_proven(hold: object) -> bool:
    """Tell whether the files of a segment were verified: see `Segment.proven`. What is in memory has no files."""
    return getattr(hold, "verified", True)


def guarded(array: np.ndarray, hold: object) -> Array:
    """Return the array, guarded where it lies in a file of an unproven segment that has checksums of blocks."""
    if is_proven(hold):
        return array
    found = _guarded_place(_address(array), array.nbytes, hold)
    if found is None:
        return array
    guard, offset = found
    if offset % array.dtype.itemsize:
        # A value could lie in two blocks. We write none of the kind.
        guard.check(offset, offset + array.nbytes)
        return array
    return GuardedArray(guard, array, offset)


def view_of(array: Array) -> Values:
    """Return the values as Python's numbers."""
    return array.values if isinstance(array, GuardedArray) else memoryview(array)


def guards_of(batch: pa.RecordBatch, hold: object) -> bool:
    """Tell whether all memory of a batch is in files that have guards."""
    arrays = [*batch.columns, *(each.dictionary for each in batch.columns if pa.types.is_dictionary(each.type))]
    buffers = [each for array in arrays for each in array.buffers() if each is not None and each.size]
    return all(_guarded_place(each.address, each.size, hold) is not None for each in buffers)


def check_array(array: np.ndarray, hold: object) -> None:
    """Verify an array as a whole."""
    _check_memory(_address(array), 0, array.nbytes, hold)


def check_column(array: pa.Array, hold: object) -> None:
    """Verify all that Arrow reads of a column, or of a slice of one, its dictionary left out."""
    if pa.types.is_dictionary(array.type):
        array = array.indices
    if array.type not in (pa.string(), pa.binary()):
        check_fixed(array, slice(0, len(array)), hold)
        return
    present, offsets, text = array.buffers()
    first, end = array.offset, array.offset + len(array)
    if present is not None:
        _check_memory(present.address, first >> 3, end + 7 >> 3, hold)
    if offsets is None or text is None or first == end:
        return
    _check_memory(offsets.address, 4 * first, 4 * (end + 1), hold)
    begin, stop = np.frombuffer(offsets, "<i4")[[first, end]].tolist()
    if 0 <= begin <= stop <= text.size:  # Arrow's validation finds the others.
        _check_memory(text.address, begin, stop, hold)


def check_fixed(array: pa.Array, rows: slice | np.ndarray, hold: object) -> None:
    """Verify some rows, a range or positions that exist, of a column of values of fixed width."""
    present, values = array.buffers()
    for buffer, bits in ((present, 1), (values, array.type.bit_width)):
        if buffer is None or buffer.size == 0:
            continue
        if isinstance(rows, slice):
            first, end = (array.offset + rows.start) * bits, (array.offset + rows.stop) * bits
            _check_memory(buffer.address, first >> 3, end + 7 >> 3, hold)
            continue
        found = _guarded_place(buffer.address, buffer.size, hold)
        if found is not None:
            guard, offset = found
            firsts = offset + ((array.offset + rows.astype(np.int64, copy=False)) * bits >> 3)
            guard.check_offsets(firsts)
            if bits > 64:  # Buffers are aligned to 8 bytes: a DECIMAL can lie in two blocks.
                guard.check_offsets(firsts + (bits >> 3) - 1)


def check_nulls(array: pa.Array, hold: object) -> None:
    """Verify which values of a column are NULL, as a whole: the mask is made of all of them."""
    present = array.buffers()[0]
    if present is not None:
        _check_memory(present.address, 0, present.size, hold)


def fetch_memory(places: Iterable[tuple[int, int, int]], hold: object) -> None:
    """Fetch bytes of guarded files before they are verified, those of one file at the same time.

    Each place is an address, and where the bytes begin and stop from there.
    """
    wanted: dict[BlockGuard, list[tuple[int, int]]] = {}
    for address, start, stop in places:
        if start < stop:
            found = _guarded_place(address + start, stop - start, hold)
            if found is not None:
                guard, offset = found
                wanted.setdefault(guard, []).append((offset, offset + stop - start))
    for guard, ranges in wanted.items():
        guard.fetch(ranges)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _check_memory(address: int, start: int, stop: int, hold: object) -> None:
    if start < stop:
        found = _guarded_place(address + start, stop - start, hold)
        if found is not None:
            guard, offset = found
            guard.check(offset, offset + stop - start)


def _guarded_place(address: int, size: int, hold: object) -> tuple[BlockGuard, int] | None:
    if not is_proven(hold):
        for guard in getattr(hold, "guards", ()):
            offset = guard.offset_of(address, size)
            if offset is not None:
                return guard, offset
    return None
