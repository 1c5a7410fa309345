"""Merges ordered streams without sorting them: for ordered index scans over several sources and ordered receives.

Each stream is ordered. The rows at hand of all streams are sorted together; those up to the first row that is the last
one at hand of a stream with more to come are final: whatever comes later is not before it.

    a: 1 4 7 | more     b: 2 3 | more     sorted: 1 2 3(last of b) 4 7 → 1 2 3 are final
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.exec.sort.ordering import concatenate, sort_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.traits import Collation


@dataclass(slots=True)
class Stream:
    """The rows at hand of one ordered input, and whether more may come."""

    pending: pa.RecordBatch | None = None
    exhausted: bool = False

    @property
    def needs_input(self) -> bool:
        return not self.exhausted and (self.pending is None or self.pending.num_rows == 0)


def merge_pending(streams: Sequence[Stream], ordinals: Sequence[int], collation: Collation) -> pa.RecordBatch | None:
    """Take the final rows out of the streams, in order; None at the end. No stream may need input."""
    assert not any(stream.needs_input for stream in streams), "every stream has rows or has ended"
    active = [stream for stream in streams if stream.pending is not None and stream.pending.num_rows]
    if not active:
        return None
    if len(active) == 1:
        batch, active[0].pending = active[0].pending, None
        return batch
    batches = [stream.pending for stream in active if stream.pending is not None]
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    together = concatenate(batches)
    order = sort_positions(together, ordinals, collation).to_numpy()
    cut = len(order)
    lasts = [starts[number + 1] - 1 for number, stream in enumerate(active) if not stream.exhausted]
    if lasts:
        cut = int(np.flatnonzero(np.isin(order, lasts))[0]) + 1
    final = order[:cut]
    for number, stream in enumerate(active):
        taken = int(np.count_nonzero((final >= starts[number]) & (final < starts[number + 1])))
        stream.pending = batches[number].slice(taken)
    return together.take(pa.array(final))
