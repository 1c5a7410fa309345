"""The engines, each with all the rows and the indexes it can have, opened once when a case first asks for it."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from remuda.bench.peers.remuda_peer import RemudaPeer
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from remuda.bench.data import Data


@dataclass(frozen=True, slots=True)
class PeerKind:
    """Where a peer's class is, and the package that must be installed before its module is imported."""

    package: str
    module: str
    class_name: str


KINDS = {
    "SQLite": PeerKind("sqlite3", "sqlite_peer", "SqlitePeer"),
    "DuckDB": PeerKind("duckdb", "duckdb_peer", "DuckPeer"),
    "DuckDB file": PeerKind("duckdb", "duckdb_peer", "DuckFilePeer"),
    "Polars": PeerKind("polars", "polars_peer", "PolarsPeer"),
    "LMDB": PeerKind("lmdb", "lmdb_peer", "LmdbPeer"),
    "chDB": PeerKind("chdb", "chdb_peer", "ChdbPeer"),
    "Spark": PeerKind("pyspark", "spark_peer", "SparkPeer"),
}


def is_installed(name: str) -> bool:
    return find_spec(KINDS[name].package) is not None


def is_peer(contender: str) -> bool:
    """Tell a peer, such as `SQLite, 32 threads`, from a reference, such as a job that does nothing.

    >>> [is_peer(name) for name in ("SQLite, 32 threads", "Spark cached", "without pruning")]
    [True, True, False]
    """
    return contender.startswith(tuple(KINDS))


class Peers:
    def __init__(self, data: Data) -> None:
        self._data = data
        self._opened: dict[str, Any] = {}

    @cached_property
    def remuda(self) -> RemudaPeer:
        return RemudaPeer(self._data)

    def find(self, name: str) -> Any | None:
        """Open the peer, or return None where its package is not installed."""
        if not is_installed(name):
            return None
        if name not in self._opened:
            kind = KINDS[name]
            module = import_module(f"remuda.bench.peers.{kind.module}")
            self._opened[name] = getattr(module, kind.class_name)(self._data)
        return self._opened[name]

    def close(self) -> None:
        """Free the memory, and remove what is on disk."""
        if "remuda" in vars(self):
            self.remuda.close()
        for peer in self._opened.values():
            peer.close()
        self._opened.clear()
