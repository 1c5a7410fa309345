"""The life of a query: its plan found or made, its values checked, its execution started; and started again where the
plan turned out to be stale.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.catalog import DEFAULT_SCHEMA, SearchPath
from remuda.errors import ErrorCode, SqlError, data_error
from remuda.expr import Parameters
from remuda.expr.cancellation import asking
from remuda.grid.deadline import Answer, within_time
from remuda.grid.garbage import full_collections_put_off
from remuda.grid.open_results import OpenResults
from remuda.grid.parameters import arrange, to_stored_values
from remuda.grid.plan_cache import CachedPlan, PlanCache, PlanKey
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.settings import Settings
from remuda.grid.shortcuts.shortcuts import compile_shortcut
from remuda.grid.write_rows import apply_modification
from remuda.rules import extensions
from remuda.runtime import Execution, LocalRuntime, Scheduler
from remuda.runtime.execution import QueryState
from remuda.runtime.offload_pool import OffloadPool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from remuda.catalog import Catalog, MapDefinition
    from remuda.cluster import Cluster
    from remuda.grid.planner import Planner
    from remuda.plan.fragments import Plan
    from remuda.plan.physical import Modify
    from remuda.spark import SparkSession
    from remuda.spark.driver.executors import ExecutorWatch
    from remuda.sql import Query
    from remuda.storage import CommitGuard, Store

MAXIMUM_TRIES = 20
"""How often a query whose plan turns out stale is planned anew before the user is told that members keep changing."""
FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.1
"""Seconds between the tries; each pause is twice the one before."""


class Queries:
    """Plans and runs queries on the maps of one store."""

    def __init__(self, store: Store, cluster: Cluster, spark: SparkSession | None) -> None:
        self.store = store
        self.cluster = cluster
        self.spark = spark
        self.settings = Settings()
        self._extensions = extensions.registered()
        self.search_path: SearchPath = (DEFAULT_SCHEMA,)
        self.plans = PlanCache(store, self._is_valid)
        self._executors = _watch(spark)
        if self._executors is not None:
            cluster.executors = self._executors.names
        self._scheduler = Scheduler()
        self._runtime = LocalRuntime(cluster, self._scheduler)
        self._open_results = OpenResults()
        self._statements = OffloadPool()

    def planner(self, **changes: Any) -> Planner:
        """What plans are made by at this moment. Planning is imported with the first plan, not with the package."""
        from remuda.grid.planner import Planner

        partition_map = self.cluster.partition_table.partition_map()
        has_spark = self.spark is not None
        if self._executors is not None:
            changes = {"spark_parallelism": self._executors.parallelism, "cores": os.cpu_count() or 1, **changes}
        changes = {"extensions": self._extensions, **changes}
        return Planner(
            self.store, self.store.catalog, self.search_path, partition_map, self.settings, has_spark, **changes
        )

    def leave(self, reason: str) -> None:
        """In a process that was forked off: results that are open refuse every read."""
        self._open_results.leave(reason)

    def plan(self, key: PlanKey, query: Query) -> CachedPlan:
        """Plans a query and keeps the plan. Where a map is dropped meanwhile, planning finds the new one, or none."""
        tries = RetryPolicy()
        while True:
            try:
                return self._plan_once(key, query)
            except SqlError as error:
                if not error.invalidates_plan:
                    raise
                tries.count(error)

    def _plan_once(self, key: PlanKey, query: Query) -> CachedPlan:
        """What changes from now on is noticed when the plan is used, as the epoch is from before.

        Planning that alone takes longer than the statement may ends in the middle.
        """
        epoch, settings = self.plans.epoch, self.settings
        deadline = QueryState(settings.timeout)
        with nullcontext() if settings.timeout is None else asking(deadline.check):
            plan = self.planner().plan(key[1], query)
        entry = CachedPlan(plan, RowShape(plan.columns), compile_shortcut(plan, self.store), epoch)
        if settings is self.settings and plan.cacheable:
            self.plans.add(key, entry)
        return entry

    def plan_with_literals(self, text: str, given: tuple[Any, ...], errors: Mapping[int, SqlError]) -> CachedPlan:
        """A plan for values that their column's type cannot hold: as literals they are compared exactly, or refused.

        It is for these values alone, so it is not kept.
        """
        literals = {number: given[number] for number in errors}
        query = _parse_query(text)
        try:
            plan = self.planner().plan(text, query, literals)
        except SqlError as error:
            number = query.parameters.blamed(tuple(errors), error.span)
            message, place = f"parameter {number + 1}: {errors[number].message}", query.parameters.spans[number]
            raise data_error(message, span=place, suggestion=errors[number].suggestion) from error
        return CachedPlan(plan, RowShape(plan.columns), None, self.plans.epoch)

    def plan_by_values(
        self, text: str, numbers: Sequence[int], positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> CachedPlan:
        """A plan for the values of parameters whose types only they tell, `SELECT ?`. It is not kept."""
        query = _parse_query(text)
        given = arrange(query.parameters.names, len(query.parameters), positional, named)
        plan = self.planner().plan(text, query, {number: given[number] for number in numbers})
        return CachedPlan(plan, RowShape(plan.columns), None, self.plans.epoch)

    def run(
        self,
        key: PlanKey,
        entry: CachedPlan,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        started: float | None = None,
    ) -> Result:
        """`started` is when the statement was given, where that was not just now."""
        plan = entry.plan
        given = arrange(plan.parameter_names, len(plan.parameters) - plan.reads_clock, positional, named)
        if plan.reads_clock:
            given = (*given, datetime.now(UTC))
        stored, errors = to_stored_values(plan.parameters, given)
        if errors:
            entry = self.plan_with_literals(key[1], given, errors)
        run = QueryRun(self, key, entry, given, stored, errors, started or time.monotonic())
        if plan.modifies is not None:
            return run.modify()
        result = Result.of_execution(entry.shape, run.start(), run.restart, self.store.refuse_damaged)
        self._open_results.add(result)
        return result

    def within_time(self, started: float, work: Callable[[CommitGuard], Answer]) -> Answer:
        """What a statement that changes something does, done before its time is over or not at all."""
        return within_time(self._statements, self.settings.timeout, started, work)

    def execute(
        self,
        entry: CachedPlan,
        stored: tuple[Any, ...],
        started: float | None = None,
        modify: Callable[[Store, Modify, list[tuple[Any, ...]]], int] = apply_modification,
    ) -> Execution:
        """Takes the snapshots and starts the fragments."""
        self.look_for_executors()
        plan = entry.plan
        check_objects = self._objects_check(plan)
        snapshots = self.store.snapshot(plan.maps)
        by_id = {definition.id: snapshot for definition, snapshot in zip(plan.maps, snapshots, strict=True)}
        parameters = Parameters(stored, plan.parameters)
        remote = None
        if self.spark is not None:
            from remuda.spark.query.spark_runtime import SparkFragments

            shared = None if self.store.read_only or self.store.remote is not None else self.store.path
            remote = SparkFragments(self.spark, plan, parameters, by_id, shared, self.settings.memory_limit, entry.code)
        return self._runtime.run(
            plan,
            parameters,
            by_id,
            entry.code,
            check_objects=check_objects,
            modify=partial(modify, self.store),
            timeout=self.settings.timeout,
            started=started,
            memory_limit=self.settings.memory_limit,
            remote=remote,
        )

    def look_for_executors(self) -> None:
        """Where Spark has others than before, plans are made anew."""
        if self._executors is not None and self._executors.has_changed():
            self.cluster.renew(self._executors.names)

    def close(self) -> None:
        self.plans.close()
        self.plans.clear()
        self._open_results.end()
        self._scheduler.close()
        self._runtime.aside.close()
        self._statements.close()

    def _is_valid(self, plan: Plan) -> bool:
        catalog = self.store.catalog
        return (
            plan.partition_map.version == self.cluster.partition_table.version
            and all(catalog.holds(definition) for definition in plan.maps)
            and all(catalog.holds_view(view) for view in plan.views)
            and not any(self._has_outgrown(definition, rows) for definition, rows in plan.outgrown_at)
        )

    def _has_outgrown(self, definition: MapDefinition, rows: int) -> bool:
        try:
            return len(self.store.map(definition)) >= rows
        except SqlError:  # dropped at this moment
            return True

    def _objects_check(self, plan: Plan) -> Callable[[], None]:
        """Whether the maps and indexes that the plan reads still exist; free as long as the catalog is the same."""
        checked: Catalog | None = None

        def check() -> None:
            nonlocal checked
            catalog = self.store.catalog
            if catalog is checked:
                return
            for definition in plan.maps:
                current = catalog.find_map(definition.name, (definition.schema,))
                if current is None or current.id != definition.id:
                    raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {definition.name} was dropped")
                for index in plan.used_indexes:
                    if index in definition.indexes and index not in current.indexes:
                        raise SqlError(ErrorCode.INDEX_INVALID, f"the index {index.name} was dropped")
            checked = catalog

        check()
        return check


class QueryRun:
    """One run of a query: its plan, its values, and how often it had to be planned anew."""

    def __init__(
        self,
        queries: Queries,
        key: PlanKey,
        entry: CachedPlan,
        given: tuple[Any, ...],
        stored: tuple[Any, ...],
        errors: Mapping[int, SqlError],
        started: float,
    ) -> None:
        self._started = started
        self._queries = queries
        self._key = key
        self._entry = entry
        self._given = given
        self._stored = stored
        self._inexact = errors
        self._tries = RetryPolicy()

    def start(self) -> Execution:
        try:
            return self._queries.execute(self._entry, self._stored, self._started)
        except SqlError as error:
            return self.restart(error)

    def restart(self, error: SqlError, allowed: bool = True) -> Execution:
        """Plans anew and starts again after an error that says that the plan was stale; raises any other error."""
        try:
            while True:
                self._replace_plan(error, allowed)
                try:
                    return self._queries.execute(self._entry, self._stored, self._started)
                except SqlError as next_error:
                    error = next_error
        except SqlError as final:
            raise final.with_text(self._key[1]) from final.__cause__

    def modify(self) -> Result:
        return self._queries.within_time(self._started, self._modify)

    def _modify(self, confirm: CommitGuard) -> Result:
        """Other writers of the map wait from the snapshot that the statement reads until it has written."""
        while True:
            modifies = self._entry.plan.modifies
            assert modifies is not None
            try:
                with full_collections_put_off, self._queries.store.map(modifies).writing_if(confirm):
                    batch = self._queries.execute(self._entry, self._stored, self._started).next_batch()
            except SqlError as error:
                # A map that was created anew meanwhile has a lock of its own.
                self._replace_plan(error)
                continue
            assert batch is not None, "a modification gives one row"
            return Result.of_update(batch.row(0)[0])

    def _replace_plan(self, error: SqlError, allowed: bool = True) -> None:
        """Plans anew after an error that says that the plan was stale; raises any other error.

        The stale plan goes even where the query cannot be run again, as rows of it have been handed out.
        """
        if error.invalidates_plan:
            self._queries.plans.remove(self._key, self._entry.plan)
        if not (error.invalidates_plan and allowed):
            raise error
        self._tries.count(error)
        self._entry = self._plan_again()

    def _plan_again(self) -> CachedPlan:
        text = self._key[1]
        if self._inexact:
            return self._queries.plan_with_literals(text, self._given, self._inexact)
        return self._queries.plan(self._key, _parse_query(text))


class RetryPolicy:
    """How often something was done again because the objects it met were not those it was made for."""

    def __init__(self) -> None:
        self._counted = 0

    def count(self, error: SqlError) -> None:
        """Pauses before the next try; raises where there have been enough."""
        self._counted += 1
        if self._counted >= MAXIMUM_TRIES:
            if error.code is ErrorCode.PARTITION_DISTRIBUTION:
                message = f"members changed {self._counted} times while the query was to be run"
                raise SqlError(ErrorCode.TOPOLOGY_CHANGE, message) from error
            raise error
        time.sleep(min(FIRST_PAUSE * 2**self._counted, LONGEST_PAUSE))


def _watch(spark: SparkSession | None) -> ExecutorWatch | None:
    if spark is None:
        return None
    from remuda.spark.driver.executors import ExecutorWatch

    return ExecutorWatch(spark)


def _parse_query(text: str) -> Query:
    from remuda import sql

    query = sql.parse(text)
    assert isinstance(query, sql.Query), "only queries have plans"
    return query
