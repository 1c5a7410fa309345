"""What a statement writes into the write-ahead log: map, kind and rows or keys, as MessagePack."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition

PUT = 0
DELETE = 1

_encoder = msgspec.msgpack.Encoder(decimal_format="string")
_decoder = msgspec.msgpack.Decoder(tuple[str, int, list[Any]])


@dataclass(frozen=True, slots=True)
class Record:
    """`values` are rows (PUT) or keys (DELETE), still as decoded: `restore` needs the definition of the map."""

    map_id: str
    kind: int
    values: list[Any]


def encode_record(map_id: str, kind: int, values: Sequence[Any]) -> bytes:
    return _encoder.encode((map_id, kind, values))


def decode_record(payload: bytes) -> Record:
    return Record(*_decoder.decode(payload))


def restore(definition: MapDefinition, record: Record) -> list[Any]:
    """The rows or keys as they were: tuples again, and decimals, which travel as strings."""
    if record.kind == DELETE:
        columns = definition.positions(definition.key)
        if len(columns) == 1:
            return [_restored([value], columns, definition)[0] for value in record.values]
    else:
        columns = tuple(range(len(definition.columns)))
    return [_restored(values, columns, definition) for values in record.values]


def _restored(values: list[Any], columns: Sequence[int], definition: MapDefinition) -> tuple[Any, ...]:
    for place, column in enumerate(columns):
        if definition.columns[column].type.kind is Kind.DECIMAL and values[place] is not None:
            values[place] = Decimal(values[place])
    return tuple(values)
