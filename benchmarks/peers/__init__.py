"""The engines, each with all the rows and the indexes it can have, opened once when first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.peers.duckdb_peer import DuckFilePeer, DuckPeer
from benchmarks.peers.polars_peer import PolarsPeer
from benchmarks.peers.remuda_peer import RemudaPeer
from benchmarks.peers.sqlite_peer import SqlitePeer

if TYPE_CHECKING:
    from benchmarks.data import Data


class Peers:
    def __init__(self, data: Data) -> None:
        self._data = data

    @cached_property
    def remuda(self) -> RemudaPeer:
        return RemudaPeer(self._data)

    @cached_property
    def sqlite(self) -> SqlitePeer:
        return SqlitePeer(self._data)

    @cached_property
    def duckdb(self) -> DuckPeer:
        return DuckPeer(self._data)

    @cached_property
    def duckdb_file(self) -> DuckFilePeer:
        return DuckFilePeer(self._data)

    def close(self) -> None:
        """Removes what is on disk."""
        if "duckdb_file" in vars(self):
            self.duckdb_file.close()

    @cached_property
    def polars(self) -> PolarsPeer:
        return PolarsPeer(self._data)
