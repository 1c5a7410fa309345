"""Rows of one upsert that have the same key: one of them wins, by a column that says which is the newest, or none."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.storage.segment.row_order import stable_order
from remuda.storage.segment.segment_builder import duplicate_key, key_hashes, key_reader
from remuda.types.arrow_arrays import is_dictionary
from remuda.types.arrow_compute import pc
from remuda.types.arrow_texts import gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.errors import ConstraintError


class Arrival(Enum):
    """The order in which the rows of a statement come. A load has none: its rows come from many files and tasks."""

    LAST = "last"


LAST: Final = Arrival.LAST
OrderBy = str | Arrival | None
"""Which of several rows with one key wins: the one that is greatest in a column, the last one, or none is allowed."""

Ranks: TypeAlias = "Sequence[int] | np.ndarray | None"


def one_of_each_key(
    definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray], order_by: OrderBy
) -> list[pa.Array | pa.ChunkedArray]:
    """Return the rows of an upsert with each key once: of several rows the one that `order_by` says."""
    arrays = list(columns)
    kept, ties = newest_rows(definition, arrays, lambda at: _ranks(definition, arrays, at, order_by))
    if ties:
        raise twice_in_upsert(definition, next(iter(ties)), order_by)
    return arrays if kept is None else [array.filter(pa.array(kept)) for array in arrays]


def shares_with_each_key_once(
    definition: MapDefinition, columns: Sequence[pa.Array | pa.ChunkedArray], order_by: OrderBy
) -> list[list[pa.Array | pa.ChunkedArray]]:
    """Return a part of the rows of an upsert with each key once.

    Where two rows of a key are the newest of this part, one more of each such key is in a second list. A newer one may
    be in another part: only where all segments of the upsert meet is it known whether the two are refused.
    """
    arrays = list(columns)
    kept, ties = newest_rows(definition, arrays, lambda at: _ranks(definition, arrays, at, order_by))
    if kept is None:
        return [arrays]
    shares = [[array.filter(pa.array(kept)) for array in arrays]]
    if ties:
        positions = pa.array(sorted(ties.values()))
        shares.append([array.take(positions) for array in arrays])
    return shares


def newest_rows(
    definition: MapDefinition,
    arrays: Sequence[pa.Array | pa.ChunkedArray],
    ranks: Ranks | Callable[[pa.Array], Ranks],
) -> tuple[np.ndarray | None, dict[Any, int]]:
    """Tell for each row whether it is the newest of its key; None where each key is there once.

    Of rows of the same age one is the newest; the keys that have such rows come with the position of another of them.
    `ranks` are numbers that order the rows, or give those of the rows at some positions.
    """
    hashes = key_hashes(definition, arrays)
    order = stable_order(hashes)
    hashes = hashes[order]
    repeated = np.zeros(len(order), np.bool_)
    repeated[:-1] = hashes[1:] == hashes[:-1]
    repeated[1:] |= repeated[:-1].copy()
    if not bool(repeated.any()):
        return None, {}
    rows = np.sort(order[repeated])
    positions = pa.array(rows)
    keys = definition.positions(definition.key)
    key_at = key_reader(definition, {number: gathered(arrays[number], positions) for number in keys})
    own: Ranks = None
    if callable(ranks):
        own = ranks(positions)
    elif ranks is not None:
        own = np.asarray(ranks)[rows]
    newest: dict[Any, int] = {}
    ties: dict[Any, int] = {}
    for number in range(len(rows)):
        key = key_at(number)
        other = newest.setdefault(key, number)
        if other == number:
            continue
        if own is None:
            raise twice_in_upsert(definition, key, None)
        if own[number] > own[other]:
            newest[key] = number
            ties.pop(key, None)
        elif own[number] == own[other]:
            ties[key] = int(rows[number])
    kept = np.ones(len(order), np.bool_)
    kept[rows] = False
    kept[rows[list(newest.values())]] = True
    return kept, ties


def _ranks(
    definition: MapDefinition, arrays: Sequence[pa.Array | pa.ChunkedArray], positions: pa.Array, order_by: OrderBy
) -> Ranks:
    if order_by is LAST:
        return range(len(positions))
    return None if order_by is None else order_ranks(gathered(arrays[definition.position(order_by)], positions))


def order_ranks(values: pa.Array) -> np.ndarray:
    """Return numbers that order rows as the values do: NULL before all others, NaN behind infinity."""
    array = values.dictionary_decode() if is_dictionary(values) else values
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    ranks = np.zeros(len(array), np.int64)
    present = np.asarray(array.is_valid())
    ranks[present] = np.asarray(pc.rank(array.drop_null(), sort_keys="ascending", tiebreaker="dense"))
    return ranks


def twice_in_upsert(definition: MapDefinition, key: Any, order_by: OrderBy) -> ConstraintError:
    """Report two rows of one upsert with the same key, of which no column says which is the newer one."""
    error = duplicate_key(definition, key)
    if order_by is None:
        error.suggestion = (
            'Name the column whose greatest value wins: order_by="...", in Spark option("orderBy", "...").'
        )
    else:
        error.message += f", twice with the same {order_by}"
    return error
