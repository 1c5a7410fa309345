"""The hot path: from a key to the projection of its newest committed row, as a chain of closures made once.

Every layer between the key and the row costs as much as the memory access it is there for. So what does not depend on
the key (which segments there are, where their arrays lie, how columns are read) is bound when the function is made, and
the commonest case, one segment and a key of one column, is written out without a call in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from xxhash import xxh64_intdigest

from remuda.storage.index.key_index import table_bits
from remuda.storage.lookup.generated_readers import row_finisher, row_reader
from remuda.storage.segment.segment import Segment, key_access
from remuda.types.normalized_key import canonical_key
from remuda.types.partition_hash import SEED, SIGN, WRAP, hashed_bytes

if TYPE_CHECKING:
    from remuda.storage.lookup.dirty_keys import DirtyKeys
    from remuda.storage.lookup.row_projection import Row, RowProjection
    from remuda.storage.memtable.memtable import Memtable
    from remuda.storage.segment.block_guard import Values
    from remuda.storage.state.map_version import MapVersion

# From a key to its row in the segments, whether or not the memtable has a newer one. Rows that are deleted for good do
# not count.
#
# What does not depend on the key is bound once, and of the segments only those that cover the key's partition are
# searched, newest first.


Found = TypeVar("Found")
Probe = TypeVar("Probe")


def make_search(version: MapVersion, outcomes: Sequence[Callable[[int], Found]]) -> Callable[[Any], Found | None]:
    """Return the function from a key to what the outcome of its segment makes of its position; None where it is not
    there."""
    # Rows deleted for good are known from the start.
    probes = tuple(
        (_probe_of(segment), deletions.view if deletions.deleted else None, outcome)
        for segment, deletions, outcome in zip(version.segments, version.deletions, outcomes, strict=True)
    )
    without_sign, with_sign = covering_by_hash(version.covering, probes)
    key_hash, partition_of_key, partitions = version.key_hash, version.partition_of_key, len(version.covering)
    by_whole_key = partitions == 1 or version.definition.partitioned_by == version.definition.key

    def search(key: Any) -> Found | None:
        hashed = key_hash(key)
        if by_whole_key:
            candidates = (without_sign if hashed < SIGN else with_sign)[hashed % partitions]
        else:
            candidates = without_sign[partition_of_key(key, hashed)]
        for probe, deleted_at, outcome in candidates:
            position = probe(key, hashed)
            if position >= 0 and (deleted_at is None or deleted_at[position]):
                return outcome(position)
        return None

    return search


def make_search_in_few(
    version: MapVersion, outcome_of: Callable[[int, Segment], Callable[[int], Found]]
) -> Callable[[Any], Found | None]:
    """Do as `make_search` in a map of many segments: those of a partition are looked into when a key of it comes.

    `outcome_of` makes the outcome of a segment, which is given with its number.
    """
    restricted, key_hash, partition_of_key = version.restriction(), version.key_hash, version.partition_of_key
    by_partition: dict[int, Callable[[Any], Found | None]] = {}
    made: dict[tuple[int, ...], Callable[[Any], Found | None]] = {}

    def search(key: Any) -> Found | None:
        partition = partition_of_key(key, key_hash(key))
        found = by_partition.get(partition)
        if found is None:
            numbers = restricted.numbers_of(partition)
            if numbers not in made:
                few = restricted.version_of(numbers)
                outcomes = [outcome_of(number, each) for number, each in zip(numbers, few.segments, strict=True)]
                made[numbers] = make_search(few, outcomes)
            found = by_partition[partition] = made[numbers]
        return found(key)

    return search


def _probe_of(segment: Segment) -> Callable[[Any, int], int]:
    """Return the function from a key and its hash to the position, or -1; it opens the segment if need be."""
    if segment.is_open:
        return segment.probe

    def probe(key: Any, hashed: int) -> int:
        return segment.probe(key, hashed)

    return probe


def opened_row_reader(segment: Segment, projection: RowProjection) -> Callable[[int], Any]:
    """Return the function from a position to the row there; it is made when it is needed where that opens files."""
    if segment.is_open:
        return row_reader(segment, projection)
    made: list[Callable[[int], Any]] = []

    def read(position: int) -> Any:
        if not made:
            made.append(row_reader(segment, projection))
        return made[0](position)

    return read


def covering_by_hash(
    covering: Sequence[tuple[int, ...]], probes: Sequence[Probe]
) -> tuple[list[tuple[Probe, ...]], list[tuple[Probe, ...]]]:
    """Return the probes of the segments to search, by the unsigned hash modulo the partitions.

    One list is for hashes below `SIGN`, whose entries are those of the partitions, and one for the others, which as
    signed numbers are less by `WRAP`. The one comparison takes a third of the time of making the hash a signed number.
    """
    chosen = [tuple(probes[number] for number in numbers) for numbers in covering]
    return chosen, [chosen[(remainder - WRAP) % len(chosen)] for remainder in range(len(chosen))]


PointLookup = Callable[[Any], Any]
"""From a key to its row; None where there is none."""


def make_point_lookup(version: MapVersion, projection: RowProjection) -> PointLookup:
    """Make the function for one version and one projection. It sees writes to come, as the version's memtable does."""
    return _in_few(version, projection) if opens_few(version) else _in_all(version, projection)


def _in_all(version: MapVersion, projection: RowProjection) -> PointLookup:
    """Make the lookup in segments all of which are opened for it."""
    key_types = [version.definition.column(name).type for name in version.definition.key]
    readers = [row_reader(segment, projection) for segment in version.segments]
    in_segments = make_search(version, readers)
    in_memtable = _in_memtable(version.memtable, row_finisher(version.definition, projection), in_segments)
    newest = version.memtable.newest.get
    in_one = _in_one_of(version, readers, newest, in_memtable, in_segments)
    if in_one is not None:
        return in_one
    several = _in_several(version, readers, newest, in_memtable)
    if several is not None:
        return several

    def find(key: Any) -> Any:
        return in_segments(key) if newest(key) is None else in_memtable(key)

    if any(sql_type.is_floating for sql_type in key_types):
        return lambda key: find(canonical_key(key))
    return find


MOST_OPENED = 16
"""Segments that are opened for a lookup whether or not it needs them."""


def opens_few(version: MapVersion) -> bool:
    """Tell whether a lookup opens the segments that it needs, instead of all: there are many that are not open."""
    return version.segment_count > MOST_OPENED and not version.is_open


def _in_few(version: MapVersion, projection: RowProjection) -> PointLookup:
    """Make the lookup in a map of many segments: that of a version of the segments that cover a partition, when a key
    of the partition is first looked up."""
    definition, partitions = version.definition, version.definition.partitions
    # Not the version itself, which keeps its lookups: it goes, and its files with it, with the last who holds it.
    restricted = version.restriction()
    key_hash, partition_of_key = version.key_hash, version.partition_of_key
    made: dict[tuple[int, ...], PointLookup] = {}

    def find_first(key: Any) -> Any:
        """Make the lookup of a partition, for its first key and all that follow."""
        partition = partition_of_key(key, key_hash(key))
        numbers = restricted.numbers_of(partition)
        found = made.get(numbers)
        if found is None:
            found = made[numbers] = _in_all(restricted.version_of(numbers), projection)
        without_sign[partition] = with_sign[(partition + WRAP) % partitions] = found
        return found(key)

    without_sign: list[PointLookup] = [find_first] * partitions
    with_sign = list(without_sign)

    def find_by_hash(key: Any) -> Any:
        hashed = key_hash(key)
        return (without_sign if hashed < SIGN else with_sign)[hashed % partitions](key)

    def find_by_part(key: Any) -> Any:
        return without_sign[partition_of_key(key, key_hash(key))](key)

    find = find_by_hash if partitions == 1 or definition.partitioned_by == definition.key else find_by_part
    if any(definition.column(name).type.is_floating for name in definition.key):
        return lambda key: find(canonical_key(key))
    return find


def _in_one_of(
    version: MapVersion,
    readers: Sequence[Callable[[int], Any]],
    newest: Callable[[Any], int | None],
    in_memtable: PointLookup,
    in_segments: PointLookup,
) -> PointLookup | None:
    """Make the lookup for whole numbers that can nearly all be in one segment only; None elsewhere."""
    if not version.segments or key_access(version.segments[0])[0] is None:
        return None
    dirty = version.dirty
    if dirty is None or len(dirty.settled) != 1:
        return None
    (only,) = dirty.settled
    segment, read = version.segments[only], readers[only]
    numbers, _ = key_access(segment)
    if numbers is None:
        return None
    encode = hashed_bytes(version.definition.column(version.definition.key[0]).type)
    if len(version.segments) == 1 and not version.deletions[only].deleted:
        return _in_one(segment, numbers, encode, read, newest, in_memtable)
    return _in_one_or_dirty(segment, numbers, encode, read, newest, in_memtable, dirty, in_segments)


def _in_one(
    segment: Segment,
    numbers: Values,
    encode: Callable[[Any], bytes],
    read: Callable[[int], Any],
    newest: Callable[[Any], int | None],
    in_memtable: PointLookup,
) -> PointLookup:
    """Make the lookup in one segment without deletions: `key_index.prober` for whole numbers, written out."""
    slots, shift, digest = segment.key_slots, 64 - table_bits(segment.rows), xxh64_intdigest

    def find(key: Any) -> Any:
        if newest(key) is not None:
            return in_memtable(key)
        slot = digest(encode(key), SEED) >> shift
        while found := slots[slot]:
            if numbers[found - 1] == key:
                return read(found - 1)
            slot += 1
        return None

    return find


def _in_one_or_dirty(
    segment: Segment,
    numbers: Values,
    encode: Callable[[Any], bytes],
    read: Callable[[int], Any],
    newest: Callable[[Any], int | None],
    in_memtable: PointLookup,
    dirty: DirtyKeys,
    in_segments: PointLookup,
) -> PointLookup:
    """Do as `_in_one` for a large segment, some rows of which are deleted, behind small ones."""
    slots, shift, digest = segment.key_slots, 64 - table_bits(segment.rows), xxh64_intdigest
    table, dirty_shift = dirty.table, dirty.shift

    def find(key: Any) -> Any:
        if newest(key) is not None:
            return in_memtable(key)
        hashed = digest(encode(key), SEED)
        if table[hashed >> dirty_shift]:
            return in_segments(key)
        slot = hashed >> shift
        while found := slots[slot]:
            if numbers[found - 1] == key:
                return read(found - 1)
            slot += 1
        return None

    return find


def _in_several(
    version: MapVersion,
    readers: Sequence[Callable[[int], Any]],
    newest: Callable[[Any], int | None],
    in_memtable: PointLookup,
) -> PointLookup | None:
    """Make the lookup in several segments.

    The same for two segments or more, of which those that cover the key's partition are searched; None where keys
    are no whole numbers, or partitions have to be found by something else than the hash of the key.
    """
    definition = version.definition
    if not version.segments or definition.partitioned_by != definition.key:
        return None
    probes: list[tuple[Values, int, Values, memoryview | None, Callable[[int], Any]]] = []
    for segment, deletions, read in zip(version.segments, version.deletions, readers, strict=True):
        numbers, _ = key_access(segment)
        if numbers is None:
            return None
        deleted_at = deletions.view if deletions.deleted else None
        probes.append((segment.key_slots, 64 - table_bits(segment.rows), numbers, deleted_at, read))
    without_sign, with_sign = covering_by_hash(version.covering, probes)
    partitions = len(version.covering)
    encode, digest = hashed_bytes(definition.column(definition.key[0]).type), xxh64_intdigest

    def find(key: Any) -> Any:
        if newest(key) is not None:
            return in_memtable(key)
        hashed = digest(encode(key), SEED)
        chosen = without_sign if hashed < SIGN else with_sign
        for slots, shift, numbers, deleted_at, read in chosen[hashed % partitions]:
            slot = hashed >> shift
            while found := slots[slot]:
                if numbers[found - 1] == key:
                    if deleted_at is None or deleted_at[found - 1]:
                        return read(found - 1)
                    break
                slot += 1
        return None

    return find


def _in_memtable(memtable: Memtable, finish: Callable[[Row], Any], in_segments: PointLookup) -> PointLookup:
    def find(key: Any) -> Any:
        entry = memtable.entry_at(key, memtable.committed)
        if entry < 0:
            # All its entries belong to a statement that is not committed yet.
            return in_segments(key)
        row = memtable.rows[entry]
        return None if row is None else finish(row)

    return find
