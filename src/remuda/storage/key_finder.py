"""The hot path: from a key to its newest committed row, in the form it is wanted in, as a chain of closures made once.

Every layer between the key and the row costs as much as the memory access it is there for. So what does not depend on
the key (which segments there are, where their arrays lie, how columns are read) is bound when the function is made, and
the commonest case, one segment and a key of one column, is written out without a call in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xxhash import xxh64_intdigest

from remuda.storage.key_index import table_bits
from remuda.storage.row_code import row_finisher, row_reader
from remuda.storage.segment import Segment, key_access
from remuda.storage.segment_search import make_search
from remuda.storage.value_order import canonical_key
from remuda.types.partition_hash import SEED, SIGN, WRAP, hashed_bytes

if TYPE_CHECKING:
    from remuda.storage.map_version import MapVersion
    from remuda.storage.row_form import Row, RowForm
    from remuda.storage.write_log import WriteLog

Finder = Callable[[Any], Any]
"""From a key to its row; None where there is none."""


def make_finder(version: MapVersion, form: RowForm) -> Finder:
    """The function for one version and one form of rows. It sees writes to come, as the version's log does."""
    key_types = [version.definition.column(name).type for name in version.definition.key]
    readers = [row_reader(segment, form) for segment in version.segments]
    in_segments = make_search(version, readers)
    in_log = _in_log(version.log, row_finisher(version.definition, form), in_segments)
    newest = version.log.newest.get
    if len(version.segments) == 1 and version.hidden[0].deleted == 0:
        numbers, _ = key_access(version.segments[0])
        if numbers is not None:
            encode = hashed_bytes(key_types[0])
            return _in_one(version.segments[0], numbers, encode, readers[0], newest, in_log)

    disjoint = _in_disjoint(version, readers, newest, in_log)
    if disjoint is not None:
        return disjoint

    def find(key: Any) -> Any:
        return in_segments(key) if newest(key) is None else in_log(key)

    if any(sql_type.is_floating for sql_type in key_types):
        return lambda key: find(canonical_key(key))
    return find


def _in_one(
    segment: Segment,
    numbers: memoryview,
    encode: Callable[[Any], bytes],
    read: Callable[[int], Any],
    newest: Callable[[Any], int | None],
    in_log: Finder,
) -> Finder:
    """One segment without deletions, keys that are whole numbers: `key_index.prober` with everything in place."""
    slots, shift, digest = memoryview(segment.key_table), 64 - table_bits(segment.rows), xxh64_intdigest

    def find(key: Any) -> Any:
        if newest(key) is not None:
            return in_log(key)
        slot = digest(encode(key), SEED) >> shift
        while found := slots[slot]:
            if numbers[found - 1] == key:
                return read(found - 1)
            slot += 1
        return None

    return find


def _in_disjoint(
    version: MapVersion,
    readers: Sequence[Callable[[int], Any]],
    newest: Callable[[Any], int | None],
    in_log: Finder,
) -> Finder | None:
    """The same for segments at rest, each with partitions of its own; None where it is not so."""
    definition = version.definition
    if definition.partitioned_by != definition.key or any(len(numbers) > 1 for numbers in version.covering):
        return None
    places: list[tuple[memoryview, int, memoryview, Callable[[int], Any]]] = []
    for segment, hidden, read in zip(version.segments, version.hidden, readers, strict=True):
        numbers, _ = key_access(segment)
        if numbers is None or hidden.deleted:
            return None
        places.append((memoryview(segment.key_table), 64 - table_bits(segment.rows), numbers, read))
    if not places:
        return None
    covering = [places[numbers[0]] if numbers else None for numbers in version.covering]
    encode, partitions, digest = hashed_bytes(definition.column(definition.key[0]).type), len(covering), xxh64_intdigest

    def find(key: Any) -> Any:
        if newest(key) is not None:
            return in_log(key)
        hashed = digest(encode(key), SEED)
        place = covering[(hashed - WRAP if hashed & SIGN else hashed) % partitions]
        if place is None:
            return None
        slots, shift, numbers, read = place
        slot = hashed >> shift
        while found := slots[slot]:
            if numbers[found - 1] == key:
                return read(found - 1)
            slot += 1
        return None

    return find


def _in_log(log: WriteLog, finish: Callable[[Row], Any], in_segments: Finder) -> Finder:
    def find(key: Any) -> Any:
        entry = log.entry_at(key, log.committed)
        if entry < 0:
            # All its entries belong to a statement that is not committed yet.
            return in_segments(key)
        row = log.rows[entry]
        return None if row is None else finish(row)

    return find
