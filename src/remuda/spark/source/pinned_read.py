"""The state that a task reads: all tasks of one execution of Spark SQL read the same, the next execution a newer one.

Spark plans a frame once and runs it many times. So it is not the plan that says which version is read, but the first
task of each execution: see `storage.folder.execution_pin`. A worker keeps the store open from task to task, and with it
the segments that it has mapped.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_remuda.daemon import quiet_forked_process
from remuda.errors import StorageError, option_error
from remuda.spark.driver.tasks import unseen_folder
from remuda.storage import Store
from remuda.storage.folder.manifest import NAME as MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_EXECUTION = "spark.sql.execution.id"
_APPLICATION = ("spark.app.id", "spark.app.startTime", "spark.driver.host", "spark.driver.port")
"""Local properties that every task of an execution has: ids of executions count from 0 in each application."""

_stores: dict[tuple[str, str | None], Store] = {}
"""The stores that this worker has read, by path and cache."""
_MOST_STORES = 8
_NO_STORE = "58P01"
_LAKEHOUSES = {"_delta_log": "Delta", "metadata": "Iceberg", ".hoodie": "Hudi"}
"""Folders by which the tables of other formats are known."""


def running_execution() -> str | None:
    """Return the name of the execution that this task belongs to; None in a job that Spark SQL did not start.

    Such are those of `df.rdd` and `df.foreachPartition`.
    """
    from pyspark import TaskContext

    task = TaskContext.get()
    execution = None if task is None else task.getLocalProperty(_EXECUTION)
    if task is None or execution is None:
        return None
    words = [execution, *(task.getLocalProperty(name) or "" for name in _APPLICATION)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


def open_reader(options: Mapping[str, str], execution: str | None = None) -> Store:
    """Open the store, wherever it is: a folder, or an address such as `s3://bucket/shop.remuda`.

    Its files are not verified in the background: each query would begin to read all of them, in a process that goes on
    from query to query.
    """
    quiet_forked_process()
    path = options["path"]
    if "://" not in path:
        folder = Path(path).expanduser().absolute()
        _refuse_lakehouse(folder)
        return Store.open(folder, read_only=True, verifies=False, execution=execution)
    from remuda.storage.remote.remote_location import open_address

    found = open_address(path, cache=options.get("cache"), sole_writer=is_sole_writer(options))
    if isinstance(found, Path):
        return Store.open(found, read_only=True, verifies=False, execution=execution)
    try:
        return Store.open(read_only=True, remote=found, verifies=False, execution=execution)
    except BaseException:
        found.close()
        raise


def is_sole_writer(options: Mapping[str, str]) -> bool:
    """Tell whether the option says that no other process writes the store."""
    given = options.get("soleWriter", "false")
    if given.casefold() not in {"true", "false"}:
        raise option_error(f"soleWriter is true or false, not {given!r}")
    return given.casefold() == "true"


def from_anywhere(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for tasks, whose working directory is another one than the driver's."""
    path = options["path"]
    return {**options, "path": path if "://" in path else str(Path(path).expanduser().absolute())}


def refuse_unseen(path: str) -> None:
    """Raise in a task for a folder that the driver has found and this machine has not."""
    if "://" not in path and not (Path(path) / MANIFEST).is_file():
        raise unseen_folder(path)


def _refuse_lakehouse(folder: Path) -> None:
    """Raise for the folder of a table that another format keeps."""
    for mark, name in _LAKEHOUSES.items():
        if (folder / mark).is_dir() and not (folder / MANIFEST).exists():
            raise option_error(
                f"{folder} is a table of {name}, not a folder of Remuda",
                suggestion=f'Read it by spark.read.format("{name.casefold()}"), and load the data frame by grid.load.',
            )


def _open_in_task(options: Mapping[str, str], execution: str) -> Store:
    """Open the store in a task; the driver has found it when it planned the read."""
    try:
        return open_reader(options, execution)
    except StorageError as error:
        if error.sqlstate == _NO_STORE:
            raise unseen_folder(options["path"]) from error
        raise


@contextmanager
def pinned_store(options: Mapping[str, str]) -> Iterator[Store | None]:
    """Give the store as the execution of this task reads it, and keep its files meanwhile.

    None where no version can be pinned: in a job without an execution, in a folder that this process may not write, and
    in a remote one whose file system has no conditional put.
    """
    store = _store_of(options)
    if store is None or store.pin is None:
        yield None
        return
    try:
        yield store
    finally:
        store.pin.unlock()


def _store_of(options: Mapping[str, str]) -> Store | None:
    execution = running_execution()
    if execution is None:
        return None
    name = options["path"], options.get("cache")
    store = _stores.get(name)
    if store is None:
        while len(_stores) >= _MOST_STORES:
            _stores.pop(next(iter(_stores))).close()
        store = _stores[name] = _open_in_task(options, execution)
    elif store.pin is not None and store.pin.name == execution:
        store.pin.lock()
    else:
        store.read_execution(execution)
    return store
