"""Segments on disk: what is written for one, how it is opened again, and when its files may go.

<segment id>.arrow               the rows: an Arrow IPC file of one record batch
<segment id>.keys                partition offsets, key table, zone maps, checksums of the rows' blocks (`array_file`)
<segment id>.<index id>.index    one index (`array_file`)
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.store_files import (
    MAP_FILE,
    address_of,
    create_file,
    list_files,
    map_file,
    open_for_reading,
    remove_file,
)
from remuda.storage.folder.store_files import (
    make_folder as make_store_folder,
)
from remuda.storage.segment.array_file import array_file_damages, open_array_file, write_array_file
from remuda.storage.segment.block_guard import BlockGuard
from remuda.storage.segment.checksum import BLOCK_BYTES, checksum_of, checksums_of, no_pause
from remuda.storage.segment.segment import Segment, partitions_with_rows
from remuda.storage.segment.segment_builder import build_segment
from remuda.storage.segment.summary.saved_summaries import save_summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.folder.disposal import Disposal
    from remuda.storage.segment.block_guard import BlockSource
    from remuda.storage.segment.summary.column_summary import ColumnSummary

AnyPath = TypeVar("AnyPath", bound=PurePath)

LEVELS = 2
"""Segments lie in the folder of a map, or of a delivery."""
FORMAT = "1"
_FORMAT_KEY = b"remuda.format"
_KEY_ARRAYS = frozenset({"partition_offsets", "table", "row_checksums", "row_metadata"})
_CHECKED_ARRAYS = ("partition_offsets", "row_checksums", "row_metadata")
"""Those that are small, and needed before anything can be verified by them."""
_PADDING = 64
"""Bytes between two buffers of an Arrow file, at most, that mean nothing."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What the manifest knows about a segment: enough to open it, and its statistics. Pickles."""

    id: str
    rows: int
    indexes: tuple[str, ...]
    row_bytes: int
    row_checksum: str
    summaries: Mapping[str, ColumnSummary]
    partitions: tuple[int, int] | None = None
    """The first and the last partition with a row; None in files of earlier versions."""


class SegmentFiles:
    """Guards the files of a segment: once obsolete, they are removed when nothing in this process holds the segment.

    `verified` says that every byte was compared with its checksum and every offset and position lies inside, or that
    this process has written all of it. Until then `guards` verify what is read; older files have none.
    """

    __slots__ = ("__weakref__", "_obsolete", "guards", "path", "verified")

    def __init__(self, folder: Path, segment_id: str, guards: Iterable[BlockGuard | None], *, verified: bool) -> None:
        self.path = _rows_path(folder, segment_id)
        self.verified = verified
        self.guards = tuple(guard for guard in guards if guard is not None)
        # Shared with the finaliser, which must not hold the guard itself: empty as long as the files are needed.
        self._obsolete: list[tuple[Disposal, int]] = []
        weakref.finalize(self, _remove_files, folder, segment_id, self._obsolete)

    def mark_obsolete(self, disposal: Disposal, version: int) -> None:
        """Let the files go: no root from this version on names them."""
        self._obsolete.append((disposal, version))


def write_segment(folder: Path, definition: MapDefinition, table: pa.Table) -> SegmentInfo:
    """Builds a segment of the rows and writes it with its indexes: what a Spark task calls."""
    return save_segment(folder, build_segment(definition, table))


def save_segment(folder: Path, segment: Segment, *, make_folder: bool = True) -> SegmentInfo:
    """Writes and fsyncs all files of the segment; the manifest that names it comes after."""
    path = _rows_path(folder, segment.id)
    try:
        if make_folder:
            make_store_folder(folder)
        schema = segment.batch.schema.with_metadata({_FORMAT_KEY: FORMAT})
        with create_file(path, levels=LEVELS) as file:
            # Arrow writes to a path three times as fast as to a Python file: this one is the descriptor's.
            with pa.OSFile(f"/dev/fd/{file.fileno()}", "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                writer.write_batch(segment.batch)
            os.fsync(file.fileno())
        with open_for_reading(path, levels=LEVELS) as file:
            size = os.fstat(file.fileno()).st_size
            checksum, row_checksums = checksums_of(file, size)
        write_array_file(
            _keys_path(folder, segment.id),
            {
                "partition_offsets": segment.partition_offsets,
                "table": segment.key_table,
                "row_checksums": row_checksums,
                "row_metadata": _metadata_blocks(map_file(path, levels=LEVELS)),
                **segment.zone_arrays,
            },
        )
        for index_id, arrays in segment.index_arrays.items():
            write_array_file(index_path(folder, segment.id, index_id), arrays)
    except OSError as error:
        _remove_all(folder, segment.id)
        raise StorageError(f"a segment cannot be written: {os.strerror(error.errno or 0)}", path) from error
    except BaseException:
        _remove_all(folder, segment.id)
        raise
    summaries = save_summaries(segment.definition, segment.summaries)
    indexes, span = tuple(segment.index_arrays), (segment.first_partition, segment.last_partition)
    return SegmentInfo(segment.id, segment.rows, indexes, size, checksum, summaries, span if segment.rows else None)


def open_segment(folder: Path, definition: MapDefinition, info: SegmentInfo, *, verified: bool = False) -> Segment:
    """Map a saved segment into memory; only headers and small arrays are read."""
    rows = open_rows(folder, definition, info)
    indexes = {index_id: open_array_file(index_path(folder, info.id, index_id)) for index_id in info.indexes}
    guards = (*rows.guards, *(each.guard for each in indexes.values()))
    return Segment(
        info.id,
        definition,
        rows.batch,
        rows.keys["partition_offsets"],
        rows.keys["table"],
        {index_id: each.arrays for index_id, each in indexes.items()},
        info.summaries,
        rows.zone_arrays,
        SegmentFiles(folder, info.id, guards, verified=verified),
    )


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The rows of a segment and the arrays of its `.keys`, mapped, with the guards of both files."""

    batch: pa.RecordBatch
    keys: Mapping[str, np.ndarray]
    guards: tuple[BlockGuard | None, ...]

    @property
    def zone_arrays(self) -> dict[str, np.ndarray]:
        return {name: array for name, array in self.keys.items() if name not in _KEY_ARRAYS}


def open_rows(
    folder: Path,
    definition: MapDefinition,
    info: SegmentInfo,
    source_of: Callable[[Path], BlockSource | None] = lambda _path: None,
) -> OpenRows:
    """Map the rows of a segment and its `.keys` into memory; `source_of` fills the holes of a file."""
    keys_path, path = _keys_path(folder, info.id), _rows_path(folder, info.id)
    keys_file = open_array_file(keys_path, _CHECKED_ARRAYS, source_of(keys_path))
    batch, guard = _open_rows(path, definition, info, keys_file.arrays, source_of(path))
    if info.partitions not in (None, partitions_with_rows(keys_file.arrays["partition_offsets"])):
        raise damage_error("the partitions of a segment are not those that the manifest says", keys_path)
    return OpenRows(batch, keys_file.arrays, (guard, keys_file.guard))


def save_index(
    folder: Path, info: SegmentInfo, index: IndexDefinition, arrays: Mapping[str, np.ndarray]
) -> SegmentInfo:
    """Writes one more index beside a saved segment."""
    write_array_file(index_path(folder, info.id, index.id), arrays)
    return replace(info, indexes=(*info.indexes, index.id))


def segment_damages(folder: Path, info: SegmentInfo, pause: Callable[[], None] = no_pause) -> Iterator[StorageError]:
    """Read every byte of a segment's files and yield where it differs from the checksums made when it was written."""
    yield from _row_damages(folder, info, pause)
    yield from array_file_damages(_keys_path(folder, info.id), pause)
    for index_id in info.indexes:
        yield from array_file_damages(index_path(folder, info.id, index_id), pause)


def _row_damages(folder: Path, info: SegmentInfo, pause: Callable[[], None]) -> Iterator[StorageError]:
    """Find damage in the rows: by the block where block checksums are sound, else at the beginning of the file."""
    path = _rows_path(folder, info.id)
    size, checksum = digest(path, pause)
    if size != info.row_bytes:
        yield _wrong_size(path, size, info)
    elif checksum != info.row_checksum:
        damages: list[StorageError] = []
        with suppress(StorageError, FileNotFoundError, KeyError), open_for_reading(path, levels=LEVELS) as file:
            checksums = open_array_file(_keys_path(folder, info.id), _CHECKED_ARRAYS).arrays["row_checksums"]
            damages = BlockGuard(path, map_file(path, levels=LEVELS), 0, checksums).damages(file)
        yield from damages or [damage_error("the rows of a segment are damaged", path, 0)]


def segment_paths(folder: Path, info: SegmentInfo) -> list[Path]:
    return files_of(folder, info.id, info.indexes)


def files_of(folder: AnyPath, segment_id: str, indexes: Iterable[str]) -> list[AnyPath]:
    """List the files of a segment, the rows first."""
    return [
        _rows_path(folder, segment_id),
        _keys_path(folder, segment_id),
        *(index_path(folder, segment_id, index_id) for index_id in indexes),
    ]


def index_path(folder: AnyPath, segment_id: str, index_id: str) -> AnyPath:
    return folder / f"{segment_id}.{index_id}.index"


def _rows_path(folder: AnyPath, segment_id: str) -> AnyPath:
    return folder / f"{segment_id}.arrow"


def _keys_path(folder: AnyPath, segment_id: str) -> AnyPath:
    return folder / f"{segment_id}.keys"


def _open_rows(
    path: Path,
    definition: MapDefinition,
    info: SegmentInfo,
    keys: Mapping[str, np.ndarray],
    source: BlockSource | None,
) -> tuple[pa.RecordBatch, BlockGuard | None]:
    guard = None
    shown = path if source is None else source.shown
    try:
        mapped = map_file(path if source is None else source.path, levels=LEVELS)
        if len(mapped) != info.row_bytes:
            raise _wrong_size(shown, len(mapped), info)
        if "row_checksums" in keys:
            guard = _row_guard(shown, mapped, keys, source)
        elif source is not None:
            source.fetch([(0, source.size)])
            if digest(source.path) != (info.row_bytes, info.row_checksum):
                raise damage_error("the file is not as it was written", shown)
        reader = pa.ipc.open_file(pa.BufferReader(mapped))
        batch = reader.get_batch(0)
        batch.validate()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise damage_error(f"not a readable Arrow file: {error}", shown, 0) from error
    written = (reader.schema.metadata or {}).get(_FORMAT_KEY, b"").decode()
    if written != FORMAT:
        raise StorageError(
            f"the segment has format {written or 'unknown'}, this version reads {FORMAT}", shown, 0, sqlstate="0A000"
        )
    if batch.num_rows != info.rows or not _fits(batch.schema, definition):
        raise damage_error("the segment does not fit its map", shown, 0)
    return batch, guard


def _row_guard(
    path: Path | str, mapped: memoryview, keys: Mapping[str, np.ndarray], source: BlockSource | None
) -> BlockGuard:
    """Return the guard of the rows, by which the metadata of the Arrow file is verified before Arrow reads it."""
    guard = BlockGuard(path, mapped, 0, keys["row_checksums"], source=source)
    try:
        guard.check_blocks(keys["row_metadata"].tolist())
    except LookupError as error:
        raise damage_error("the checksums of the blocks do not fit the file", path) from error
    return guard


def _metadata_blocks(mapped: memoryview) -> np.ndarray:
    """Return the blocks that hold something else than values of an Arrow file: schema, headers of batches, footer.

    Computed by the writer. A reader would have to ask the metadata themselves where they are.
    """
    batch = pa.ipc.open_file(pa.BufferReader(mapped)).get_batch(0)
    arrays = [*batch.columns, *(each.dictionary for each in batch.columns if pa.types.is_dictionary(each.type))]
    start = address_of(mapped)
    buffers = [buffer for array in arrays for buffer in array.buffers() if buffer is not None]
    taken = sorted((buffer.address - start, buffer.address - start + buffer.size) for buffer in buffers)
    blocks: set[int] = set()
    end = 0
    for begin, stop in [*taken, (len(mapped) + _PADDING, 0)]:
        if begin - end >= _PADDING:
            blocks.update(range(end // BLOCK_BYTES, -(-min(begin, len(mapped)) // BLOCK_BYTES)))
        end = max(end, stop)
    return np.array(sorted(blocks), np.uint32)


def _wrong_size(path: Path | str, size: int, info: SegmentInfo) -> StorageError:
    return damage_error(f"the file has {size} bytes instead of {info.row_bytes}", path, min(size, info.row_bytes))


def _fits(schema: pa.Schema, definition: MapDefinition) -> bool:
    """Tell whether the columns have the map's names and types; texts may be encoded by a dictionary."""
    found = [(field.name, getattr(field.type, "value_type", field.type)) for field in schema]
    return found == [(column.name, column.type.arrow) for column in definition.columns]


def _remove_all(folder: Path, segment_id: str) -> None:
    """Remove files.

    What cannot be removed is named by no manifest: the next opening of the folder removes it.
    """
    with suppress(OSError):
        for path in _present_files(folder, segment_id):
            with suppress(OSError):
                remove_file(path, levels=LEVELS)


def _present_files(folder: Path, segment_id: str) -> list[Path]:
    return [folder / name for name in list_files(folder, levels=LEVELS, form=MAP_FILE) if name.startswith(segment_id)]


def digest(path: Path, pause: Callable[[], None] = no_pause) -> tuple[int, str]:
    """Return size and checksum of a file, as `SegmentInfo` has them for the rows."""
    with open_for_reading(path, levels=LEVELS) as file:
        size = os.fstat(file.fileno()).st_size
        return size, checksum_of(file, 0, size, pause)


def _remove_files(folder: Path, segment_id: str, obsolete: list[tuple[Disposal, int]]) -> None:
    if obsolete:
        disposal, version = obsolete[0]
        disposal.retire(_present_files(folder, segment_id), version)
