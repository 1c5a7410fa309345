"""`Grid`: a set of maps, and every statement on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from remuda import sql
from remuda.cluster import Cluster
from remuda.errors import ErrorCode, RemudaError, SqlError, data_error
from remuda.grid import definitions
from remuda.grid.explain import explain_query, lines_result
from remuda.grid.load import as_table, is_spark_dataframe, suggest_create
from remuda.grid.map import Map
from remuda.grid.queries import Queries
from remuda.grid.result import Result
from remuda.grid.settings import Engine, with_option
from remuda.grid.show import show
from remuda.storage import Durability, LoadMode, Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from remuda.catalog import MapDefinition, SearchPath
    from remuda.spark import SparkSession
    from remuda.sql import SetOption, Statement


def open_grid(
    path: str | Path | None = None,
    *,
    spark: SparkSession | None = None,
    members: int = 1,
    partitions: int = 271,
    durability: str = "fsync",
    read_only: bool = False,
) -> Grid:
    """Opens a grid: in memory without a path, else in a durable folder, which is created if absent.

    With a Spark session the same maps can be queried by Spark jobs, and loaded from Spark data frames.
    """
    if spark is not None and path is None:
        raise RemudaError("with Spark the grid needs a folder: Spark's tasks read the maps from there")
    try:
        chosen = Durability(durability)
    except ValueError as error:
        known = ", ".join(level.value for level in Durability)
        raise RemudaError(f"durability must be one of {known}, not {durability!r}") from error
    folder = None if path is None else Path(path)
    store = Store.open(folder, partitions=partitions, durability=chosen, read_only=read_only)
    return Grid(store, members, spark)


class Grid:
    """Use `remuda.open`. A grid may be used by many threads at once."""

    def __init__(self, store: Store, members: int = 1, spark: SparkSession | None = None) -> None:
        self.store = store
        self.cluster = Cluster(members, store.partitions)
        self._queries = Queries(store, self.cluster, spark)
        self._plans = self._queries.plans
        self.cluster.on_change = self._plans.changed
        self._closed = False

    @property
    def search_path(self) -> SearchPath:
        """The schemas in which a name without one is looked for."""
        return self._queries.search_path

    def sql(self, text: str, /, *parameters: Any, **named: Any) -> Result:
        """Runs one statement; `?` parameters are given in order, `:name` parameters by name."""
        entry = self._plans.find((self._queries.search_path, text))
        if entry is not None and entry.shortcut is not None and not named:
            result = entry.shortcut(parameters)
            if result is not None:
                return result
        return self._run_statement(text, parameters, named)

    def explain(self, text: str, /) -> str:
        """The plan of a query, as SQL's EXPLAIN prints it."""
        try:
            statement = sql.parse(text)
            if isinstance(statement, sql.Query):
                statement = sql.Explain(statement, sql.ExplainMode.PLAN)
            if not isinstance(statement, sql.Explain):
                raise data_error("only queries have a plan")
            return explain_query(self._queries.planner(), text, statement)
        except SqlError as error:
            raise error.with_text(text) from error.__cause__

    def map(self, name: str) -> Map:
        """The key-value face of a map."""
        return Map(self.store.map(self._definition(name)))

    def load(self, name: str, data: Any, mode: LoadMode = "append") -> int:
        """Loads many rows at once, all or none: Arrow, pandas, polars, a path, or a Spark data frame."""
        if mode not in {"append", "replace", "upsert"}:
            raise data_error(f"mode must be append, replace or upsert, not {mode!r}")
        if is_spark_dataframe(data):
            from remuda.spark.load import load_dataframe

            return load_dataframe(self.store.map(self._definition(name)), data, mode)
        table = as_table(data)
        return self.store.map(self._definition(name, suggest_create(name, table.schema))).load(table, mode)

    def checkpoint(self) -> None:
        """Folds the write log into segments now."""
        self.store.checkpoint()

    def refresh(self) -> None:
        """Makes a read-only grid see all that was acknowledged by now."""
        self.store.refresh()
        self._plans.changed()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._queries.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run_statement(self, text: str, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Result:
        if self._closed:
            raise SqlError(ErrorCode.GENERIC, "the grid is closed")
        try:
            key = (self._queries.search_path, text)
            entry = self._plans.find(key)
            if entry is None:
                statement = sql.parse(text)
                if not isinstance(statement, sql.Query):
                    if positional or named:
                        raise data_error("this statement takes no parameters")
                    return self._run_definition(text, statement)
                entry = self._queries.plan(key, statement)
                if entry.shortcut is not None and not named:
                    result = entry.shortcut(positional)
                    if result is not None:
                        return result
            return self._queries.run(key, entry, positional, named)
        except SqlError as error:
            raise error.with_text(text) from error.__cause__

    def _run_definition(self, text: str, statement: Statement) -> Result:
        store, search_path = self.store, self._queries.search_path
        changed = 0
        match statement:
            case sql.Show():
                return show(statement.what, store, self.cluster, self._plans)
            case sql.Explain():
                return lines_result(explain_query(self._queries.planner(), text, statement))
            case sql.SetOption():
                self._set(statement)
            case sql.Checkpoint():
                self.checkpoint()
            case sql.CreateMap():
                definitions.create_map(store, statement)
            case sql.DropMap():
                definitions.drop_map(store, search_path, statement)
            case sql.CreateIndex():
                definitions.create_index(store, search_path, statement)
            case sql.DropIndex():
                definitions.drop_index(store, search_path, statement)
            case sql.Truncate():
                changed = store.map(definitions.find_map(store, search_path, statement.name)).truncate()
            case sql.Query():
                raise AssertionError("queries have their own way")
        self._plans.changed()
        return Result.of_update(changed)

    def _set(self, statement: SetOption) -> None:
        settings = with_option(self._queries.settings, statement.option, statement.value, statement.span)
        if settings.engine is Engine.SPARK and self._queries.spark is None:
            raise data_error("there is no Spark session: open the grid with spark=...", span=statement.span)
        self._queries.settings = settings
        # Plans were made for the settings before.
        self._plans.clear()

    def _definition(self, name: str, suggestion: str | None = None) -> MapDefinition:
        found = self.store.catalog.find_map(name, self._queries.search_path)
        if found is None:
            hint = suggestion or f"Create it with: CREATE TABLE {name} (..., PRIMARY KEY (...))"
            raise SqlError(ErrorCode.OBJECT_NOT_FOUND, f"unknown table: {name}", suggestion=hint)
        return found


def explain_with_trace(grid: Grid, text: str, disabled: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """The plan with some rules disabled and every step checked, and the names of the rules that fired: for tests."""
    statement = sql.parse(text)
    assert isinstance(statement, sql.Query)
    planner = grid._queries.planner(disabled_rules=disabled, checked=True)
    bound = sql.bind(statement, planner.catalog, planner.search_path)
    optimized = planner.optimize(bound)
    explained = explain_query(planner, text, sql.Explain(statement, sql.ExplainMode.PLAN))
    return explained, frozenset(optimized.fired)
