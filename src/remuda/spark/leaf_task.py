"""A leaf fragment in a Spark task: our operators over the memory-mapped segments of the folder.

The answer of a task is a list of Arrow streams, each followed by the number of the slot it comes from, so that the
driver can tell the ordered streams of several slots apart. It stands behind, as in front it would spoil the alignment
of the buffers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.exec import ArrowBatch, ExecContext, IterationResult, build_operator
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from remuda.exec import RowBatch
    from remuda.expr import Column, Parameters
    from remuda.plan.physical import PhysicalNode

_SLOT = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class LeafWork:
    """All that a task needs: the operators below the send, the parameters, the snapshots, its share of partitions."""

    slot: int
    node: PhysicalNode
    parameters: Parameters
    snapshots: dict[str, SnapshotDescription]
    partitions: np.ndarray


def run_leaf(work: LeafWork) -> Iterator[bytes]:
    """Called in the task by name."""
    snapshots = {map_id: open_snapshot(description) for map_id, description in work.snapshots.items()}
    operator = build_operator(work.node)
    operator.setup(ExecContext(work.parameters, snapshots, work.partitions))
    while True:
        result = operator.advance()
        assert result is not IterationResult.WAIT, "a leaf has nobody to wait for"
        if operator.current_batch.row_count:
            yield _to_bytes(operator.current_batch) + _SLOT.pack(work.slot)
        if result is IterationResult.FETCHED_DONE:
            return


def _to_bytes(batch: RowBatch) -> bytes:
    arrow = _compact(batch.arrow())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as writer:
        writer.write_batch(arrow)
    return bytes(sink.getvalue())


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A dictionary with more values than the batch has rows would cost more to send than the strings themselves."""
    arrays = [
        array.dictionary_decode()
        if isinstance(array, pa.DictionaryArray) and len(array.dictionary) > len(array)
        else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def read_answer(answer: bytes, columns: tuple[Column, ...]) -> tuple[int, RowBatch]:
    """The slot and the batch of one answer, without a copy."""
    end = len(answer) - _SLOT.size
    (slot,) = _SLOT.unpack_from(answer, end)
    stream = pa.ipc.open_stream(pa.py_buffer(answer).slice(0, end))
    return slot, ArrowBatch(columns, stream.read_next_batch())
