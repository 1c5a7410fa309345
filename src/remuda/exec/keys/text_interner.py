"""Interning of strings and byte strings.

The ids of a dictionary's values are kept and spread over the codes, as batches of one segment share their dictionary.
Another segment has a dictionary of its own, often with the same values: then the ids are the same. Else values are
known by their hash, and what a hash finds is compared, so that two strings of one hash are never taken for the same.

Measured, 100,000 strings of a second dictionary: 0.2 ms if they are the same, 76 by hash, 100 by a Python dictionary,
which keeps all other threads waiting.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.keys.integer_interner import NULL_ID, IntegerInterner
from remuda.exec.keys.integer_tables import NOT_FOUND
from remuda.types.arrow_arrays import code_values, distinct_values, is_dictionary, is_same_memory
from remuda.types.arrow_compute import pc
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from remuda.types import SqlType

INTERNED_SHARE = 256
"""A dictionary with more than this many values for each row at hand is not interned as a whole. Below it is, as other
rows will follow (measured with 30,000 values: it pays at 10 for each row, not at 2,500)."""
FOUND_SHARE = 8
"""The same where values are only looked up, each of which has to be hashed and compared."""

_KnownDictionaries = list[tuple[pa.Array, np.ndarray]]
"""Dictionaries, and the ids of their values."""
_IdsByValue = dict[str | bytes, int]


def used_values(column: pa.Array) -> pa.Array:
    """Return the same rows over a dictionary without the values that no row has; a plain array as it is.

    What has been interned over such a dictionary has an id only if a row has it.
    """
    if not is_dictionary(column):
        return column
    used = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, column.dictionary.take(used.dictionary))


class TextInterner:
    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self._values = _Values(sql_type)
        self._lock = Lock()
        self._hashes: IntegerInterner | None = None
        """Made when the values of one dictionary no longer are all there is."""
        self._by_value: _IdsByValue | None = None
        """Made when two strings have one hash."""
        self._only: pa.Array | None = None
        """The dictionary whose codes, plus one, the ids are, as long as there is no other."""
        self._interned: _KnownDictionaries = []
        self._found: _KnownDictionaries = []
        self._has_own_values = False
        """Whether values have come that belong to no dictionary of a segment."""

    @property
    def count(self) -> int:
        return self._values.count

    @property
    def bytes(self) -> int:
        """The memory of the texts; a dictionary that is all there is belongs to the map."""
        return 0 if self._only is not None and not self._has_own_values else self._values.bytes

    def intern(self, column: pa.Array, nulls: np.ndarray | None) -> np.ndarray:
        if not is_dictionary(column) or self._is_too_large(column):
            plain = column.dictionary_decode() if is_dictionary(column) else column
            self._has_own_values = True
            column = plain.dictionary_encode()
            ids_of_codes = self._intern(column.dictionary, all_differ=True)
        else:
            ids_of_codes = self._intern_dictionary(column.dictionary)
        if self._only is None:
            ids = _spread(ids_of_codes, column).astype(np.int64)
        else:
            ids = np.add(code_values(column), 1, dtype=np.int64)
        if nulls is not None:
            ids[nulls] = NULL_ID
        return ids

    def find(self, column: pa.Array) -> np.ndarray:
        if not is_dictionary(column):
            return self._find(column)
        dictionary = column.dictionary
        known = _ids_of(dictionary, self._interned)
        if known is None:
            known = _ids_of(dictionary, self._found)
        if known is None:
            if len(dictionary) > FOUND_SHARE * len(column):
                return self._find(column.dictionary_decode())
            known = self._find(dictionary)
            self._found.append((dictionary, known))
        return _spread(known, column)

    def take(self, ids: np.ndarray) -> pa.Array:
        if self._only is not None:
            # Over the same dictionary, by which an aggregate over these groups will know them.
            codes = pa.array(ids - 1, pa.int32(), mask=ids == NULL_ID)
            return pa.DictionaryArray.from_arrays(codes, self._only)
        return self._values.all().take(pa.array(ids))

    def _is_too_large(self, column: pa.DictionaryArray) -> bool:
        """Test whether a new dictionary has so many values that reading the rows is cheaper."""
        if len(column.dictionary) <= INTERNED_SHARE * len(column):
            return False
        return _ids_of(column.dictionary, self._interned) is None

    def _intern_dictionary(self, dictionary: pa.Array) -> np.ndarray:
        ids = _ids_of(dictionary, self._interned)
        if ids is None:
            ids = self._intern(dictionary)
            self._interned.append((dictionary, ids))
        return ids

    def _intern(self, values: pa.Array, *, all_differ: bool = False) -> np.ndarray:
        """Return the ids of values, of which `all_differ` says that none comes twice."""
        if self.count == 1 and (all_differ or _all_differ(values)):
            self._values.append(values)
            self._only = values
        if self._only is not None and values.equals(self._only):
            return np.arange(1, self.count, dtype=np.int32)
        hashes = self._hash_table()
        self._only = None
        self._found.clear()
        if hashes is not None:
            ids = hashes.intern(self._hash(values))
            if self._append(values, ids, hashes.count):
                return ids
            self._hashes, self._by_value = None, self._value_table()
        by_value = self._by_value
        assert by_value is not None, "there is one table or the other"
        ids = np.fromiter(
            (by_value.setdefault(value, len(by_value)) for value in values.to_pylist()), np.int32, len(values)
        )
        self._append(values, ids, len(by_value))
        return ids

    def _find(self, values: pa.Array) -> np.ndarray:
        if self._only is not None and values.equals(self._only):
            return np.arange(1, self.count, dtype=np.int32)
        hashes, by_value = self._hash_table(), self._by_value
        if hashes is None:
            assert by_value is not None, "there is one table or the other"
            return np.fromiter((by_value.get(value, NOT_FOUND) for value in values.to_pylist()), np.int32, len(values))
        ids = hashes.find(self._hash(values))
        hits = np.flatnonzero(ids >= 0)
        asked = values if len(hits) == len(values) else values.take(pa.array(hits))
        same = pc.fill_null(pc.equal(self._values.all().take(pa.array(ids[hits])), asked), False)
        if same.true_count < len(hits):
            ids[hits[~same.to_numpy(zero_copy_only=False)]] = NOT_FOUND
        return ids

    def _hash_table(self) -> IntegerInterner | None:
        """Return the ids by hash; None where two strings have one hash, which `_by_value` tells apart."""
        with self._lock:
            if self._hashes is None and self._by_value is None:
                hashes = self._hash(self._values.all().slice(1))
                if len(distinct_values(hashes)) == len(hashes):
                    self._hashes = IntegerInterner(hashes)
                else:
                    self._by_value = self._value_table()
            return self._hashes

    def _value_table(self) -> _IdsByValue:
        return dict(zip(self._values.all().to_pylist(), range(self.count), strict=True))

    def _hash(self, values: pa.Array) -> np.ndarray:
        return hash_columns([values], [self._type])

    def _append(self, values: pa.Array, ids: np.ndarray, count: int) -> bool:
        """Note the values of new ids; False, and nothing is noted, where an id has another value already."""
        new = np.flatnonzero(ids >= self.count)
        row_of = np.empty(count - self.count, np.int64)
        row_of[ids[new] - self.count] = new
        added = values.take(pa.array(row_of))
        if not self._values.match(ids, values, added):
            return False
        self._values.append(added)
        return True


def _ids_of(dictionary: pa.Array, known: _KnownDictionaries) -> np.ndarray | None:
    return next((ids for each, ids in known if is_same_memory(each, dictionary)), None)


def _spread(ids_of_codes: np.ndarray, column: pa.DictionaryArray) -> np.ndarray:
    if not len(ids_of_codes):
        return np.full(len(column), NOT_FOUND, np.int32)
    # The code at a NULL is arbitrary: "clip" keeps it inside.
    return ids_of_codes.take(code_values(column), mode="clip")


def _all_differ(values: pa.Array) -> bool:
    """Dictionaries of segments are sorted, which is quickly seen."""
    ascending = pc.less(values.slice(0, max(len(values) - 1, 0)), values.slice(1))
    return ascending.true_count == len(ascending) or len(values.unique()) == len(values)


class _Values:
    """The values by id, NULL first, in chunks each more than twice as long as the next, so that few are copied."""

    def __init__(self, sql_type: SqlType) -> None:
        self._chunks: list[pa.Array] = [pa.nulls(1, sql_type.arrow)]
        self.count = 1

    def append(self, values: pa.Array) -> None:
        if not len(values):
            return
        self._chunks.append(values)
        self.count += len(values)
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= 2 * len(self._chunks[-1]):
            self._chunks[-2:] = [pa.concat_arrays(self._chunks[-2:])]

    @property
    def bytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def all(self) -> pa.Array:
        if len(self._chunks) > 1:
            self._chunks = [pa.concat_arrays(self._chunks)]
        return self._chunks[0]

    def match(self, ids: np.ndarray, values: pa.Array, added: pa.Array) -> bool:
        """Test whether each id stands for the value; `added` are the values of ids that are not among the chunks."""
        first = 0
        for chunk in (*self._chunks, added):
            rows = np.flatnonzero((ids >= first) & (ids < first + len(chunk)))
            same = pc.equal(chunk.take(pa.array(ids[rows] - first)), values.take(pa.array(rows)))
            if same.true_count < len(rows):
                return False
            first += len(chunk)
        return True
