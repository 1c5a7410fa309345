"""From rows in any order to a segment: partition ids, order, dictionaries, key index, indexes, summaries. No files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.catalog import MapDefinition, new_id
from remuda.catalog.definitions import MOST_PARTITIONS
from remuda.errors import ConstraintError, constraint_error, duplicate_error, shown
from remuda.expr.cancellation import check_cancelled
from remuda.storage.index.index_types import build_index
from remuda.storage.index.key_index import TableBuilder
from remuda.storage.segment.column_reader import value_reader
from remuda.storage.segment.row_memory import release_unused, rows_of
from remuda.storage.segment.row_order import BLOCK, sort_with_positions
from remuda.storage.segment.segment import Segment
from remuda.storage.segment.summary.column_summary import ColumnSummary, summarise
from remuda.storage.segment.summary.value_counts import sample_rows
from remuda.storage.segment.zone_map import build_zones
from remuda.types import to_python
from remuda.types.arrow_arrays import code_values, flat, is_dictionary, null_mask
from remuda.types.arrow_compute import pc
from remuda.types.arrow_texts import decoded, fits_one_array
from remuda.types.column_hash import hash_columns
from remuda.types.normalized_key import hashable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PARALLEL_ROWS = 200_000
"""From so many rows on the indexes of a segment are built by several threads."""

BUILDERS = 2
"""So many threads, however many processors there are: each holds about 24 bytes a row while it sorts."""

DICTIONARY_SHARE = 0.5
"""Strings are dictionary-encoded where at most so many of the rows are different."""


def build_segment(definition: MapDefinition, table: pa.Table | pa.RecordBatch, *, indexes: bool = True) -> Segment:
    """Return the segment of the rows, whose columns have the Arrow types of the definition or dictionaries of them.

    Duplicate keys are refused. `indexes=False` leaves the indexes to be built when they are first asked.
    """
    columns = [flat(encoded(table.column(column.name))) for column in definition.columns]
    partitions = partition_ids(definition, columns)
    order = np.argsort(partitions, kind="stable")
    if bool(np.any(partitions[1:] < partitions[:-1])):
        taken = pa.array(order)
        columns = [rows_of(column, taken) for column in columns]
    return finish_segment(
        definition, columns, np.bincount(partitions, minlength=definition.partitions), indexes=indexes
    )


def finish_segment(
    definition: MapDefinition, columns: list[pa.Array], partition_rows: np.ndarray, *, indexes: bool = True
) -> Segment:
    """Return the segment of columns that are in order of partition ids, so many rows for each partition.

    The list is emptied, so that the caller does not hold columns that are replaced by compacted ones.
    """
    arrays = [compacted(columns.pop(0)) for _ in definition.columns]
    types = [column.type for column in definition.columns]
    batch = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in definition.columns])
    built_indexes = definition.indexes if indexes else ()
    # The key table is behind the indexes: of all steps it holds the least beside what it leaves.
    *built, key_table, summaries, zones = _done(
        [
            *(partial(build_index, index, definition, batch) for index in built_indexes),
            partial(_key_table, definition, arrays),
            partial(_summaries, definition, arrays),
            partial(build_zones, arrays, types),
        ],
        by_threads=len(batch) >= PARALLEL_ROWS,
    )
    return Segment(
        new_id(),
        definition,
        batch,
        np.concatenate([[0], np.cumsum(partition_rows)]).astype(np.int64),
        key_table,
        {index.id: arrays for index, arrays in zip(built_indexes, built, strict=True)},
        summaries,
        zones,
    )


def _done(steps: Sequence[Callable[[], Any]], *, by_threads: bool) -> list[Any]:
    """Run the steps, if need be by threads: sorts and takes leave the interpreter's lock to others."""
    if not by_threads:
        return [step() for step in steps]
    done = []

    def run(step: Callable[[], Any]) -> Any:
        result = step()
        release_unused()
        return result

    release_unused()
    with ThreadPoolExecutor(BUILDERS) as pool:
        for result in pool.map(run, steps):
            check_cancelled()
            done.append(result)
    return done


def _summaries(definition: MapDefinition, arrays: list[pa.Array]) -> dict[str, ColumnSummary]:
    return {
        column.name: summarise(array, column.type) for column, array in zip(definition.columns, arrays, strict=True)
    }


def _key_table(definition: MapDefinition, columns: list[pa.Array]) -> np.ndarray:
    """Build the key table and refuse duplicate keys. Only rows whose hashes begin alike are compared."""
    words = key_hashes(definition, columns)
    mask = sort_with_positions(words)
    table = TableBuilder(len(words))
    key_at = key_reader(definition, columns)
    seen: dict[int, set[Any]] = {}
    for start in range(0, len(words), BLOCK):
        # One more at the end: neighbours may lie in two blocks.
        part = words[start : start + BLOCK + 1]
        rows, beginnings = (part & mask).view(np.int64), part & ~mask
        for number in np.flatnonzero(beginnings[1:] == beginnings[:-1]).tolist():
            keys = seen.setdefault(int(beginnings[number]), {key_at(int(rows[number]))})
            key = key_at(int(rows[number + 1]))
            if key in keys:
                raise duplicate_key(definition, key)
            keys.add(key)
        table.add(part[:BLOCK], (rows[:BLOCK] + 1).astype(np.uint32))
    return table.finish()


def partition_ids(definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray]) -> np.ndarray:
    """Return the partition of every row, as 16 bits where they suffice: numpy sorts those fastest."""
    numbers = definition.positions(definition.partitioned_by)
    hashes = hash_columns([columns[number] for number in numbers], [definition.columns[n].type for n in numbers])
    return (hashes % definition.partitions).astype(np.uint16 if definition.partitions <= MOST_PARTITIONS else np.int64)


def key_hashes(definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray]) -> np.ndarray:
    """Return the unsigned hash of every row's whole key, in memory of its own."""
    numbers = definition.positions(definition.key)
    hashes = hash_columns([columns[number] for number in numbers], [definition.columns[n].type for n in numbers])
    return hashes.view(np.uint64)


def encoded(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a string column as codes of a *sorted* dictionary where that pays, so that codes compare as the strings
    do.

    All other columns stay as they are, in their chunks: their rows are copied once, when they are taken. So do texts
    that are too long for one array.
    """
    if is_dictionary(column):
        if fits_one_array(column):
            column = flat(column)
            if _is_proper_dictionary(column):
                return _with_sorted_dictionary(column)
        column = decoded(column)
    if not pa.types.is_string(column.type) or mostly_distinct(column) or not fits_one_array(column):
        return column
    array = _codes(column)
    if len(array.dictionary) > (len(array) - array.null_count) * DICTIONARY_SHARE:
        return column
    return _with_sorted_dictionary(array)


def compacted(array: pa.Array) -> pa.Array:
    """Return a dictionary column without the values that no row has."""
    if not is_dictionary(array):
        return array
    codes, nulls = code_values(array), null_mask(array)
    used = np.zeros(len(array.dictionary), np.bool_)
    used[codes if nulls is None else codes[~nulls]] = True
    if bool(used.all()):
        return array
    renumbered = (np.cumsum(used) - 1).astype(np.int32)
    return _dictionary_array(renumbered, codes, nulls, array.dictionary.filter(pa.array(used)))


def key_reader(definition: MapDefinition, columns: Sequence[pa.Array] | Mapping[int, pa.Array]) -> Callable[[int], Any]:
    """Return the function from a position to the key of that row. Of the columns only those of the key are needed."""
    numbers = definition.positions(definition.key)
    values = [value_reader(columns[number], definition.columns[number].type) for number in numbers]
    if len(values) == 1:
        (only,) = values
        return lambda position: hashable(only(position))
    return lambda position: tuple([hashable(value(position)) for value in values])


def duplicate_key(definition: MapDefinition, key: Any) -> ConstraintError:
    values = key if len(definition.key) > 1 else (key,)
    types = [definition.column(name).type for name in definition.key]
    given = [to_python(type_, value) for type_, value in zip(types, values, strict=True)]
    named = ", ".join(f"{name} = {shown(value)}" for name, value in zip(definition.key, given, strict=True))
    return constraint_error(duplicate_error, f"duplicate key in {definition.name}: {named}", definition.key)


def _is_proper_dictionary(array: pa.DictionaryArray) -> bool:
    """Tell whether a dictionary has distinct values and no NULL.

    Arrow allows a dictionary with NULLs and with repeated values; both would make unequal codes of equal values.
    """
    dictionary = array.dictionary
    return (
        pa.types.is_string(dictionary.type)
        and dictionary.null_count == 0
        and len(dictionary) <= len(array) * DICTIONARY_SHARE
        and pc.count_distinct(dictionary).as_py() == len(dictionary)
    )


def mostly_distinct(array: pa.Array | pa.ChunkedArray) -> bool:
    """Estimate whether the values of a column are mostly distinct.

    Judged by the first rows, to save the encoding of a whole column that would be thrown away.
    """
    sample = array.slice(0, sample_rows(array))
    return bool(pc.count_distinct(sample).as_py() > len(sample) * 0.9)


def _codes(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Concatenate the codes of chunks.

    All chunks are given the same dictionary, so only codes are put together. Arrow, which does not know that, would
    compare the dictionaries of all chunks value by value: more work than the encoding from some tens of chunks on.
    """
    array = pc.dictionary_encode(column)
    if isinstance(array, pa.DictionaryArray) or array.num_chunks == 0:
        return flat(array)
    codes = pa.concat_arrays([chunk.indices for chunk in array.chunks])
    return pa.DictionaryArray.from_arrays(codes, array.chunk(0).dictionary)


def _with_sorted_dictionary(array: pa.DictionaryArray) -> pa.Array:
    dictionary = array.dictionary
    order = pc.sort_indices(dictionary).to_numpy()
    if bool(np.all(order[1:] > order[:-1])) and array.indices.type == pa.int32():
        return array
    codes = np.empty(len(order), np.int32)
    codes[order] = np.arange(len(order), dtype=np.int32)
    return _dictionary_array(codes, code_values(array), null_mask(array), dictionary.take(pa.array(order)))


def _dictionary_array(
    renumbered: np.ndarray, codes: np.ndarray, nulls: np.ndarray | None, dictionary: pa.Array
) -> pa.Array:
    moved = renumbered.take(codes, mode="clip") if len(renumbered) else np.zeros(len(codes), np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(moved, mask=nulls), dictionary)
