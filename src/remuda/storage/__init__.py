"""Maps that are partitioned, indexed, snapshot-consistent and durable: segments, memtable, snapshots, the folder.

Storage holds rows as tuples of values in stored form (see `remuda.types`) and as Arrow batches. It knows keys,
partitions and indexes, but no SQL, no plan, no member and no query: a reader takes a snapshot and asks its
sources.
"""

from typing import TYPE_CHECKING

from remuda.lazy_names import lazy_names
from remuda.types.column_hash import hash_columns
from remuda.types.partition_hash import hash_values, partition_of, scalar_hasher

if TYPE_CHECKING:
    from remuda.storage.index.index_condition import UNBOUNDED, Lookup, Range
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.lookup.arrow_lookup import lookup_by_key
    from remuda.storage.lookup.index_lookup import IndexLookup, IndexRead, index_read
    from remuda.storage.lookup.row_projection import ColumnRows, RowProjection, row_projection
    from remuda.storage.map_store import MapStore
    from remuda.storage.row_source import Source
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_builder import build_segment
    from remuda.storage.segment.segment_file import SegmentInfo, write_segment
    from remuda.storage.snapshot import DescribedSegments, MapSnapshot, SnapshotDescription, open_snapshot
    from remuda.storage.store import Store
    from remuda.storage.wal.durability import Durability

__all__ = [
    "UNBOUNDED",
    "ColumnRows",
    "DescribedSegments",
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

__getattr__ = lazy_names(
    __name__,
    {
        "ColumnRows": "lookup.row_projection",
        "DescribedSegments": "snapshot",
        "Durability": "wal.durability",
        "IndexLookup": "lookup.index_lookup",
        "IndexRead": "lookup.index_lookup",
        "LoadMode": "load.load_mode",
        "Lookup": "index.index_condition",
        "MapSnapshot": "snapshot",
        "MapStore": "map_store",
        "Range": "index.index_condition",
        "RowProjection": "lookup.row_projection",
        "Segment": "segment.segment",
        "SegmentInfo": "segment.segment_file",
        "SnapshotDescription": "snapshot",
        "Source": "row_source",
        "Store": "store",
        "UNBOUNDED": "index.index_condition",
        "build_segment": "segment.segment_builder",
        "index_read": "lookup.index_lookup",
        "lookup_by_key": "lookup.arrow_lookup",
        "open_snapshot": "snapshot",
        "row_projection": "lookup.row_projection",
        "write_segment": "segment.segment_file",
    },
)
