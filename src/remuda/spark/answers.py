"""What a leaf task sends to the driver: batches as bytes, and beyond a few of them a file that the driver maps.

Spark holds all answers of a job in the memory of its driver before it hands out the first. So a task that has much to
say writes it into a folder that both see, beside the maps, and answers with the places of the batches in that file:
the driver then maps what the reader asks for, and however large a result is, memory is not.

Every batch is an Arrow stream of its own, as a column may be a dictionary in one batch and plain in the next. The kind
of an answer and the slot it comes from stand behind it: in front they would spoil the alignment of the buffers.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import pyarrow as pa

from remuda.exec import ArrowBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.exec import RowBatch
    from remuda.expr import Column

INLINE_BYTES = 1 << 20
"""What a task sends through Spark. A file costs less for each byte but something for itself."""

_TAIL = struct.Struct("<I?")
_ALIGNMENT = 64


class _Places(msgspec.Struct, frozen=True, array_like=True):
    """Where the batches are in a file."""

    path: str
    starts: list[int]
    lengths: list[int]


def send(slot: int, batches: Iterable[RowBatch], folder: str | None) -> Iterator[bytes]:
    """The answers of one task, in the order of its batches. Without a folder all of them go through Spark."""
    sent = 0
    remaining = iter(batches)
    for batch in remaining:
        stream = _to_stream(batch)
        sent += stream.size
        yield stream.to_pybytes() + _TAIL.pack(slot, False)
        if folder is not None and sent >= INLINE_BYTES:
            break
    else:
        return
    places = _write(Path(str(folder)), remaining)
    if places.starts:
        yield msgspec.msgpack.encode(places) + _TAIL.pack(slot, True)


def _write(folder: Path, batches: Iterable[RowBatch]) -> _Places:
    """The name is new each time: a task may run twice, at the same time too."""
    path = folder / f"{uuid4().hex}.arrow"
    places = _Places(str(path), [], [])
    with path.open("wb", buffering=0) as file:
        end = 0
        for batch in batches:
            stream = _to_stream(batch)
            places.starts.append(end)
            places.lengths.append(stream.size)
            file.write(stream)
            end += stream.size + -stream.size % _ALIGNMENT
            file.seek(end)
    return places


def _to_stream(batch: RowBatch) -> pa.Buffer:
    arrow = _compact(batch.arrow())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as writer:
        writer.write_batch(arrow)
    return sink.getvalue()


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A dictionary with more values than the batch has rows would cost more to send than the strings themselves."""
    arrays = [
        array.dictionary_decode()
        if isinstance(array, pa.DictionaryArray) and len(array.dictionary) > len(array)
        else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def slot_of(answer: bytes) -> int:
    slot: int = _TAIL.unpack_from(answer, len(answer) - _TAIL.size)[0]
    return slot


def batches_of(answer: bytes, columns: tuple[Column, ...]) -> Iterator[RowBatch]:
    """The batches of one answer, without a copy, each when it is asked for."""
    end = len(answer) - _TAIL.size
    body = pa.py_buffer(answer).slice(0, end)
    if not _TAIL.unpack_from(answer, end)[1]:
        yield _from_stream(body, columns)
        return
    places = msgspec.msgpack.decode(body, type=_Places)
    with pa.memory_map(places.path) as mapped:
        whole = mapped.read_buffer()
    for start, length in zip(places.starts, places.lengths, strict=True):
        yield _from_stream(whole.slice(start, length), columns)


def _from_stream(body: pa.Buffer, columns: tuple[Column, ...]) -> RowBatch:
    return ArrowBatch(columns, pa.ipc.open_stream(body).read_next_batch())
