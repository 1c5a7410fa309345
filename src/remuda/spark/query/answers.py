"""What a task sends to the driver: batches as bytes, and beyond a few of them a file that the driver maps.

Spark holds all answers of a job in the memory of its driver before it hands out the first. So a task that has much to
say writes it into a folder that both see, beside the maps, and answers with the places of the batches in that file:
the driver then maps what the reader asks for, and however large a result is, memory is not.

The kind of an answer and the task it comes from stand behind it: in front they would spoil the alignment of buffers.
A task of a query that is analysed also tells what it measured (`measured_answer`).
"""

from __future__ import annotations

import itertools
import pickle
import struct
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from remuda.exec import ArrowBatch
from remuda.spark.query.batch_file import BatchFile, BatchFileWriter, from_stream, to_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.exec import RowBatch
    from remuda.expr import Column

INLINE_BYTES = 1 << 20
"""What a task sends through Spark at most, by measured size: the driver holds the answers of all tasks of a job, and
`spark.driver.maxResultSize` limits them. A file costs less for each byte but something for itself."""

_TAIL = struct.Struct("<IB")
_BATCH, _FILE, _MEASURED = range(3)


def send(task: int, batches: Iterable[RowBatch], folder: str | None) -> Iterator[bytes]:
    """Yield the answers of one task, in the order of its batches. Without a folder all of them go through Spark."""
    sent = 0
    remaining = (compact(batch.arrow()) for batch in batches)
    for batch in remaining:
        # Values alone may tell that a batch is too large: then it is not packed twice.
        stream = to_stream(batch) if folder is None or batch.nbytes <= INLINE_BYTES else None
        if folder is not None and (stream is None or sent + stream.size > INLINE_BYTES):
            break
        assert stream is not None, "without a folder every batch is packed"
        sent += stream.size
        yield stream.to_pybytes() + _TAIL.pack(task, _BATCH)
    else:
        return
    # The name is new each time: a task may run twice, at the same time too.
    with BatchFileWriter(Path(folder) / f"{uuid4().hex}.arrow") as file:
        byte_ranges = [file.append(each) for each in itertools.chain((batch,), remaining)]
    yield pickle.dumps((str(file.path), byte_ranges)) + _TAIL.pack(task, _FILE)


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Compact a dictionary with more values than the batch has rows: it would cost more to send than the strings."""
    if not any(isinstance(array, pa.DictionaryArray) for array in batch.columns):
        return batch  # also one without columns, whose rows would be lost with the arrays
    arrays = [
        array.dictionary_decode()
        if isinstance(array, pa.DictionaryArray) and len(array.dictionary) > len(array)
        else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def task_of(answer: bytes) -> int:
    task: int = _TAIL.unpack_from(answer, len(answer) - _TAIL.size)[0]
    return task


def measured_answer(task: int, measured: bytes) -> bytes:
    """Return an answer of metrics; `measured` is what `stage_task` has packed."""
    return measured + _TAIL.pack(task, _MEASURED)


def measured_of(answer: bytes) -> bytes | None:
    """Return the metrics of an answer; None where the answer is rows."""
    end = len(answer) - _TAIL.size
    return answer[:end] if _TAIL.unpack_from(answer, end)[1] == _MEASURED else None


def batches_of(answer: bytes, columns: tuple[Column, ...]) -> Iterator[RowBatch]:
    """Yield the batches of one answer on demand, without a copy."""
    end = len(answer) - _TAIL.size
    if _TAIL.unpack_from(answer, end)[1] == _BATCH:
        yield ArrowBatch(columns, from_stream(pa.py_buffer(answer).slice(0, end)))
        return
    path, byte_ranges = pickle.loads(answer[:end])
    file = BatchFile(path)
    for byte_range in byte_ranges:
        yield ArrowBatch(columns, file.read(byte_range))
