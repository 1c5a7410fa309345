"""What a statement writes into the write-ahead log: map, kind and rows or keys, as MessagePack."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.dataclass import dataclass
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition

VALUES_AT_ONCE = 16_384
_LONG_ARRAY = b"\xdd"
"""MessagePack's mark of an array whose length has four bytes; up to 65,535 it has two, up to 15 it is in the mark."""
_SHORTEST_ARRAY = 15

PUT = 0
DELETE = 1

_encoder = msgspec.msgpack.Encoder(decimal_format="string")
_decoder = msgspec.msgpack.Decoder(tuple[str, int, list[Any]])


@dataclass(frozen=True, slots=True)
class Record:
    """Holds the record of one statement.

    `values` are rows (PUT) or keys (DELETE), still as decoded: `restore` needs the definition of the map.
    """

    map_id: str
    kind: int
    values: list[Any]


def encode_record(map_id: str, kind: int, values: Sequence[Any]) -> bytes:
    """Encode a record, many values in pieces, between which other threads run; the bytes are the same."""
    if len(values) <= VALUES_AT_ONCE:
        return _encoder.encode((map_id, kind, values))
    parts = [_encoder.encode((map_id, kind, []))[:-1], _LONG_ARRAY + len(values).to_bytes(4, "big")]
    for first in range(0, len(values), VALUES_AT_ONCE):
        piece = values[first : first + VALUES_AT_ONCE]
        parts.append(_encoder.encode(piece)[1 if len(piece) <= _SHORTEST_ARRAY else 3 :])
    return b"".join(parts)


def decode_record(payload: bytes) -> Record:
    return Record(*_decoder.decode(payload))


def restore(definition: MapDefinition, record: Record) -> list[Any]:
    """Return the rows or keys as they were: tuples again, and decimals, which travel as strings."""
    if record.kind == DELETE:
        columns = definition.positions(definition.key)
        if len(columns) == 1:
            return [_restored([value], columns, definition)[0] for value in record.values]
    else:
        columns = tuple(range(len(definition.columns)))
    return [_restored(values, columns, definition) for values in record.values]


def _restored(values: list[Any], columns: Sequence[int], definition: MapDefinition) -> tuple[Any, ...]:
    for ordinal, column in enumerate(columns):
        if definition.columns[column].type.kind is Kind.DECIMAL and values[ordinal] is not None:
            values[ordinal] = Decimal(values[ordinal])
    return tuple(values)
