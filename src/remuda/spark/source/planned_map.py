"""A map as it was when a data frame over it was made: what tasks open, and compare the map of their version with.

It travels to the tasks. Which version they read is decided by their execution (`pinned_read`). Only jobs without an
execution read the version that was found in planning; a lease keeps its files.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from remuda.catalog.catalog import DEFAULT_SCHEMA
from remuda.errors import StorageError, nearest, not_found, option_error, state_error, wrong_object
from remuda.spark.source.pinned_read import from_anywhere, open_reader, pinned_store, refuse_unseen
from remuda.storage import SnapshotDescription, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from remuda.catalog import MapDefinition
    from remuda.storage import MapSnapshot, Store

KEPT_SECONDS = 3600.0
"""How long the files of a planned read are kept for the tasks of jobs without an execution."""


def find_map(store: Store, name: str, moment: int | datetime | None = None) -> MapDefinition:
    """Return a map of now, or as it was in a version or at a moment."""
    schema, _, short = name.rpartition(".")
    catalog = store.catalog if moment is None else store.history.at(moment)
    found = catalog.find_map(short, (schema or DEFAULT_SCHEMA,))
    if found is None:
        if catalog.find_view(short, (schema or DEFAULT_SCHEMA,)) is not None:
            raise wrong_object(
                f"{name} is a view: the option map names a table", suggestion=f'option("query", "SELECT * FROM {name}")'
            )
        names = [definition.name for definition in catalog.maps.values()]
        raise not_found(f"unknown table: {name}", suggestion=nearest(short, names))
    return found


def past_moment(options: Mapping[str, str]) -> int | datetime | None:
    """Return what `version` or `timestamp` says, None where there is neither. A time without a zone is UTC."""
    version, timestamp = options.get("version"), options.get("timestamp")
    if version is not None and timestamp is not None:
        raise option_error("say version or timestamp, not both")
    if version is not None:
        if not version.strip().isdecimal():
            raise option_error(f"version is the number of a version, not {version!r}")
        return int(version)
    if timestamp is None:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        raise option_error(f"timestamp is a time such as 2024-07-01 12:00:00+00:00, not {timestamp!r}") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class PlannedMap:
    """`options` has the `path` and the `map`, `version` or `timestamp`, and what a remote folder needs.

    A version never changes, so it is read as it was found in planning.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = from_anywhere(options)
        store = open_reader(options)
        try:
            definition = find_map(store, options["map"], past_moment(options))
            (snapshot,) = store.snapshot([definition])
            store.keep_files(KEPT_SECONDS, definition.version)
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
        if self.definition.is_past:
            yield self._planned_snapshot()
            return
        with pinned_store(self._options) as store:
            yield self._planned_snapshot() if store is None else self._pinned_snapshot(store)

    def _pinned_snapshot(self, store: Store) -> MapSnapshot:
        (snapshot,) = store.snapshot([find_map(store, self._options["map"])])
        return snapshot

    def _planned_snapshot(self) -> MapSnapshot:
        try:
            return open_snapshot(self._planned)
        except FileNotFoundError as error:
            refuse_unseen(self._options["path"])
            raise StorageError(
                "the version that this data frame was planned for is gone: make the data frame anew, and run it within "
                f"{KEPT_SECONDS / 60:.0f} minutes, or by an action of Spark SQL, which reads the newest version",
                error.filename,
                sqlstate="40001",
            ) from error


def made_anew(definition: MapDefinition) -> Exception:
    """Report a map that is no longer the one for which a data frame was planned."""
    return state_error(f"the map {definition.name} was made anew with other columns: make the data frame anew")
