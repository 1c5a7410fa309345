"""LMDB: a B+ tree in a memory-mapped file. Values are rows in MessagePack, the fastest form Python has for them."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.bench.data import plain

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from remuda.bench.data import Data

MAP_SIZE = 1 << 36
"""Bytes of address space, not of memory."""
BATCH_ROWS = 1 << 16

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


def key_bytes(key: int) -> bytes:
    return key.to_bytes(8, "big")


def create(path: str | Path, *, durable: bool) -> Any:
    import lmdb

    return lmdb.open(str(path), map_size=MAP_SIZE, sync=durable, max_readers=128)


def put(environment: Any, key: int, row: tuple[Any, ...]) -> None:
    """Put a row in a transaction of its own, as a program that wants to keep it does."""
    with environment.begin(write=True) as transaction:
        transaction.put(key_bytes(key), encode(row))


def load(environment: Any, table: pa.Table) -> None:
    """Load all rows in one transaction, in the order of their keys, which LMDB appends."""
    with environment.begin(write=True) as transaction:
        for batch in table.to_batches(BATCH_ROWS):
            columns = [plain(column).to_pylist() for column in batch.columns]
            for key, *row in zip(*columns, strict=True):
                transaction.put(key_bytes(key), encode(row), append=True)


class LmdbPeer:
    def __init__(self, data: Data) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="remuda-bench-")
        self.environment = create(self._folder.name, durable=False)
        load(self.environment, data.table)
        self._reader = self.environment.begin()  # one for all lookups: LMDB at its fastest

    def get(self, key: int) -> Any:
        return decode(self._reader.get(key_bytes(key)))

    def close(self) -> None:
        self._reader.abort()
        self.environment.close()
        self._folder.cleanup()
