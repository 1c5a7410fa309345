"""A leaf fragment in a Spark task: our operators over the memory-mapped segments of the folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.exec import ExecContext, IterationResult, build_operator
from remuda.spark.answers import send
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from remuda.exec import RowBatch
    from remuda.expr import Parameters
    from remuda.plan.physical import PhysicalNode


@dataclass(frozen=True, slots=True)
class LeafWork:
    """All that a task needs: the operators below the send, the parameters, the snapshots, its share of partitions."""

    slot: int
    node: PhysicalNode
    parameters: Parameters
    snapshots: dict[str, SnapshotDescription]
    partitions: np.ndarray
    folder: str | None
    """Where a large answer is written; see `answers`."""


def run_leaf(work: LeafWork) -> Iterator[bytes]:
    """Called in the task by name."""
    return send(work.slot, _batches(work), work.folder)


def _batches(work: LeafWork) -> Iterator[RowBatch]:
    snapshots = {map_id: open_snapshot(description) for map_id, description in work.snapshots.items()}
    operator = build_operator(work.node)
    operator.setup(ExecContext(work.parameters, snapshots, work.partitions))
    while True:
        result = operator.advance()
        assert result is not IterationResult.WAIT, "a leaf has nobody to wait for"
        if operator.current_batch.row_count:
            yield operator.current_batch
        if result is IterationResult.FETCHED_DONE:
            return
