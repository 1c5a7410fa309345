"""Sorting by integers: every key of an order becomes a number of a few bits, and numbers are packed into 64-bit words.

    ORDER BY day DESC NULLS LAST, price      is NULL   last day - day   price, as an integer that orders alike
                                              1 bit        9 bits               60 bits
    position, of 1,000 rows                  10 bits

A word holds the first bits of the keys and, lowest, the position of the row: sorted, words give the positions, and rows
that tie stay in the order they came in. Sorting the words themselves is several times faster than sorting positions by
what they refer to. Where not all bits fit, here 54 of 70, rows that tie in those that do are sorted among themselves by
the bits that are left; few do.

Measured, a million timestamps, the kernels alone: 18 ms (`np.sort` of words), 195 (Arrow's `sort_indices`), 77
(`np.argsort`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from remuda.types.arrow_arrays import (
    buffer_values,
    code_values,
    decimal_words,
    first_present,
    is_dictionary,
    null_positions,
)
from remuda.types.arrow_compute import pc
from remuda.types.normalized_key import float_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.traits import Collation, SortKey

WORD = 64
_SIGN = np.uint64(1 << 63)


class Part(NamedTuple):
    """A key, or some bits of one: for each row a number below `2**width`."""

    values: np.ndarray
    width: int


def sort_parts(batch: pa.RecordBatch, ordinals: Sequence[int], collation: Collation) -> list[Part] | None:
    """Return the keys of an order as integers, first ones first; None where one of them is of another type."""
    parts: list[Part] = []
    for ordinal, key in zip(ordinals, collation, strict=True):
        found = _parts_of(batch.column(ordinal), key)
        if found is None:
            return None
        parts.extend(found)
    return parts


def _parts_of(column: pa.Array, key: SortKey) -> list[Part] | None:
    words = _words(column)
    if words is None:
        return None
    nulls = null_positions(column)
    if nulls is None:
        return [Part(*_distances(values, key)) for values in words]
    if len(nulls) == len(column):
        return [Part(np.zeros(len(column), np.uint64), 0)]
    for values in words:
        values[nulls] = values[first_present(nulls)]  # what lies at a NULL is arbitrary, and no end of the values
    parts = [Part(*_distances(values, key)) for values in words]
    if len(parts) > 1 or parts[0].width >= WORD:
        is_behind = np.full(len(column), key.nulls_first, np.uint64)
        is_behind[nulls] = not key.nulls_first
        return [Part(is_behind, 1), *parts]
    return [_beside_nulls(parts[0], nulls, first=key.nulls_first)]


def _distances(values: np.ndarray, key: SortKey) -> tuple[np.ndarray, int]:
    """Return how far values are from the first one of the order, and the bits of the farthest."""
    lowest, highest = (values.min(), values.max()) if len(values) else (np.uint64(0), np.uint64(0))
    distances = highest - values if key.descending else values - lowest
    return distances, int(highest - lowest).bit_length()


def _beside_nulls(part: Part, nulls: np.ndarray, *, first: bool) -> Part:
    """Make NULL one number more, before all others or behind them, where 64 bits have room for it.

    A part of its own for a bit that tells NULLs apart would be packed with all rows.
    """
    values, width = part
    if not first:
        values[nulls] = 1 << width
        return Part(values, width + 1)
    values += np.uint64(1)
    values[nulls] = 0
    return Part(values, width + 1)


def _words(column: pa.Array) -> list[np.ndarray] | None:
    """Return unsigned words that order as the values do, the first ones deciding; arbitrary at a NULL."""
    arrow = column.type
    if is_dictionary(column):
        codes = code_values(column)
        if not len(column.dictionary):
            return [np.zeros(len(codes), np.uint64)]
        return [_ranks(column.dictionary).take(codes, mode="clip")]
    if pa.types.is_floating(arrow):
        return [_unsigned(float_keys(buffer_values(column, 1, f"<f{arrow.bit_width // 8}")))]
    if pa.types.is_decimal128(arrow):
        low, high = decimal_words(column)
        signed = high.astype(np.uint64) ^ _SIGN
        # As long as the upper word only repeats the sign, the lower one alone tells them apart.
        one_word = low.astype(np.int64)
        return [_unsigned(one_word)] if bool((high == one_word >> 63).all()) else [signed, low.copy()]
    if pa.types.is_boolean(arrow):
        column = column.cast(pa.int8())
    elif not (pa.types.is_signed_integer(arrow) or pa.types.is_temporal(arrow)) or pa.types.is_interval(arrow):
        return None
    return [_unsigned(buffer_values(column, 1, f"<i{column.type.bit_width // 8}").astype(np.int64))]


def _unsigned(values: np.ndarray) -> np.ndarray:
    words: np.ndarray = values.view(np.uint64) ^ _SIGN
    return words


def _ranks(dictionary: pa.Array) -> np.ndarray:
    """Rank the values of a dictionary; most are sorted and have each value once, so that its position is its rank."""
    in_order = pc.less(dictionary.slice(0, len(dictionary) - 1), dictionary.slice(1))
    if in_order.true_count == len(in_order):
        return np.arange(len(dictionary), dtype=np.uint64)
    ranks: np.ndarray = pc.rank(dictionary, sort_keys="ascending", tiebreaker="min").to_numpy()
    return ranks.astype(np.uint64)


def sorted_by(parts: Sequence[Part], rows: int) -> np.ndarray:
    """Return the positions of the rows in the order of the parts; rows that tie in all of them in their own order."""
    room = WORD - rows.bit_length()
    words, left = _packed(parts, rows, room)
    words <<= np.uint64(WORD - room)
    words |= np.arange(rows, dtype=np.uint64)
    words.sort()
    positions = (words & np.uint64((1 << (WORD - room)) - 1)).view(np.int64)
    if left:
        words >>= np.uint64(WORD - room)
        _sort_ties(positions, words, left)
    return positions


def _packed(parts: Sequence[Part], rows: int, room: int) -> tuple[np.ndarray, list[Part]]:
    """Pack the first bits of the parts, as many as there is room for; return the parts with the bits that are left."""
    words = np.zeros(rows, np.uint64)
    left: list[Part] = []
    for values, width in parts:
        fitting = 0 if left else min(width, room)
        if fitting:
            words <<= np.uint64(fitting)
            words |= values >> np.uint64(width - fitting)
            room -= fitting
        if fitting < width:
            rest = np.uint64((1 << (width - fitting)) - 1)
            left.append(Part(values & rest, width - fitting))
    return words, left


def _sort_ties(positions: np.ndarray, words: np.ndarray, left: Sequence[Part]) -> None:
    """Sort the rows within each run of equal words by what is left of their keys."""
    same = words[1:] == words[:-1]
    if not same.any():
        return
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    runs = np.cumsum(np.append(True, words[tied[1:]] != words[tied[:-1]])).astype(np.uint64)
    rows = positions[tied]
    run = Part(runs, len(tied).bit_length())
    positions[tied] = rows[sorted_by([run, *(Part(values[rows], width) for values, width in left)], len(tied))]


def changes(parts: Sequence[Part], positions: np.ndarray) -> np.ndarray:
    """Return, for rows in an order, whether a row differs from the one before it in any part; the first one does."""
    changed = np.zeros(len(positions), np.bool_)
    changed[:1] = True
    for values, _ in parts:
        in_order = values.take(positions)
        changed[1:] |= in_order[1:] != in_order[:-1]
    return changed
