"""A map as it was when a data frame over it was made: what tasks open, and compare the map of their version with.

It travels to the tasks. Which version they read is decided by their execution (`pinned_read`). Only jobs without an
execution read the version that was found in planning; a lease keeps its files.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remuda.catalog.catalog import DEFAULT_SCHEMA
from remuda.errors import StorageError, nearest, not_found, state_error
from remuda.spark.source.pinned_read import open_reader, pinned_store
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from remuda.catalog import MapDefinition
    from remuda.storage import MapSnapshot, Store

KEPT_SECONDS = 3600.0
"""How long the files of a planned read are kept for the tasks of jobs without an execution."""


def find_map(store: Store, name: str) -> MapDefinition:
    schema, _, short = name.rpartition(".")
    found = store.catalog.find_map(short, (schema or DEFAULT_SCHEMA,))
    if found is None:
        names = [definition.name for definition in store.catalog.maps.values()]
        raise not_found(f"unknown table: {name}", suggestion=nearest(short, names))
    return found


class PlannedMap:
    """`options` has the `path` and the `map`, and what a remote folder needs."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        store = open_reader(options)
        try:
            (snapshot,) = store.snapshot([find_map(store, options["map"])])
            store.keep_files(KEPT_SECONDS)
            self._planned: SnapshotDescription = snapshot.describe()
            self.rows = snapshot.rows
            self.cores = os.cpu_count() or 1
        finally:
            store.close()

    @property
    def definition(self) -> MapDefinition:
        return self._planned.definition

    @contextmanager
    def snapshot(self) -> Iterator[MapSnapshot]:
        """Open, in a task, the version that its execution has pinned, else the one that was found in planning."""
        with pinned_store(self._options) as store:
            yield self._planned_snapshot() if store is None else self._pinned_snapshot(store)

    def _pinned_snapshot(self, store: Store) -> MapSnapshot:
        (snapshot,) = store.snapshot([find_map(store, self._options["map"])])
        return snapshot

    def _planned_snapshot(self) -> MapSnapshot:
        try:
            return open_snapshot(self._planned)
        except FileNotFoundError as error:
            raise StorageError(
                "the version that this data frame was planned for is gone: make the data frame anew, and run it within "
                f"{KEPT_SECONDS / 60:.0f} minutes, or by an action of Spark SQL, which reads the newest version",
                error.filename,
                sqlstate="40001",
            ) from error


def made_anew(definition: MapDefinition) -> Exception:
    """Report a map that is no longer the one for which a data frame was planned."""
    return state_error(f"the map {definition.name} was made anew with other columns: make the data frame anew")
