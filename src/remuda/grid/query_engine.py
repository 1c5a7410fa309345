"""What the sessions of a grid share: the store, the plan cache, the runtimes and their threads."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.errors import ErrorCode, SqlError
from remuda.expr import Parameters
from remuda.grid.plan_cache import PlanCache
from remuda.rules import extensions
from remuda.runtime import QueryState, Scheduler
from remuda.runtime.offload_pool import OffloadPool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.catalog import Catalog, SearchPath
    from remuda.cluster import Cluster
    from remuda.expr.cancellation import CancellationToken
    from remuda.grid.plan_cache import CachedPlan
    from remuda.grid.planner import Planner
    from remuda.grid.settings import Settings
    from remuda.grid.statement_writer import StatementWriter
    from remuda.plan.fragments import Plan
    from remuda.runtime import Execution
    from remuda.runtime.local import LocalRuntime
    from remuda.spark import SparkSession
    from remuda.spark.driver.executors import ExecutorWatch
    from remuda.storage import Store

Answer = TypeVar("Answer")


class QueryEngine:
    """Makes planners and starts plans for every session; it knows the settings of none."""

    def __init__(self, store: Store, cluster: Cluster, spark: SparkSession | None) -> None:
        self.store = store
        self.cluster = cluster
        self.spark = spark
        self.plans = PlanCache(store, self.is_valid, self.fits_rows)
        self.statements = OffloadPool()
        """Where statements that write run if they have a deadline. Apart from the runtime's threads: a statement waits
        for the steps of its query, and must not take up the threads that they run on."""
        self.waiting = OffloadPool()
        """Where the statements of coroutines run. Apart from `statements`, on whose threads they may wait for steps."""
        self._extensions = extensions.registered()
        self._executors = _watch(spark)
        if self._executors is not None:
            cluster.executors = self._executors.names
        self.scheduler = Scheduler()
        self.roots = OffloadPool()
        """The threads on which heavy root fragments are advanced."""

    @cached_property
    def runtime(self) -> LocalRuntime:
        """Starts plans. All operators come with it: it is imported with the first plan, a lookup by key needs none."""
        from remuda.runtime.local import LocalRuntime

        return LocalRuntime(self.cluster, self.scheduler, self.roots)

    def planner(self, search_path: SearchPath, settings: Settings, **changes: Any) -> Planner:
        """Return what makes plans at this moment. Planning is imported with the first plan, not with the package."""
        from remuda.grid.planner import Planner

        table = self.cluster.partition_table
        has_spark = self.spark is not None
        if self._executors is not None:
            changes = {"spark_parallelism": self._executors.parallelism, "cores": os.cpu_count() or 1, **changes}
        changes = {"extensions": self._extensions, **changes}
        return Planner(self.store, self.store.catalog, search_path, table, settings, has_spark, **changes)

    def start(
        self,
        entry: CachedPlan,
        stored: tuple[Any, ...],
        token: CancellationToken,
        memory_limit: int | None,
        writer: StatementWriter | None = None,
        statement: str = "",
        spill_folder: Path | None = None,
    ) -> Execution:
        """Take the snapshots and start the fragments of a plan with these values of its parameters.

        `writer` takes the rows of a statement that writes.
        """
        self.look_for_executors()
        plan = entry.plan
        state = QueryState(token, memory_limit, spill_folder)
        check_objects = self._objects_check(plan)
        snapshots = self.store.snapshot(plan.maps)
        by_id = {definition.id: snapshot for definition, snapshot in zip(plan.maps, snapshots, strict=True)}
        parameters = Parameters(stored, plan.parameters)
        remote = None
        if self.spark is not None:
            from remuda.spark.query.spark_runtime import SparkFragments

            shared = None if self.store.read_only or self.store.remote is not None else self.store.path
            target = None if writer is None else writer.task_target
            remote = SparkFragments(self.spark, plan, parameters, by_id, shared, entry.code, target, statement)
        return self.runtime.start(
            plan,
            parameters,
            by_id,
            entry.code,
            state,
            check_objects=check_objects,
            writer=writer,
            remote=remote,
        )

    def run_writing(
        self, token: CancellationToken, work: Callable[[], Answer], statement: str, uses_spark: bool = True
    ) -> Answer:
        """Return what a statement that writes gives, on a thread that can be left where it has a deadline.

        Its jobs carry the job group, pool, tags and description of this thread on any thread.
        """
        if uses_spark and self.spark is not None and token.remaining is not None:
            from remuda.spark.driver.job_marks import carry_marks

            work = carry_marks(self.spark.sparkContext, statement, work)
        return self.statements.run(token, work)

    def look_for_executors(self) -> None:
        """Look for new or lost executors of Spark, after which plans are made again."""
        if self._executors is not None and self._executors.has_changed():
            self.cluster.renew(self._executors.names)

    def close(self) -> None:
        self.plans.close()
        self.plans.clear()
        self.scheduler.close()
        self.roots.close()
        self.statements.close()
        self.waiting.close()

    def is_valid(self, plan: Plan) -> bool:
        """Return whether the maps, views and partitions that the plan was made for are the current ones."""
        catalog = self.store.catalog
        return (
            plan.partition_map.version == self.cluster.partition_table.version
            and all(catalog.holds(definition) for definition in plan.maps)
            and all(catalog.holds_view(view) for view in plan.views)
            and self.fits_rows(plan)
        )

    def fits_rows(self, plan: Plan) -> bool:
        """Return whether no map has grown or shrunk so much that another plan may be better."""
        try:
            return all(each.least <= len(self.store.map(each.map)) < each.most for each in plan.row_limits)
        except SqlError:  # dropped at this moment
            return False

    def _objects_check(self, plan: Plan) -> Callable[[], None]:
        """Return a check that the plan's maps and indexes still exist; it is free while the catalog is the same."""
        checked: Catalog | None = None

        def check() -> None:
            nonlocal checked
            catalog = self.store.catalog
            if catalog is checked:
                return
            for definition in plan.maps:
                if definition.is_past:
                    continue
                current = catalog.find_map(definition.name, (definition.schema,))
                if current is None or current.id != definition.id:
                    raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {definition.name} was dropped")
                for index in plan.used_indexes:
                    if index in definition.indexes and index not in current.indexes:
                        raise SqlError(ErrorCode.INDEX_INVALID, f"the index {index.name} was dropped")
            checked = catalog

        check()
        return check


def _watch(spark: SparkSession | None) -> ExecutorWatch | None:
    if spark is None:
        return None
    from remuda.spark.driver.executors import ExecutorWatch

    return ExecutorWatch(spark)
