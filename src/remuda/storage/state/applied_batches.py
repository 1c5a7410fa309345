"""The batches that a map has: for each stream that names its batches the number of the last one.

A batch that is applied again, as its sender did not hear that it was committed, changes nothing. The numbers are part
of the commit that has the batch's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import option_error

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_STREAMS = 100
"""Streams of a map that are remembered: those that wrote last."""

LONGEST_NAME = 1000


@dataclass(frozen=True, slots=True)
class BatchId:
    """One batch of a stream. The numbers of a stream rise."""

    stream: str
    number: int

    @classmethod
    def checked(cls, given: object) -> BatchId | None:
        """Read a pair, or a text such as `feed/17`.

        >>> BatchId.checked("shop/feed/17")
        BatchId(stream='shop/feed', number=17)
        """
        if given is None or isinstance(given, cls):
            return given
        pair: object = given
        if isinstance(given, str):
            stream, _, text = given.rpartition("/")
            pair = (stream, int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else None)
        match pair:
            case (str() as stream, int() as number) if 0 < len(stream) <= LONGEST_NAME and 0 <= number < 2**63:
                return cls(stream, number)
        raise option_error(f"a batch is named by its stream and a number, ('feed', 17) or 'feed/17', not by {given!r}")


@dataclass(frozen=True, slots=True)
class AppliedBatches:
    """The last batch of each stream, the one that wrote last at the end."""

    last: tuple[BatchId, ...] = ()

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, int]]) -> AppliedBatches:
        return cls(tuple(BatchId(*pair) for pair in pairs))

    def has(self, batch: BatchId) -> bool:
        """Tell whether this batch, or a later one of its stream, was applied."""
        return any(each.stream == batch.stream and each.number >= batch.number for each in self.last)

    def with_batch(self, batch: BatchId | None) -> AppliedBatches:
        if batch is None:
            return self
        others = [each for each in self.last if each.stream != batch.stream]
        return AppliedBatches((*others, batch)[-MOST_STREAMS:])

    def pairs(self) -> tuple[tuple[str, int], ...]:
        return tuple((each.stream, each.number) for each in self.last)
