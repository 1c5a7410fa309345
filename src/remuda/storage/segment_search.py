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


def make_search(version: MapVersion, outcomes: Sequence[Callable[[int], Found]]) -> Callable[[Any], Found | None]:
    """The function from a key to what the outcome of its segment makes of its position; None where it is not there."""
    # Rows deleted for good are known from the start.
    probes = tuple(
        (segment.probe, hidden.view if hidden.deleted else None, outcome)
        for segment, hidden, outcome in zip(version.segments, version.hidden, outcomes, strict=True)
    )
    covering = [tuple(probes[number] for number in numbers) for numbers in version.covering]
    key_hash, partition_of_key, partitions = version.key_hash, version.partition_of_key, version.definition.partitions
    anywhere = len(covering) == 1
    by_whole_key = version.definition.partitioned_by == version.definition.key

    def search(key: Any) -> Found | None:
        hashed = key_hash(key)
        if anywhere:
            candidates = covering[0]
        elif by_whole_key:
            candidates = covering[(hashed - WRAP if hashed & SIGN else hashed) % partitions]
        else:
            candidates = covering[partition_of_key(key, hashed)]
        for probe, marks, outcome in candidates:
            position = probe(key, hashed)
            if position >= 0 and (marks is None or marks[position]):
                return outcome(position)
        return None

    return search
