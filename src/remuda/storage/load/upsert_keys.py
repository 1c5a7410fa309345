"""Rows of one upsert that have the same key: one of them wins, by a column that says which is the newest, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.storage.segment.row_order import stable_order
from remuda.storage.segment.segment_builder import duplicate_key, key_hashes, key_reader
from remuda.types.arrow_arrays import flat, is_dictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.errors import ConstraintError


def one_of_each_key(
    definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray], order_by: str | None
) -> list[pa.Array]:
    """Return the rows of an upsert with each key once: of several rows the one that is greatest in a column.

    Without such a column rows with equal keys are refused: an order of rows is nothing that a load has everywhere.
    """
    arrays = [flat(column) for column in columns]
    hashes = key_hashes(definition, arrays)
    order = stable_order(hashes)
    hashes = hashes[order]
    repeated = np.zeros(len(order), np.bool_)
    repeated[:-1] = hashes[1:] == hashes[:-1]
    repeated[1:] |= repeated[:-1].copy()
    if not bool(repeated.any()):
        return arrays
    key_at = key_reader(definition, arrays)
    ranks = None if order_by is None else order_ranks(arrays[definition.position(order_by)])
    newest: dict[Any, int] = {}
    ties: set[Any] = set()
    for row in np.sort(order[repeated]).tolist():
        key = key_at(row)
        other = newest.setdefault(key, row)
        if other == row:
            continue
        if ranks is None:
            raise twice_in_upsert(definition, key, None)
        if ranks[row] > ranks[other]:
            newest[key] = row
            ties.discard(key)
        elif ranks[row] == ranks[other]:
            ties.add(key)
    if ties:
        raise twice_in_upsert(definition, ties.pop(), order_by)
    kept = np.ones(len(order), np.bool_)
    kept[order[repeated]] = False
    kept[list(newest.values())] = True
    return [array.filter(pa.array(kept)) for array in arrays]


def order_ranks(values: pa.Array) -> np.ndarray:
    """Return numbers that order rows as the values do: NULL before all others, NaN as infinity."""
    array = values.dictionary_decode() if is_dictionary(values) else values
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(np.inf, array.type), array)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    ranks = np.zeros(len(array), np.int64)
    present = np.asarray(array.is_valid())
    ranks[present] = np.asarray(pc.rank(array.drop_null(), sort_keys="ascending", tiebreaker="dense"))
    return ranks


def twice_in_upsert(definition: MapDefinition, key: Any, order_by: str | None) -> ConstraintError:
    """Report two rows of one upsert with the same key, of which no column says which is the newer one."""
    error = duplicate_key(definition, key)
    if order_by is None:
        error.suggestion = (
            'Name the column whose greatest value wins: order_by="...", in Spark option("orderBy", "...").'
        )
    else:
        error.message += f", twice with the same {order_by}"
    return error
