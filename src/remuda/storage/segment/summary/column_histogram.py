"""Most common values and histograms: of a segment, from counted values, and of several segments together.

A segment keeps the ends of ranges of its less common values that have about equally many rows each, and the share of
rows up to each end. Those of several segments are put together by interpolation: of each end it is known which share of
every segment's rows lies up to it.

    segment 1, 20 rows      0 ... 10 ... 20          10 rows up to 10, 10 more up to 20
    segment 2, 20 rows      15 ... 30 ... 40         10 rows up to 30, 10 more up to 40
    both                    up to 20:  20 rows of segment 1 and a third of 10 of segment 2
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.catalog import Histogram
from remuda.dataclass import dataclass
from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.segment.summary.value_counts import ValueCounts
    from remuda.types import SqlType

SEGMENT_BUCKETS = 64
MAP_BUCKETS = 64
TAIL_SHARES = (1 / 256, 1 / 1_024, 1 / 4_096)
"""Shares of the least and of the greatest values that have an end of their own. A range of the others has 1/64 of the
values, and where the greatest are rare and far apart, as orders of a large amount, most of these lie at its beginning:
of 116 amounts above 900 in a million 9,700 were expected."""
TAIL_VALUES = 8
"""Values within such a share that must have been seen."""
CANDIDATES = 4 * MAP_BUCKETS
"""Ends of segments of which those of a map are chosen."""
MOST_PARTS = 64
"""Segments whose statistics are combined: of more a part stands for all, which all have rows of many partitions."""
COMMON_VALUES = 100
"""Most common values that are kept of a segment, and of a map."""
LONGEST_END = 200
"""A longer string would only fill the manifest."""
DISTINCTLY = 1.5
"""A value is among the most common ones if it comes so many times as often as the average value, at least."""
DEVIATIONS = 4.0
"""And is so many standard deviations above it: of equally frequent values some are seen more often in a sample."""

Common = tuple[tuple[Any, int], ...]
Ends = tuple[tuple[Any, ...], tuple[float, ...]]
"""Ends of ranges, and the share of the less common values up to each."""


def describe_values(
    counted: ValueCounts, sql_type: SqlType, present: int, minimum: Any, maximum: Any
) -> tuple[Common, Ends]:
    """Return the most common values with their counts, and the ends of ranges of all others.

    `present` rows have a value; `minimum` and `maximum` are exact, the rest may come from a sample.
    """
    chosen = _most_common(counted)
    scale = present / max(1, counted.seen)
    values = counted.stored(chosen, sql_type)
    kept = [ordinal for ordinal, value in enumerate(values) if not _is_long(value)]
    chosen = chosen[kept]
    counts = np.maximum(1, np.round(counted.counts[chosen] * scale)).astype(np.int64)
    common = tuple(zip((values[ordinal] for ordinal in kept), counts.tolist(), strict=True))
    return common, _ends(counted, chosen, sql_type, common, minimum, maximum)


def _most_common(counted: ValueCounts) -> np.ndarray:
    """Return the positions of the most common values, the most common first; all of them where they are few."""
    counts = counted.counts
    least = 1.0
    if counted.distinct > COMMON_VALUES:
        mean = counted.seen / counted.distinct
        noise = 0.0 if counted.exact else DEVIATIONS * mean**0.5
        least = max(1.0, DISTINCTLY * mean, mean + noise)
    elif counted.exact:
        least = 0.0
    # A value that a sample shows once stands for others like it.
    frequent = np.flatnonzero(counts > least)
    order = np.argsort(-counts[frequent], kind="stable")[:COMMON_VALUES]
    return frequent[order]


def _ends(
    counted: ValueCounts, common_places: np.ndarray, sql_type: SqlType, common: Common, minimum: Any, maximum: Any
) -> Ends:
    counts = counted.counts.copy()
    counts[common_places] = 0
    below = np.cumsum(counts)
    if below[-1] == 0:
        return (), ()
    # From the first value on: no value where nothing was counted has more below it than the one before.
    wanted = np.maximum(1, _wanted_shares(SEGMENT_BUCKETS, int(below[-1])) * below[-1])
    ordinals = np.unique(np.searchsorted(below, wanted))
    ends, up_to = counted.stored(ordinals, sql_type), (below[ordinals] / below[-1]).round(6).tolist()
    taken = {comparable(value) for value, _ in common}
    if comparable(maximum) not in taken:
        ends[-1] = maximum
    if comparable(minimum) not in taken and comparable(minimum) != comparable(ends[0]):
        ends, up_to = [minimum, *ends], [min(up_to[0], 1.0 / counted.seen), *up_to]
    return ((), ()) if any(map(_is_long, ends)) else (tuple(ends), tuple(up_to))


def _wanted_shares(buckets: int, seen: float = math.inf) -> np.ndarray:
    """Return up to which shares of so many values that were seen an end is wanted, ascending."""
    tails = np.array([share for share in TAIL_SHARES if share * seen >= TAIL_VALUES])
    return np.sort(np.concatenate([np.linspace(0, 1, buckets + 1), tails, 1 - tails]))


def _is_long(value: Any) -> bool:
    return isinstance(value, str | bytes) and len(value) > LONGEST_END


@dataclass(frozen=True, slots=True)
class Part:
    """The values of some rows: points, each of them a value with its count, and all others by a histogram."""

    points: dict[tuple[int, Any], tuple[Any, float]]
    others: float
    """Rows whose value is no point."""
    distinct: float
    """Different values among the others."""
    histogram: Histogram | None

    @property
    def is_complete(self) -> bool:
        """Whether the histogram tells of all the others."""
        return self.histogram is not None or self.others <= 0

    def expected(self, key: tuple[int, Any]) -> float:
        """Return how many of the others have this value."""
        if self.histogram is None or not comparable(self.histogram.ends[0]) <= key <= comparable(
            self.histogram.ends[-1]
        ):
            return 0.0
        return self.others / max(1.0, self.distinct)


def part_of(rows: int, distinct: int, common: Common, ends: tuple[Any, ...], up_to: tuple[float, ...] = ()) -> Part:
    """Make a part of what a segment remembers."""
    points = {comparable(value): (value, float(count)) for value, count in common}
    others = max(0.0, rows - sum(count for _, count in common))
    left = max(0, distinct - len(common))
    if not ends or others <= 0:
        return Part(points, others, left, None)
    if len(up_to) == len(ends):
        return Part(points, others, left, Histogram(ends, up_to))
    part = _part_of_even_ranges(others, left, ends)
    return replace(part, points={**part.points, **points})


def _part_of_even_ranges(rows: float, distinct: int, ends: tuple[Any, ...]) -> Part:
    """Make a part of a segment of an earlier version: ranges have equally many rows, and no value is known as common.

    An end that comes n + 1 times fills n ranges: it is a point.
    """
    repeated = Counter(map(comparable, ends))
    bucket = rows / max(1, len(ends) - 1)
    unique = {comparable(end): end for end in ends}
    points = {key: (unique[key], (count - 1) * bucket) for key, count in repeated.items() if count > 1}
    others, left = bucket * (len(unique) - 1), max(0, distinct - len(points))
    histogram = Histogram.even(tuple(unique.values()), 1.0 / max(1, left)) if others > 0 else None
    return Part(points, others, left, histogram)


def combined(parts: Sequence[Part]) -> tuple[tuple[tuple[Any, float], ...], Histogram | None]:
    """Return the most common values of disjoint sets of rows with their counts, and the histogram of all others."""
    if len(parts) > MOST_PARTS:
        parts = _sampled(parts)
    if len(parts) > 1:
        parts = _with_shared_points(parts)
    points = _added(parts)
    others = sum(part.others for part in parts)
    distinct = max((part.distinct for part in parts), default=0.0)
    ordered = sorted(points.values(), key=lambda point: -point[1])
    if len(ordered) + distinct <= COMMON_VALUES:
        common = ordered
    else:
        least = DISTINCTLY * (others + sum(count for _, count in ordered)) / (len(ordered) + max(1.0, distinct))
        common = [point for point in ordered[:COMMON_VALUES] if point[1] >= least]
    rest = ordered[len(common) :]
    if not all(part.is_complete for part in parts):
        return tuple(common), None
    return tuple(common), _combined_histogram([part for part in parts if part.histogram is not None], rest)


def _sampled(parts: Sequence[Part]) -> list[Part]:
    """Return every n-th part with the rows of all: the time to combine parts would grow with the size of the map."""
    chosen = parts[:: -(-len(parts) // MOST_PARTS)]
    share = sum(map(_rows, chosen)) / max(1.0, sum(map(_rows, parts)))
    if not share:
        return list(chosen)
    return [
        replace(
            part,
            points={key: (value, count / share) for key, (value, count) in part.points.items()},
            others=part.others / share,
        )
        for part in chosen
    ]


def _rows(part: Part) -> float:
    return part.others + sum(count for _, count in part.points.values())


def _with_shared_points(parts: Sequence[Part]) -> list[Part]:
    """Make a value that is a point of one part a point of every part: as many of its others as it probably has."""
    keys = {key: point[0] for part in parts for key, point in part.points.items()}
    shared: list[Part] = []
    for part in parts:
        more = {key: (value, part.expected(key)) for key, value in keys.items() if key not in part.points}
        moved = min(part.others, sum(count for _, count in more.values()))
        found = sum(count > 0 for _, count in more.values())
        shared.append(
            replace(
                part,
                points={**part.points, **more},
                others=part.others - moved,
                distinct=max(0.0, part.distinct - found),
            )
        )
    return shared


def _added(parts: Sequence[Part]) -> dict[tuple[int, Any], tuple[Any, float]]:
    added: dict[tuple[int, Any], tuple[Any, float]] = {}
    for part in parts:
        for key, (value, count) in part.points.items():
            added[key] = (value, added[key][1] + count if key in added else count)
    return added


def _combined_histogram(parts: list[Part], points: list[tuple[Any, float]]) -> Histogram | None:
    """Put histograms and single values together: ends are chosen by weight, the share up to each is interpolated."""
    if len(parts) == 1 and not points:
        return parts[0].histogram
    if sum(part.others for part in parts) + sum(count for _, count in points) <= 0:
        return None
    ends = _candidate_ends(parts, points)
    keys = [comparable(end) for end in ends]
    below = np.zeros(len(ends))
    for part in parts:
        assert part.histogram is not None
        below += [part.others * (part.histogram.share_up_to(end) or 0.0) for end in ends]
    for value, count in points:
        below[bisect_left(keys, comparable(value)) :] += count
    shares = below / below[-1]
    chosen = _evenly_chosen(shares, MAP_BUCKETS)
    return Histogram(tuple(ends[ordinal] for ordinal in chosen), (*shares[chosen[:-1]].tolist(), 1.0))


def _candidate_ends(parts: list[Part], points: list[tuple[Any, float]]) -> list[Any]:
    """Return the ends of all parts and the points, ascending; of very many of them, evenly chosen ones by weight."""
    weighted: dict[tuple[int, Any], tuple[Any, float]] = {}
    for part in parts:
        assert part.histogram is not None
        weight = part.others / len(part.histogram.ends)
        for end in part.histogram.ends:
            key = comparable(end)
            weighted[key] = (end, weighted[key][1] + weight if key in weighted else weight)
    for value, count in points:
        weighted.setdefault(comparable(value), (value, count))
    ordered = [weighted[key] for key in sorted(weighted)]
    if len(ordered) <= CANDIDATES:
        return [end for end, _ in ordered]
    below = np.cumsum([weight for _, weight in ordered])
    return [ordered[ordinal][0] for ordinal in _evenly_chosen(below / below[-1], CANDIDATES)]


def _evenly_chosen(shares: np.ndarray, buckets: int) -> list[int]:
    """Return the first position, the last, and others between which the ascending shares grow by about as much, or by
    less at both ends."""
    inner = np.searchsorted(shares, _wanted_shares(buckets)[1:-1])
    return sorted({0, *np.minimum(inner, len(shares) - 1).tolist(), len(shares) - 1})
