"""From a key to its row in the segments, whether or not the log hides it. Rows that are deleted for good do not count.

What does not depend on the key is bound once, and of the segments only those that cover the key's partition are
searched, newest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from remuda.types.partition_hash import SIGN, WRAP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.storage.map_version import MapVersion

Found = TypeVar("Found")
Place = TypeVar("Place")


def make_search(version: MapVersion, outcomes: Sequence[Callable[[int], Found]]) -> Callable[[Any], Found | None]:
    """The function from a key to what the outcome of its segment makes of its position; None where it is not there."""
    # Rows deleted for good are known from the start.
    probes = tuple(
        (segment.probe, hidden.view if hidden.deleted else None, outcome)
        for segment, hidden, outcome in zip(version.segments, version.hidden, outcomes, strict=True)
    )
    without_sign, with_sign = covering_by_hash(version.covering, probes)
    key_hash, partition_of_key, partitions = version.key_hash, version.partition_of_key, len(version.covering)
    by_whole_key = partitions == 1 or version.definition.partitioned_by == version.definition.key

    def search(key: Any) -> Found | None:
        hashed = key_hash(key)
        if by_whole_key:
            candidates = (without_sign if hashed < SIGN else with_sign)[hashed % partitions]
        else:
            candidates = without_sign[partition_of_key(key, hashed)]
        for probe, marks, outcome in candidates:
            position = probe(key, hashed)
            if position >= 0 and (marks is None or marks[position]):
                return outcome(position)
        return None

    return search


def covering_by_hash(
    covering: Sequence[tuple[int, ...]], places: Sequence[Place]
) -> tuple[list[tuple[Place, ...]], list[tuple[Place, ...]]]:
    """The places of the segments to search, by the unsigned hash modulo the partitions: one list for hashes below
    `SIGN`, whose entries are those of the partitions, and one for the others, which as signed numbers are less by
    `WRAP`. The one comparison takes a third of the time of making the hash a signed number."""
    chosen = [tuple(places[number] for number in numbers) for numbers in covering]
    return chosen, [chosen[(remainder - WRAP) % len(chosen)] for remainder in range(len(chosen))]
