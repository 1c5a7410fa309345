"""Maps that are partitioned, indexed, snapshot-consistent and durable: segments, memtable, snapshots, the folder.

Storage holds rows as tuples of values in stored form (see `remuda.types`) and as Arrow batches. It knows keys,
partitions and indexes, but no SQL, no plan, no member and no query: a reader takes a snapshot and asks its
sources.
"""

from remuda.storage.index.index_condition import UNBOUNDED, Lookup, Range
from remuda.storage.load.compaction import LoadMode
from remuda.storage.lookup.arrow_lookup import lookup_by_key
from remuda.storage.lookup.index_lookup import IndexLookup, IndexRead, index_read
from remuda.storage.lookup.row_projection import ColumnRows, RowProjection, row_projection
from remuda.storage.map_store import MapStore
from remuda.storage.row_source import Source
from remuda.storage.segment.segment import Segment
from remuda.storage.segment.segment_builder import build_segment
from remuda.storage.segment.segment_file import SegmentInfo, write_segment
from remuda.storage.snapshot import MapSnapshot, SnapshotDescription, open_snapshot
from remuda.storage.store import Store
from remuda.storage.wal.log import Durability
from remuda.types.column_hash import hash_columns
from remuda.types.partition_hash import hash_values, partition_of, scalar_hasher

__all__ = [
    "UNBOUNDED",
    "ColumnRows",
    "Durability",
    "IndexLookup",
    "IndexRead",
    "LoadMode",
    "Lookup",
    "MapSnapshot",
    "MapStore",
    "Range",
    "RowProjection",
    "Segment",
    "SegmentInfo",
    "SnapshotDescription",
    "Source",
    "Store",
    "build_segment",
    "hash_columns",
    "hash_values",
    "index_read",
    "lookup_by_key",
    "open_snapshot",
    "partition_of",
    "row_projection",
    "scalar_hasher",
    "write_segment",
]
