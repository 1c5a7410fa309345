"""Which partition group a segment belongs to, given where the groups of its map are cut.

The groups of a map are the ranges of partitions between its *cuts*. A segment with rows of one group is a member of it,
one with rows of several is a *run*. The cuts are known by the segments: each member has the range of its group.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.storage.segment.segment_directory import StoredSegment

Range = tuple[int, int]
"""Partitions, from and to before."""


def cuts_of(stored: Iterable[StoredSegment], partitions: int) -> list[int]:
    """Return where the groups of a map are cut, ascending; nothing where all partitions are one group."""
    ends = {end for each in stored if each.group is not None for end in each.group}
    return sorted(ends - {0, partitions})


def range_of(cuts: Sequence[int], partitions: int, span: tuple[int, int]) -> Range | None:
    """Return the group that has all partitions from the first to the last of `span`; None where there is none.

    None as well where all partitions are one group.

    >>> range_of([10, 20], 30, (12, 19))
    (10, 20)
    >>> range_of([10, 20], 30, (12, 20))
    """
    if not cuts:
        return None
    number = bisect_right(cuts, span[0])
    end = cuts[number] if number < len(cuts) else partitions
    return (cuts[number - 1] if number else 0, end) if span[1] < end else None


def ranges_of(cuts: Sequence[int], partitions: int) -> list[Range]:
    """Return all groups that these cuts make.

    >>> ranges_of([10], 30)
    [(0, 10), (10, 30)]
    """
    return list(zip([0, *cuts], [*cuts, partitions], strict=True))
