"""Stores in folders, and what the tests do to them from outside."""

from __future__ import annotations

from pathlib import Path

from remuda.storage import Durability, MapStore, Store
from remuda.storage.wal.log_file import read_log
from tests.storage.maps import orders_map


def only_map(store: Store) -> MapStore:
    (definition,) = store.catalog.maps.values()
    return store.map(definition)


def names_in_force(store: Store) -> set[str]:
    """The ids of the segments and groups of the only map in the newest root: its files have names that begin so."""
    found = only_map(store)
    assert store._folder is not None
    groups = store._folder.group_files(found.definition.id)
    return {each.segment.id for each in found.stored} | {name.partition(".")[0] for name in groups}


def filled(folder: Path, durability: Durability = Durability.OS) -> Store:
    """A new store with an empty map of orders."""
    store = Store.open(folder, durability=durability)
    store.create_map(orders_map())
    return store


def abandon(store: Store) -> None:
    """As if the process had ended here: the lock goes, nothing else happens."""
    assert store._folder is not None
    store._folder.unlock()
    store.verification.stop()


def log_files(folder: Path) -> list[Path]:
    return sorted((folder / "wal").glob("*.log"))


def recorded_length(folder: Path) -> int:
    """Where the last record of the last log file ends; behind it there may be room."""
    number = int(log_files(folder)[-1].stem)
    *_, last = read_log(folder / "wal", 1, (number, 0))
    return last.length


def flipped(raw: bytes, offset: int) -> bytes:
    return raw[:offset] + bytes([raw[offset] ^ 0x40]) + raw[offset + 1 :]
