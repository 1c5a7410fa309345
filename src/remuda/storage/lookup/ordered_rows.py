"""The first rows in the order of a SORTED index, of one segment or of several and the memtable."""

from __future__ import annotations

from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MOST_TESTED = 65_536
"""Entries that are read for the first rows. Where more of them are deleted, an operator goes on that can be
cancelled."""

Order = tuple[Any, ...]
"""What a row is compared by: the pairs of `comparable` of the index's columns."""


def first_rows(
    read: Callable[[int, int, int], Iterable[Any]], span: tuple[int, int], length: int, wanted: int, *, descending: bool
) -> list[Any] | None:
    """Return up to `wanted` rows of a span of an index, from its beginning on or from its end; None after too many
    entries of deleted rows."""
    low, high = span
    found: list[Any] = []
    size, tested = wanted, 0
    while low < high:
        if tested > MOST_TESTED:
            return None
        if descending:
            start = max(low, high - size)
            part = list(read(start, high, length))
            part.reverse()
            high = start
        else:
            stop = min(high, low + size)
            part = list(read(low, stop, length))
            low = stop
        found = found + part if found else part
        if len(found) >= wanted:
            return found[:wanted]
        tested += size
        size *= 4
    return found


def order_of(values: Iterable[Any]) -> Order:
    """Return what sorts as rows with these values of the index's columns do in the index.

    >>> order_of((None, 3)) < order_of((1, 2)) < order_of((1, float("nan")))
    True
    """
    return tuple(part for value in values for part in comparable(value))


def merged(sources: Sequence[Iterable[tuple[Order, Any]]], wanted: int, *, descending: bool) -> list[Any]:
    """Return the first rows of several sources, each with at most a few of its own."""
    together = [each for source in sources for each in source]
    together.sort(key=itemgetter(0), reverse=descending)
    return [row for _, row in together[:wanted]]


def first_of(pieces: Iterator[Any], wanted: int) -> list[int]:
    """Return the first of the entries that come in pieces."""
    return list(islice((entry for piece in pieces for entry in piece.tolist()), wanted))
