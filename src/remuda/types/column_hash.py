"""The hash of `partition_hash` over whole columns: xxHash64 written out in numpy for values shorter than 32 bytes.

Work goes in chunks that stay in the processor's cache; strings are grouped by length; a dictionary is hashed once.
"""

from __future__ import annotations

from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from xxhash import xxh64_intdigest

from remuda.types.arrow_arrays import (
    code_values,
    decimal_words,
    distinct_values,
    fixed_values,
    flat,
    is_dictionary,
    null_mask,
    string_parts,
)
from remuda.types.arrow_texts import fits_one_array
from remuda.types.partition_hash import NANOSECONDS, SEED, big_integer_bytes
from remuda.types.sql_type import BIGINT, LONG_DIGITS, Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence


_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)

_EIGHT_BYTES = frozenset({Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})

_CHUNK = 32_768
_STRIPED = 32
"""From this length on xxHash64 works in stripes of 32 bytes: left to the package."""

_NULL_MARK = 0xFF
"""The byte hashed for NULL where NULL is a value; it never occurs in UTF-8."""


def hash_columns(
    columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[SqlType], *, null_is_value: bool = False
) -> np.ndarray:
    """Return the signed hash of every row.

    With `null_is_value` a NULL changes the hash, so that (NULL, 'a') and ('a', NULL) fall apart: for indexes, which
    find NULLs; never for partition ids, where Spark leaves the seed as it is.
    """
    for column in columns:
        if isinstance(column, pa.ChunkedArray) and not fits_one_array(column):
            ends = np.cumsum([0, *map(len, column.chunks)]).tolist()
            pieces = [[each.slice(start, stop - start) for each in columns] for start, stop in pairwise(ends)]
            return np.concatenate(
                [hash_columns(piece, types, null_is_value=null_is_value) for piece in pieces if len(piece[0])]
            )
    seeds: np.ndarray | None = None
    for column, sql_type in zip(columns, types, strict=True):
        array = flat(column)
        hashes = _hash_array(array, sql_type, seeds)
        nulls = null_mask(array)
        if nulls is not None:
            before = np.full(len(array), SEED, np.uint64) if seeds is None else seeds
            unchanged = _hash_bytes(np.full(len(array), _NULL_MARK, np.uint64), before) if null_is_value else before
            hashes = np.where(nulls, unchanged, hashes)
        seeds = hashes
    assert seeds is not None, "a hash is of at least one column"
    return seeds.view(np.int64)


def hash_whole_numbers(numbers: np.ndarray, sql_type: SqlType) -> np.ndarray:
    """Return the unsigned hashes of stored integers, DATEs or TIMESTAMPs, given as `int64`."""
    if sql_type.kind in _EIGHT_BYTES:
        return _hash_words(numbers.view(np.uint64), 8, None)
    return _hash_words(numbers.astype(np.int32).view(np.uint32), 4, None)


def _hash_array(array: pa.Array, sql_type: SqlType, seeds: np.ndarray | None) -> np.ndarray:
    if is_dictionary(array):
        if seeds is None and len(array.dictionary) <= len(array):
            hashed = _hash_array(array.dictionary, sql_type, None)
            # The code at a NULL is arbitrary: "clip" keeps it inside.
            return hashed.take(code_values(array), mode="clip") if len(hashed) else np.zeros(len(array), np.uint64)
        array = array.dictionary_decode()
    match sql_type.kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return _hash_strings(array, seeds)
        case Kind.DECIMAL if sql_type.precision > LONG_DIGITS:
            return _hash_big_decimals(array, seeds)
        case _:
            words, width = _words(array, sql_type)
            return _hash_words(words, width, seeds)


def _words(array: pa.Array, sql_type: SqlType) -> tuple[np.ndarray, int]:
    """Return the bytes hashed for each value, as integers, and how many bytes they are."""
    match sql_type.kind:
        case Kind.INTERVAL_MONTHS | Kind.INTERVAL_TIME:  # no map is partitioned by one, but rows meet by it
            return fixed_values(array.view(pa.int64()), BIGINT).view(np.uint64), 8
        case Kind.DECIMAL:
            return decimal_words(array)[0], 8
        case Kind.DOUBLE:
            doubles = fixed_values(array, sql_type) + 0.0
            doubles[np.isnan(doubles)] = np.nan
            return doubles.view(np.uint64), 8
        case Kind.REAL:
            floats = fixed_values(array, sql_type) + np.float32(0.0)
            floats[np.isnan(floats)] = np.nan
            return floats.view(np.uint32), 4
        case Kind.TIME:
            return (fixed_values(array, sql_type) * NANOSECONDS).view(np.uint64), 8
        case kind if kind in _EIGHT_BYTES:
            return fixed_values(array, sql_type).view(np.uint64), 8
        case _:
            return fixed_values(array, sql_type).astype(np.int32, copy=False).view(np.uint32), 4


def _hash_words(words: np.ndarray, width: int, seeds: np.ndarray | None) -> np.ndarray:
    hashes = np.empty(len(words), np.uint64)
    for start in range(0, len(words), _CHUNK):
        part = slice(start, start + _CHUNK)
        state = _start(seeds, part, width)
        mix = _mix_eight if width == 8 else _mix_four
        hashes[part] = _avalanche(mix(state, words[part].astype(np.uint64, copy=False)))
    return hashes


def _hash_bytes(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    return _avalanche(_mix_one(seeds + (_P5 + np.uint64(1)), values))


def _hash_strings(array: pa.Array, seeds: np.ndarray | None) -> np.ndarray:
    offsets, data = string_parts(array)
    lengths = np.diff(offsets)
    hashes = np.empty(len(array), np.uint64)
    # Eight more bytes let every string be read in whole words.
    padded = np.concatenate([data, np.zeros(8, np.uint8)]) if len(array) else data
    for length in distinct_values(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        if length < _STRIPED:
            for start in range(0, len(rows), _CHUNK):
                chosen = rows[start : start + _CHUNK]
                hashes[chosen] = _hash_short(padded, offsets[chosen], length, _start(seeds, chosen, length))
        else:
            raw = data.tobytes()
            texts = [raw[begin : begin + length] for begin in offsets[rows].tolist()]
            chained = repeat(SEED) if seeds is None else seeds[rows].tolist()
            hashes[rows] = np.fromiter(map(xxh64_intdigest, texts, chained), np.uint64, len(rows))
    return hashes


def _hash_short(data: np.ndarray, starts: np.ndarray, length: int, state: np.ndarray) -> np.ndarray:
    """Strings of one length, given by where they start, in the order of xxHash64: words, a half word, bytes."""
    # A view of the 8 bytes beginning at each byte: unaligned, which numpy reads correctly.
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    done = 0
    while length - done >= 8:
        state = _mix_eight(state, words[starts + done])
        done += 8
    if length - done >= 4:
        state = _mix_four(state, words[starts + done] & np.uint64(0xFFFFFFFF))
        done += 4
    for position in range(done, length):
        state = _mix_one(state, data[starts + position].astype(np.uint64))
    return _avalanche(state)


def _hash_big_decimals(array: pa.Array, seeds: np.ndarray | None) -> np.ndarray:
    low, high = decimal_words(array)
    chained = repeat(SEED) if seeds is None else seeds.tolist()
    values = ((above << 64) | below for above, below in zip(high.tolist(), low.tolist(), strict=True))
    digests = (xxh64_intdigest(big_integer_bytes(value), seed) for value, seed in zip(values, chained, strict=False))
    return np.fromiter(digests, np.uint64, len(array))


def _start(seeds: np.ndarray | None, rows: slice | np.ndarray, length: int) -> np.ndarray:
    fixed = _P5 + np.uint64(length)
    return np.full(1, np.uint64(SEED) + fixed) if seeds is None else seeds[rows] + fixed


def _mix_eight(state: np.ndarray, words: np.ndarray) -> np.ndarray:
    return _rotate(state ^ (_rotate(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _mix_four(state: np.ndarray, words: np.ndarray) -> np.ndarray:
    return _rotate(state ^ (words * _P1), 23) * _P2 + _P3


def _mix_one(state: np.ndarray, values: np.ndarray) -> np.ndarray:
    return _rotate(state ^ (values * _P5), 11) * _P1


def _avalanche(state: np.ndarray) -> np.ndarray:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    mixed: np.ndarray = state ^ (state >> np.uint64(32))
    return mixed


def _rotate(words: np.ndarray, bits: int) -> np.ndarray:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
