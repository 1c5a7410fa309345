"""`Grid`: a set of maps, and the life of every statement on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remuda import sql
from remuda.catalog import DEFAULT_SCHEMA, SearchPath
from remuda.cluster import Cluster
from remuda.errors import ErrorCode, RemudaError, SqlError, data_error
from remuda.expr import Parameters
from remuda.grid import definitions
from remuda.grid.explain import explain_query, lines_result
from remuda.grid.load import as_table, is_spark_dataframe, suggest_create
from remuda.grid.map import Map
from remuda.grid.modify import apply_modification
from remuda.grid.parameters import arrange, to_stored_values
from remuda.grid.plan_cache import CachedPlan, PlanCache, PlanKey
from remuda.grid.planner import Planner
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.settings import Engine, Settings, with_option
from remuda.grid.shortcuts import compile_shortcut
from remuda.grid.show import show
from remuda.runtime import Execution, LocalRuntime, Scheduler
from remuda.storage import Durability, LoadMode, Store

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import SparkSession

    from remuda.catalog import MapDefinition
    from remuda.plan.fragments import Plan

MAXIMUM_TRIES = 20
"""How often a query whose plan turns out stale is planned anew before the user is told that members keep changing."""
FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.1


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
        self.cluster.on_change = self._plans_changed
        self.settings = Settings()
        self.search_path: SearchPath = (DEFAULT_SCHEMA,)
        self._spark = spark
        self._scheduler = Scheduler()
        self._runtime = LocalRuntime(self.cluster, self._scheduler)
        self._plans = PlanCache(self._is_valid)
        self._closed = False

    # Statements

    def sql(self, text: str, /, *parameters: Any, **named: Any) -> Result:
        """Runs one statement; `?` parameters are given in order, `:name` parameters by name."""
        entry = self._plans.find((self.search_path, text))
        if entry is not None and not named:
            if entry.shortcut is not None:
                result = entry.shortcut(parameters)
                if result is not None:
                    return result
        return self._run_statement(text, parameters, named)

    def explain(self, text: str, /) -> str:
        """The plan of a query, as SQL's EXPLAIN prints it."""
        try:
            statement = sql.parse(text)
            if isinstance(statement, sql.Explain):
                return explain_query(self._planner(), text, statement)
            if not isinstance(statement, sql.Query):
                raise data_error("only queries have a plan")
            return explain_query(self._planner(), text, sql.Explain(statement, sql.ExplainMode.PLAN))
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

            loaded = load_dataframe(self.store.map(self._definition(name)), data, mode)
        else:
            table = as_table(data)
            loaded = self.store.map(self._definition(name, suggest_create(name, table.schema))).load(table, mode)
        return loaded

    def checkpoint(self) -> None:
        """Folds the write log into segments now."""
        self.store.checkpoint()

    def refresh(self) -> None:
        """Makes a read-only grid see all that was acknowledged by now."""
        self.store.refresh()
        self._plans_changed()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._plans.close()
        self._plans.clear()
        self._scheduler.close()
        self.store.close()

    def __enter__(self) -> Grid:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The life of a statement

    def _run_statement(self, text: str, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Result:
        if self._closed:
            raise SqlError(ErrorCode.GENERIC, "the grid is closed")
        try:
            key = (self.search_path, text)
            entry = self._plans.find(key)
            if entry is not None:
                return self._run_query(key, entry, None, positional, named)
            statement = sql.parse(text)
            if isinstance(statement, sql.Query):
                entry = self._plan_query(key, statement)
                if entry.shortcut is not None and not named:
                    result = entry.shortcut(positional)
                    if result is not None:
                        return result
                return self._run_query(key, entry, statement, positional, named)
            if positional or named:
                raise data_error("this statement takes no parameters")
            return self._run_definition(text, statement)
        except SqlError as error:
            raise error.with_text(text) from error.__cause__

    def _run_definition(self, text: str, statement: sql.Statement) -> Result:
        match statement:
            case sql.CreateMap():
                definitions.create_map(self.store, self.search_path, statement)
            case sql.DropMap():
                definitions.drop_map(self.store, self.search_path, statement)
            case sql.CreateIndex():
                definitions.create_index(self.store, self.search_path, statement)
            case sql.DropIndex():
                definitions.drop_index(self.store, self.search_path, statement)
            case sql.Truncate():
                definition = definitions.find_map(self.store, self.search_path, statement.name)
                return Result(RowShape(()), [], update_count=self.store.map(definition).truncate())
            case sql.Checkpoint():
                self.checkpoint()
            case sql.SetOption():
                self._set(statement)
            case sql.Show():
                return show(statement.what, self.store, self.cluster, self._plans)
            case sql.Explain():
                return lines_result(explain_query(self._planner(), text, statement))
            case sql.Query():
                raise AssertionError("queries have their own way")
        self._plans_changed()
        return Result(RowShape(()), [], update_count=0)

    def _set(self, statement: sql.SetOption) -> None:
        settings = with_option(self.settings, statement.option, statement.value, statement.span)
        if settings.engine is Engine.SPARK and self._spark is None:
            raise data_error("there is no Spark session: open the grid with spark=...", span=statement.span)
        self.settings = settings
        # Plans were made for the settings before.
        self._plans.clear()

    def _planner(self, **changes: Any) -> Planner:
        partition_map = self.cluster.partition_table.partition_map()
        return Planner(
            self.store, self.store.catalog, self.search_path, partition_map, self.settings, self._spark is not None, **changes
        )

    def _plan_query(self, key: PlanKey, query: sql.Query) -> CachedPlan:
        """Plans a query and keeps the plan. What changes meanwhile is noticed, as the epoch is from before."""
        epoch = self._plans.epoch
        settings = self.settings
        plan = self._planner().plan(key[1], query)
        entry = CachedPlan(plan, RowShape(plan.columns), compile_shortcut(plan, self.store), epoch)
        if settings is self.settings:
            self._plans.add(key, entry)
        return entry

    def _run_query(
        self, key: PlanKey, entry: CachedPlan, query: sql.Query | None, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Result:
        plan = entry.plan
        given = arrange(plan.parameter_names, len(plan.parameters), positional, named)
        stored, errors = to_stored_values(plan.parameters, given)
        if errors:
            plan, stored = self._plan_with_literals(key[1], given, errors)
            return self._start(key, plan, stored, entry.shape, given, exact=True)
        return self._start(key, plan, stored, entry.shape, given, exact=False)

    def _plan_with_literals(
        self, text: str, given: tuple[Any, ...], errors: Mapping[int, SqlError]
    ) -> tuple[Plan, tuple[Any, ...]]:
        """A plan for values that their column's type cannot hold: as literals they are compared exactly, or refused."""
        query = sql.parse(text)
        assert isinstance(query, sql.Query)
        try:
            plan = self._planner().plan(text, query, {number: given[number] for number in errors})
        except SqlError as error:
            number, original = next(iter(errors.items()))
            raise data_error(
                f"parameter {number + 1}: {original.message}", span=error.span, suggestion=original.suggestion
            ) from error
        stored, _ = to_stored_values(plan.parameters, given)
        return plan, stored

    def _start(
        self, key: PlanKey, plan: Plan, stored: tuple[Any, ...], shape: RowShape, given: tuple[Any, ...], *, exact: bool
    ) -> Result:
        """Runs a plan; a stale one is made anew, a bounded number of times, with growing pauses."""
        tries = 0

        def again(error: SqlError) -> Execution:
            nonlocal plan, stored, tries
            while True:
                self._plans.remove(key, plan)
                tries += 1
                if tries >= MAXIMUM_TRIES:
                    if error.code is ErrorCode.PARTITION_DISTRIBUTION:
                        raise SqlError(ErrorCode.TOPOLOGY_CHANGE, "members changed faster than the query could be run") from error
                    raise error
                time.sleep(min(FIRST_PAUSE * 2**tries, LONGEST_PAUSE))
                query = sql.parse(key[1])
                assert isinstance(query, sql.Query)
                if exact:
                    _, errors = to_stored_values(plan.parameters, given)
                    plan, stored = self._plan_with_literals(key[1], given, errors)
                else:
                    plan = self._plan_query(key, query).plan
                try:
                    return self._execute(plan, stored)
                except SqlError as next_error:
                    if not next_error.invalidates_plan:
                        raise
                    error = next_error

        if plan.modifies is not None:
            return self._run_modification(plan, stored, again)
        try:
            execution = self._execute(plan, stored)
        except SqlError as error:
            if not error.invalidates_plan:
                raise
            execution = again(error)
        return Result(shape, None, execution, again)

    def _run_modification(self, plan: Plan, stored: tuple[Any, ...], again: Callable[[SqlError], Execution]) -> Result:
        """Other writers of the map wait from the snapshot that the statement reads until it has written."""
        assert plan.modifies is not None
        with self.store.map(plan.modifies).writing():
            execution: Execution | None = None
            while True:
                try:
                    execution = execution or self._execute(plan, stored)
                    batch = execution.next_batch()
                    break
                except SqlError as error:
                    if not error.invalidates_plan:
                        raise
                    execution = again(error)
        assert batch is not None, "a modification gives one row"
        return Result(RowShape(()), [], update_count=batch.row(0)[0])

    def _execute(self, plan: Plan, stored: tuple[Any, ...]) -> Execution:
        with self.store.map(plan.modifies).writing() if plan.modifies is not None else nullcontext():
            snapshots = self.store.snapshot(plan.maps)
        by_id = {definition.id: snapshot for definition, snapshot in zip(plan.maps, snapshots, strict=True)}
        parameters = Parameters(stored, plan.parameters)
        remote = None
        if self._spark is not None:
            from remuda.spark.runtime import SparkLeaves

            remote = SparkLeaves(self._spark, plan, parameters, by_id)
        return self._runtime.run(
            plan,
            parameters,
            by_id,
            check_objects=self._objects_check(plan),
            modify=lambda node, rows: apply_modification(self.store, node, rows),
            timeout=self.settings.timeout,
            remote=remote,
        )

    def _objects_check(self, plan: Plan) -> Callable[[], None]:
        """Whether the maps and indexes that the plan reads still exist; free as long as the catalog is the same."""
        planned = self.store.catalog
        used = plan.used_indexes

        def check() -> None:
            catalog = self.store.catalog
            if catalog is planned:
                return
            for definition in plan.maps:
                current = catalog.find_map(definition.name, (definition.schema,))
                if current is None or current.id != definition.id:
                    raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {definition.name} was dropped")
                for index in used:
                    if index in definition.indexes and index not in current.indexes:
                        raise SqlError(ErrorCode.INDEX_INVALID, f"the index {index.name} was dropped")

        check()
        return check

    # The state that plans depend on

    def _is_valid(self, plan: Plan) -> bool:
        catalog = self.store.catalog
        return plan.partition_map.version == self.cluster.partition_table.version and all(
            catalog.holds(definition) for definition in plan.maps
        )

    def _plans_changed(self) -> None:
        self._plans.changed()

    def _definition(self, name: str, suggestion: str | None = None) -> MapDefinition:
        found = self.store.catalog.find_map(name, self.search_path)
        if found is None:
            raise SqlError(
                ErrorCode.OBJECT_NOT_FOUND,
                f"unknown table: {name}",
                suggestion=suggestion or f"Create it with: CREATE TABLE {name} (..., PRIMARY KEY (...))",
            )
        return found


def explain_with_trace(grid: Grid, text: str, disabled: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """The plan with some rules disabled and every step checked, and the names of the rules that fired: for tests."""
    statement = sql.parse(text)
    assert isinstance(statement, sql.Query)
    planner = grid._planner(disabled_rules=disabled, checked=True)
    bound = sql.bind(statement, planner.catalog, planner.search_path)
    optimized = planner.optimize(bound)
    explained = explain_query(planner, text, sql.Explain(statement, sql.ExplainMode.PLAN))
    return explained, frozenset(optimized.fired)
