"""`Grid`: a set of maps, and every statement on them."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, overload
from weakref import WeakSet

from remuda.catalog.definitions import MOST_PARTITIONS
from remuda.cluster import Cluster
from remuda.errors import closed_error, kind_of, nearest, not_found, option_error, wrong_object
from remuda.grid.query_engine import QueryEngine
from remuda.grid.session import Session, not_text
from remuda.storage import Durability, Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    import pyarrow as pa

    from remuda.catalog import MapDefinition, SearchPath
    from remuda.grid.map import Map
    from remuda.grid.result import Result
    from remuda.grid.statements.explanation import Explanation
    from remuda.spark import SparkSession
    from remuda.storage import LoadMode
    from remuda.storage.load.merge_changes import ChangeCounts


def open_grid(
    path: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    members: int = 1,
    partitions: int | None = None,
    durability: str = "fsync",
    read_only: bool = False,
    filesystem: Any = None,
    cache: str | Path | None = None,
    cache_bytes: int | None = None,
    sole_writer: bool = False,
) -> Grid:
    """Open a grid: in memory without a path, else in a durable folder, which is created if absent.

    With a Spark session the same maps can be queried by Spark jobs, and loaded from Spark data frames.

    A grid belongs to the process that opened it: one that is forked off opens its own. A new folder, or memory, has
    271 partitions unless another number is given; a folder keeps those that it was made with.

    The path may be a URI (`s3://bucket/shop.remuda`), or a path in a `pyarrow.fs` file system that is given: such a
    store is read, or loaded with `durability="none"`, through a folder on local disk, `cache`, which keeps the
    blocks that were read. Beyond `cache_bytes` the longest unused files of it are removed, but for those that queries
    under way read. Any number of processes may write a store on S3, Google Cloud Storage or Azure at the same time.
    Other file systems cannot keep their commits apart: there `sole_writer=True` is your promise that no other process
    writes the store.
    """
    if spark is not None and path is None:
        raise option_error("with Spark the grid needs a folder: Spark's tasks read the maps from there")
    try:
        chosen = Durability(durability)
    except ValueError as error:
        known = ", ".join(level.value for level in Durability)
        raise option_error(f"durability must be one of {known}, not {durability!r}") from error
    counts = {} if partitions is None else {"partitions": partitions}
    _check_options(path, members=members, **counts)
    if spark is not None:
        from remuda.spark.driver.executors import refuse_unusable

        refuse_unusable(spark)
    options = {"durability": chosen, "read_only": read_only, **counts}
    store = _open_store(path, options, filesystem, cache, cache_bytes, sole_writer=sole_writer)
    try:
        _refuse_other_partitions(path, store, partitions)
        return Grid(store, members, spark)
    except BaseException:
        store.close()
        raise


def _refuse_other_partitions(path: str | Path | None, store: Store, partitions: int | None) -> None:
    if partitions not in {None, store.partitions}:
        raise option_error(
            f"{path} has {store.partitions} partitions, which stay as they are: open it without partitions={partitions}"
        )


def _open_store(
    path: str | Path | None,
    options: Mapping[str, Any],
    filesystem: Any,
    cache: str | Path | None,
    cache_bytes: int | None,
    *,
    sole_writer: bool,
) -> Store:
    if filesystem is None and "://" not in str(path):
        folder = None if path is None else Path(path).expanduser().absolute()
        return Store.open(folder, **options)
    from remuda.storage.remote.remote_location import open_address

    found = open_address(str(path), filesystem, cache, cache_bytes, sole_writer=sole_writer)
    if isinstance(found, Path):
        return Store.open(found, **options)
    try:
        return Store.open(remote=found, **options)
    except BaseException:
        found.close()
        raise


def _check_options(path: object, **counts: object) -> None:
    """Raise where the path is none, or a number is not one. An empty path would mean the current folder."""
    if path is not None and not isinstance(path, str | Path):
        raise option_error(f"the path is text or a pathlib.Path, not {kind_of(path)}")
    if path == "" or "\0" in str(path):
        raise option_error("the path is empty" if path == "" else "the path has a character that no file name has")
    if path is not None and "://" not in str(path) and Path(path).is_file():
        hint = "Open a folder, new or old, and load the file into a table: COPY ... FROM, or grid.load."
        raise option_error(f"{path} is a file: a grid is kept in a folder", suggestion=hint)
    for name, value in counts.items():
        if not isinstance(value, int):
            raise option_error(f"{name} must be a whole number, not {value!r}")
        if value < 1:
            raise option_error("a grid has at least one member and one partition")
        if name == "partitions" and value > MOST_PARTITIONS:
            raise option_error(f"a grid has at most {MOST_PARTITIONS} partitions, not {value}")


class Grid:
    """A set of maps, and every statement on them; made by `remuda.open`. Many threads may use one at once.

    >>> import remuda
    >>> with remuda.open() as grid:
    ...     grid.sql("CREATE TABLE orders (id BIGINT, amount DOUBLE, PRIMARY KEY (id))").update_count
    ...     grid.sql("INSERT INTO orders VALUES (?, ?)", 1, 9.5).update_count
    0
    1
    """

    def __init__(self, store: Store, members: int = 1, spark: SparkSession | None = None) -> None:
        self.store = store
        self.cluster = Cluster(members, store.partitions)
        self.engine = QueryEngine(store, self.cluster, spark)
        self.cluster.on_change = self.engine.plans.changed
        self.default_session = Session(self)
        self.sql = self.default_session.sql  # type: ignore[method-assign]
        self._sessions: WeakSet[Session] = WeakSet([self.default_session])
        self._lock = Lock()
        self._closed = False
        self._closed_because = "the grid is closed"
        leave_at_fork(self)

    @property
    def search_path(self) -> SearchPath:
        """The schemas in which a name without one is looked for."""
        return self.default_session.search_path

    def sql(self, text: str, /, *values: Any, timeout: float | None = None, **named: Any) -> Result:
        """Run one statement in the grid's own session; `?` parameters are given in order, `:name` parameters by name.

        See `Session.sql`. Each grid has that method here in place of this one: handing the call on would take a tenth
        of the time of a lookup.
        """
        return self.default_session.sql(text, *values, timeout=timeout, **named)

    async def sql_async(self, text: str, /, *values: Any, timeout: float | None = None, **named: Any) -> Result:
        """Run one statement in the grid's own session, on another thread; see `Session.sql_async`."""
        return await self.default_session.sql_async(text, *values, timeout=timeout, **named)

    def session(self) -> Session:
        """Return a new session, which shares the maps and the plans of the grid and has settings of its own."""
        with self._lock:
            self._refuse_closed()
            session = Session(self)
            self._sessions.add(session)
        return session

    def explain(
        self, text: str, /, *values: Any, format: str | None = None, analyze: bool = False, **named: Any
    ) -> Explanation:
        """Return the plan of a query, as SQL's EXPLAIN prints it; with `analyze` run the query first.

        With values for its parameters it says what they decide: which partitions and members, index or direct scan.
        The text is a `str`; a notebook shows it as a picture, and `save("plan.svg")` or `save("plan.html")` writes it.
        `format` is `text`, `json`, `html` or `svg`.

        >>> import remuda
        >>> print(remuda.open().explain("SELECT 1 AS one"))  # doctest: +ELLIPSIS
        Root...
        """
        return self.default_session.explain(text, *values, format=format, analyze=analyze, **named)

    def map(self, name: str) -> Map:
        """Return the key-value face of a map.

        >>> import remuda
        >>> grid = remuda.open()
        >>> grid.load("stock", [{"item": "hay", "amount": 5}], key="item")
        1
        >>> grid.map("stock")["hay"].amount
        5
        """
        from remuda.grid.map import Map

        self._refuse_closed()
        return Map(self.store.map(self._definition(name)), self.sql)

    @overload
    def load(
        self,
        name: str,
        data: Any,
        mode: Literal["append", "replace", "upsert"] = "append",
        *,
        key: str | Sequence[str] | None = None,
        indexes: str | Sequence[str] | None = None,
        json: str | Sequence[str] | None = None,
        partitions: int | None = None,
        missing: str = "error",
        progress: bool | None = None,
        order_by: str | None = None,
        condition: str | None = None,
        batch_id: tuple[str, int] | str | None = None,
    ) -> int: ...

    @overload
    def load(
        self,
        name: str,
        data: Any,
        mode: Literal["apply"],
        *,
        key: str | Sequence[str] | None = None,
        indexes: str | Sequence[str] | None = None,
        json: str | Sequence[str] | None = None,
        partitions: int | None = None,
        missing: str = "error",
        progress: bool | None = None,
        order_by: str | None = None,
        operation: str | None = None,
        changes: str | None = None,
        condition: str | None = None,
        batch_id: tuple[str, int] | str | None = None,
    ) -> ChangeCounts: ...

    @overload
    def load(
        self,
        name: str,
        data: Any,
        mode: Any = "append",
        *,
        key: Any = None,
        indexes: Any = None,
        json: Any = None,
        partitions: Any = None,
        missing: Any = "error",
        progress: Any = None,
        order_by: Any = None,
        operation: Any = None,
        changes: Any = None,
        condition: Any = None,
        batch_id: Any = None,
    ) -> Any: ...

    def load(
        self,
        name: str,
        data: Any,
        mode: LoadMode = "append",
        *,
        key: str | Sequence[str] | None = None,
        indexes: str | Sequence[str] | None = None,
        json: str | Sequence[str] | None = None,
        partitions: int | None = None,
        missing: str = "error",
        progress: bool | None = None,
        order_by: str | None = None,
        operation: str | None = None,
        changes: str | None = None,
        condition: str | None = None,
        batch_id: tuple[str, int] | str | None = None,
    ) -> int | ChangeCounts:
        """Load many rows into a map, all or none, and return how many.

        `data` is a pyarrow table, batch, reader or dataset, a pandas or Polars data frame (lazy ones too), a DuckDB
        relation, a Delta table, a Spark data frame, anything else with `__arrow_c_stream__`, a list of dictionaries, a
        dictionary of lists, several of these one after the other, or the path of files: Parquet, CSV, JSON lines,
        Arrow; `.csv.gz` and its kin; a folder, a pattern such as `"day=*/*.parquet"`, or the folder of a Delta table.
        What comes in batches is not held all at once.

        `key` names the column, or the columns, of the key: with it a map that is absent is created, with the columns
        and types of the data, and the `indexes`, written as `"customer HASH, (status, amount) SORTED"`. Structs, lists
        and maps are kept where `json` names their columns. A map that is there is refused where it has another key or
        lacks an index. `mode` is `append`, which refuses keys that are there, `upsert` or `replace`. Data that
        lacks columns of the map is refused, unless `missing="null"`. Two rows of an upsert with one key are refused
        too, unless `order_by` names the column whose greater value wins.

        The mode `apply` inserts, updates and deletes rows by key, as the column `operation` says of each, and returns
        `ChangeCounts`; `changes="delta"` and `"debezium"` know the form of a change feed. With `condition`, SQL over
        `new.` and `old.`, a row that is there is replaced or deleted only where it is true. A load with a `batch_id`, a
        stream's name and a number, changes nothing when it was done before. A bar shows the progress on a terminal;
        `progress` says otherwise.

        >>> import remuda
        >>> grid = remuda.open()
        >>> grid.load("orders", [{"id": 1, "amount": 9.5}, {"id": 2, "amount": None}], key="id")
        2
        >>> grid.load("orders", {"id": [2, 3], "amount": [5.0, 7.5]}, mode="upsert")
        2
        >>> grid.sql("SELECT SUM(amount) AS total FROM orders").fetchone().total
        22.0
        """
        from remuda.grid.files.loading import LoadOptions, load_data
        from remuda.storage.load.new_map import MapRequest

        self._refuse_closed()
        request = MapRequest.checked(key, indexes, json, partitions)
        options = LoadOptions.checked(
            mode,
            request,
            missing,
            progress,
            order_by,
            operation=operation,
            changes=changes,
            condition=condition,
            batch_id=batch_id,
        )
        if not isinstance(name, str):
            raise not_text("the name of a map", name)
        known = self.store.catalog.find_map(name, self.search_path)
        rows = load_data(self.store, name, known, data, options)
        if known is None:
            self.engine.plans.changed()
        return rows

    def changes(self, name: str, since: int = 0, until: int | None = None) -> pa.RecordBatchReader:
        """Return the rows of a map that changed after one committed version, up to another (default: the newest).

        Each row has `_change_type`, a word of Delta's change data feed, and `_commit_version` and `_commit_timestamp`
        of the later version. The changes are those of the whole span: a row that was changed twice is one update, as
        the rows `update_preimage` and `update_postimage`. `since=0` gives all rows as inserts. SHOW VERSIONS lists the
        versions; what was written since the last checkpoint is in none of them.
        """
        from remuda.grid.results.change_feed import change_reader

        self._refuse_closed()
        return change_reader(self.store, self._definition(name), since, until)

    def checkpoint(self) -> None:
        """Flush recent writes into segments now. The grid does so by itself, in the background, when they are many."""
        self._refuse_closed()
        self.store.checkpoint()

    def refresh(self) -> None:
        """Make a read-only grid, or a writer of a remote store, see all that was committed by now."""
        self._refuse_closed()
        self.store.refresh()
        self.engine.plans.changed()

    def close(self) -> None:
        """End all sessions and their results, and let go of the folder. What was acknowledged is durable before."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            sessions = list(self._sessions)
        for session in sessions:
            session.close(self._closed_because)
        self.engine.close()
        self.store.close()
        self.store.refuse_reads(self._closed_because)

    def leave(self, reason: str) -> None:
        """Refuse everything from now on, for this reason, and touch nothing: it belongs to another process."""
        self._closed, self._closed_because = True, reason
        for session in list(self._sessions):
            session.leave(reason)
        self.store.leave(reason)

    def __repr__(self) -> str:
        remote = self.store.remote
        place = remote.files.name if remote is not None else self.store.path or "in memory"
        return f"<Grid {place}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _definition(self, name: str) -> MapDefinition:
        if not isinstance(name, str):
            raise not_text("the name of a map", name)
        found = self.store.catalog.find_map(name, self.search_path)
        if found is None:
            if self.store.catalog.find_view(name, self.search_path) is not None:
                raise wrong_object(
                    f"{name} is a view, not a map", suggestion=f"Query it: grid.sql('SELECT * FROM {name}')."
                )
            known = nearest(name, [each.name for each in self.store.catalog.maps.values()])
            hint = known or f"Create it with: CREATE TABLE {name} (..., PRIMARY KEY (...))"
            raise not_found(f"unknown table: {name}", suggestion=hint)
        return found

    def _refuse_closed(self) -> None:
        if self._closed:
            raise closed_error(self._closed_because)


# What becomes of open grids in a process that is forked off.
#
# The child has their memory and their open files, but not their threads: a query that needs one would wait for ever,
# and two processes would write one log. So a grid answers only in the process that opened it; the child is told to
# open its own. It also lets go of the folder's lock, which would otherwise outlive the parent in it.


REASON = "the grid was opened by another process, from which this one was forked: open one here"

_open: WeakSet[Grid] = WeakSet()


def leave_at_fork(grid: Grid) -> None:
    """Leave this grid to the process that has it now, whenever it forks."""
    _open.add(grid)


def _leave_all() -> None:
    for grid in list(_open):
        grid.leave(REASON)
    _open.clear()


os.register_at_fork(after_in_child=_leave_all)
