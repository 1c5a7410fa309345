"""How the manifest grows: sizes and times of the root, of a commit and of reading, by simulated segments without rows.

python -m benchmarks manifest_growth
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import replace

from remuda.catalog import ColumnDefinition, MapDefinition, new_id
from remuda.storage.folder.definition_entries import MapEntry, map_entry
from remuda.storage.folder.group_file import SegmentEntry, segment_entry, segment_infos
from remuda.storage.folder.manifest import NAME, Manifest, read_manifest, write_manifest
from remuda.storage.folder.partition_groups import PartitionGroups
from remuda.storage.segment.segment_builder import build_segment
from remuda.storage.segment.segment_file import save_segment
from remuda.types import BIGINT, DOUBLE, TIMESTAMP, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (10, 1_000, 10_000)
IN_A_GROUP = 10
ROUNDS = 5


def show() -> None:
    """Print a table."""
    print("| segments | groups | root | group files | commit: bytes | commit | open | and decode one column |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in SIZES:
        for in_a_group in (size, IN_A_GROUP) if size > IN_A_GROUP else (size,):
            print(_row(size, in_a_group))


def _row(size: int, in_a_group: int) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        definition, segments = simulated_segments(folder, size)
        entry = map_entry(definition, 0, ())
        first = PartitionGroups(folder)
        entry = replace(entry, groups=tuple(_groups(first, entry, segments, in_a_group)))
        manifest = Manifest(1, definition.partitions, 1, 1, (0, 0), 0, [entry])
        write_manifest(folder, manifest)
        files = [path.stat().st_size for path in folder.glob("maps/*/*.group")]
        root = (folder / NAME).stat().st_size

        def commit() -> None:
            changed = replace(segments[0], id=new_id())
            group = first.write_group(entry.id, 0, entry.groups[0].end, (changed, *segments[1:in_a_group]))
            write_manifest(folder, replace(manifest, maps=[replace(entry, groups=(group, *entry.groups[1:]))]))

        def read() -> int:
            found = read_manifest(folder)
            groups = PartitionGroups(folder)
            return sum(len(infos) for _, infos in _infos(groups, found.maps[0], definition))

        def decode() -> None:
            groups = PartitionGroups(folder)
            for _, infos in _infos(groups, read_manifest(folder).maps[0], definition):
                for info in infos:
                    assert info.summaries["amount"].rows

        taken = [least(each) for each in (commit, read, decode)]
        sizes = f"{root:,} | {sum(files):,} | {root + files[0]:,}"
        return f"| {size:,} | {len(files):,} | {sizes} | " + " | ".join(f"{each * 1e3:.1f} ms" for each in taken) + " |"


def _infos(groups: PartitionGroups, entry: MapEntry, definition: MapDefinition) -> Iterator[tuple[object, list]]:  # type: ignore[type-arg]
    for group, segments in groups.segments_of(entry):
        yield group, segment_infos(segments, definition)


def _groups(groups: PartitionGroups, entry: MapEntry, segments: list[SegmentEntry], in_a_group: int) -> Iterator:  # type: ignore[type-arg]
    count = len(segments) // in_a_group
    for number in range(count):
        chosen = tuple(segments[number * in_a_group : (number + 1) * in_a_group])
        yield groups.write_group(
            entry.id, number * entry.partitions // count, (number + 1) * entry.partitions // count, chosen
        )


def simulated_segments(folder: Path, size: int, partitions: int = 4096) -> tuple[MapDefinition, list[SegmentEntry]]:
    """Return the entries of many segments with the statistics of one that was built of rows."""
    types = {"id": BIGINT, "customer": VARCHAR, "status": VARCHAR, "amount": DOUBLE, "created": TIMESTAMP}
    columns = tuple(ColumnDefinition(name, each) for name, each in types.items())
    definition = MapDefinition(new_id(), "public", "orders", columns, ("id",), ("id",), partitions, False, ())
    numbers = range(20_000)
    rows = pa.table(
        {
            "id": numbers,
            "customer": [f"C{number % 1000}" for number in numbers],
            "status": [("NEW", "PAID", "SENT")[number % 3] for number in numbers],
            "amount": [number * 7 % 1000 / 8 for number in numbers],
            "created": pa.array([number * 1000 for number in numbers], pa.timestamp("us")),
        }
    )
    info = save_segment(folder / "maps" / definition.id, build_segment(definition, rows))
    entry = segment_entry(info, definition)
    return definition, [replace(entry, id=new_id()) for _ in range(size)]


def least(measured: Callable[[], object]) -> float:
    """Return the processor time of a call, the least of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        measured()
        taken.append(time.process_time() - start)
    return min(taken)
