"""Numbers for distinct strings.

A dictionary is looked up once and its numbers are spread over the codes; strings written out are hashed, and what a
hash finds is compared, so that two strings of one hash are never taken for the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.exec.keys.integer_interner import NOT_FOUND, IntegerInterner
from remuda.types import VARCHAR
from remuda.types.arrow_arrays import code_values, is_dictionary
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Callable

DICTIONARY_SHARE = 8
"""A dictionary with more than this many values for each row at hand is not worth looking up as a whole."""


class TextInterner:
    def __init__(self, values: pa.Array) -> None:
        """`values` has no NULL."""
        encoded = _with_used_values(values) if is_dictionary(values) else values.dictionary_encode()
        distinct = encoded.dictionary
        self.given = encoded.indices.to_numpy().astype(np.int32, copy=False)
        self.count = len(distinct)
        self._distinct = distinct
        self._find_plain = self._finder(distinct)
        self._dictionaries: list[tuple[pa.Array, np.ndarray]] = []

    def _finder(self, distinct: pa.Array) -> Callable[[pa.Array], np.ndarray]:
        by_hash = IntegerInterner(hash_columns([distinct], [VARCHAR]))
        if by_hash.count < self.count:  # two of the strings have one hash
            return self._search
        first_with = np.empty(self.count, np.int32)
        first_with[by_hash.given] = np.arange(self.count, dtype=np.int32)

        def find(values: pa.Array) -> np.ndarray:
            numbers = by_hash.find(hash_columns([values], [VARCHAR]))
            hits = np.flatnonzero(numbers >= 0)
            numbers[hits] = first_with[numbers[hits]]
            chosen = values if len(hits) == len(values) else values.take(pa.array(hits))
            same = pc.fill_null(pc.equal(distinct.take(pa.array(numbers[hits])), chosen), False)
            if same.true_count < len(hits):
                numbers[hits[~same.to_numpy(zero_copy_only=False)]] = NOT_FOUND
            return numbers

        return find

    def _search(self, values: pa.Array) -> np.ndarray:
        found = pc.fill_null(pc.index_in(values, self._distinct), NOT_FOUND)
        numbers: np.ndarray = found.to_numpy().copy()
        return numbers

    def find(self, values: pa.Array) -> np.ndarray:
        if not is_dictionary(values):
            return self._find_plain(values)
        known = self._of_dictionary(values.dictionary, len(values))
        if known is None:
            return self._find_plain(values.dictionary_decode())
        if not len(known):
            return np.full(len(values), NOT_FOUND, np.int32)
        # The code at a NULL is arbitrary: "clip" keeps it inside.
        return known.take(code_values(values), mode="clip")

    def _of_dictionary(self, dictionary: pa.Array, rows: int) -> np.ndarray | None:
        """The numbers of a dictionary's values, kept: batches of one segment share their dictionary."""
        for known, numbers in self._dictionaries:
            if is_same_memory(known, dictionary):
                return numbers
        if len(dictionary) > DICTIONARY_SHARE * rows:
            return None
        numbers = self._find_plain(dictionary)
        self._dictionaries.append((dictionary, numbers))
        return numbers


def is_same_memory(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are views of the same values; not so is no proof that they differ."""
    if one is other:
        return True
    if len(one) != len(other) or one.offset != other.offset:
        return False
    return all(
        (mine is None and theirs is None)
        or (mine is not None and theirs is not None and mine.address == theirs.address and mine.size == theirs.size)
        for mine, theirs in zip(one.buffers(), other.buffers(), strict=True)
    )


def _with_used_values(values: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same rows over a dictionary that has each value once, and no value that no row has."""
    used = values.indices.dictionary_encode()
    distinct = values.dictionary.take(used.dictionary)
    merged = distinct.dictionary_encode()
    if len(merged.dictionary) == len(distinct):
        return pa.DictionaryArray.from_arrays(used.indices, distinct)
    return pa.DictionaryArray.from_arrays(merged.indices.take(used.indices), merged.dictionary)
