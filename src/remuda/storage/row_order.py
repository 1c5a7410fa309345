"""The order of rows by integer keys, equal keys in order of position.

Sorting numbers is six times as fast in numpy as sorting their indices (16 against 100 ms for a million). So key and
position are packed into one word, the position in the low bits, and the words are sorted. Where a key is too wide for
the bits that are left, its low bits are dropped; the few runs of rows that differ in nothing else are sorted again.

    keys 70 30 70      words 70:0 30:1 70:2      sorted 30:1 70:0 70:2      order 1 0 2
"""

from __future__ import annotations

import numpy as np

from remuda.types.distinct import distinct_values

_WORD = 64
_MOST_REPAIRS = 1000
"""With more runs than this the keys are of a kind for which the trick does not pay."""

BLOCK = 65_536
"""Rows that are worked on at a time where a step over all of them at once would need as much memory again."""


def stable_order(keys: np.ndarray) -> np.ndarray:
    """The same as `numpy.argsort(keys, kind="stable")`, for integers; beside the keys it needs its result's memory."""
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
    positions = _add_positions(words)
    words.sort()
    runs = _wrong_runs(words, keys, positions) if dropped else []
    if len(runs) > _MOST_REPAIRS:
        return np.argsort(keys, kind="stable")
    words &= positions
    order = words.view(np.int64)
    for start, stop in runs:
        run = order[start:stop]
        order[start:stop] = run[np.argsort(keys[run], kind="stable")]
    return order


def sort_with_positions(hashes: np.ndarray) -> np.uint64:
    """Sorts hashes in their own memory by as many of their high bits as there is room for beside the positions.

    The low bits of every word are the position then; the mask for them is returned.
    """
    hashes &= ~_position_mask(len(hashes))
    positions = _add_positions(hashes)
    hashes.sort()
    return positions


def taken(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """`values.take(order)` for an order of any integer type, which numpy would first copy as a whole.

    An index out of bounds takes the nearest value: the code at a NULL is arbitrary.
    """
    result = np.empty(len(order), values.dtype)
    for start in range(0, len(order), BLOCK):
        part = slice(start, start + BLOCK)
        result[part] = values.take(order[part], mode="clip")
    return result


def _add_positions(words: np.ndarray) -> np.uint64:
    """Puts each word's position into its low bits, which are zero, and returns the mask of those bits."""
    for start in range(0, len(words), BLOCK):
        words[start : start + BLOCK] |= np.arange(start, min(start + BLOCK, len(words)), dtype=np.uint64)
    return _position_mask(len(words))


def _position_mask(rows: int) -> np.uint64:
    return np.uint64((1 << max(rows - 1, 0).bit_length()) - 1)


def _wrong_runs(words: np.ndarray, keys: np.ndarray, positions: np.uint64) -> list[tuple[int, int]]:
    """The runs of equal prefixes in which the keys do not ascend."""
    wrong: list[np.ndarray] = []
    for start in range(0, len(words), BLOCK):
        # One more at the end: neighbours may lie in two blocks.
        part = words[start : start + BLOCK + 1]
        ordered = keys.take((part & positions).view(np.int64))
        wrong.append(part[1:][ordered[1:] < ordered[:-1]] & ~positions)
    prefixes = distinct_values(np.concatenate(wrong))
    starts = np.searchsorted(words, prefixes, side="left").tolist()
    stops = np.searchsorted(words, prefixes | positions, side="right").tolist()
    return list(zip(starts, stops, strict=True))
