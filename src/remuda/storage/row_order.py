"""The order of rows by integer keys, equal keys in order of position.

Sorting numbers is six times as fast in numpy as sorting their indices (16 against 100 ms for a million). So key and
position are packed into one word, the position in the low bits, and the words are sorted. Where a key is too wide for
the bits that are left, its low bits are dropped; the few runs of rows that differ in nothing else are sorted again.

    keys 70 30 70      words 70:0 30:1 70:2      sorted 30:1 70:0 70:2      order 1 0 2
"""

from __future__ import annotations

import numpy as np

_WORD = 64
_MOST_REPAIRS = 1000
"""With more runs than this the keys are of a kind for which the trick does not pay."""


def stable_order(keys: np.ndarray) -> np.ndarray:
    """The same as `numpy.argsort(keys, kind="stable")`, for integers."""
    rows = len(keys)
    if rows < 2:
        return np.zeros(rows, np.int64)
    low, high = int(keys.min()), int(keys.max())
    position_bits = (rows - 1).bit_length()
    dropped = max(0, (high - low).bit_length() - (_WORD - position_bits))
    # Unsigned arithmetic wraps, so the difference is right even where a signed one would overflow.
    words = keys.astype(np.int64).view(np.uint64) if keys.dtype.kind == "i" else keys.astype(np.uint64)
    words -= np.uint64(low % (1 << _WORD))
    words >>= np.uint64(dropped)
    words <<= np.uint64(position_bits)
    words |= np.arange(rows, dtype=np.uint64)
    words.sort()
    order = (words & np.uint64((1 << position_bits) - 1)).view(np.int64)
    return _repaired(order, keys, words >> np.uint64(position_bits)) if dropped else order


def _repaired(order: np.ndarray, keys: np.ndarray, prefixes: np.ndarray) -> np.ndarray:
    """The order with every run of equal prefixes sorted by the whole key."""
    ordered = keys.take(order)
    wrong = np.unique(prefixes[1:][ordered[1:] < ordered[:-1]])
    if len(wrong) > _MOST_REPAIRS:
        return np.argsort(keys, kind="stable")
    starts = np.searchsorted(prefixes, wrong, side="left").tolist()
    stops = np.searchsorted(prefixes, wrong, side="right").tolist()
    for start, stop in zip(starts, stops, strict=True):
        run = order[start:stop]
        order[start:stop] = run[np.argsort(keys[run], kind="stable")]
    return order
