"""The local runtime: fragments on the members of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext, ExpressionCache, build_operator
from remuda.exec.context import ReceivingEnd
from remuda.exec.memory import MemoryLimit
from remuda.exec.offload import RowBudget
from remuda.plan.traits import Convention
from remuda.runtime.channel import BoundedChannel
from remuda.runtime.edges import Edges
from remuda.runtime.execution import Execution, QueryState
from remuda.runtime.offload_pool import OffloadPool
from remuda.runtime.scheduler import FragmentTask, Scheduler

if TYPE_CHECKING:
    from remuda.cluster import Cluster
    from remuda.exec import Channel, Exec
    from remuda.expr import Parameters
    from remuda.plan.fragments import Fragment, Plan
    from remuda.runtime.placement import FragmentPlacement
    from remuda.storage import MapSnapshot

# The threads that a fragment uses beside its own: those of the scheduler, like everybody's.


@dataclass(frozen=True, slots=True)
class FragmentWorkers:
    """`wake` puts the fragment back into the queue; `cancels` are called when the query ends."""

    scheduler: Scheduler
    state: QueryState
    wake: Callable[[], None]
    cancels: list[Callable[[], None]]

    @property
    def parallelism(self) -> int:
        return self.scheduler.parallelism

    def start(self, feed: Callable[[Channel], Exec]) -> Channel:
        channel = BoundedChannel(self.wake)
        task = FragmentTask(feed(channel), self.state)
        channel.signal_sender = task.signal
        self.cancels.append(task.signal)
        self.scheduler.submit(task)
        return channel


RemoteFragments = Callable[["Fragment", "QueryState"], tuple[tuple[ReceivingEnd, ...], Callable[[], None]]]
"""Starts a fragment of another backend that sends to the coordinator, and all that feeds it; gives the channels it
fills and what cancels it."""


@dataclass(slots=True)
class LocalRuntime:
    cluster: Cluster
    scheduler: Scheduler
    pool: OffloadPool = field(default_factory=OffloadPool)
    """The threads on which heavy root fragments are advanced."""

    def start(
        self,
        plan: Plan,
        parameters: Parameters,
        snapshots: Mapping[str, MapSnapshot],
        code: ExpressionCache,
        state: QueryState,
        *,
        check_objects: Callable[[], None],
        modify: Callable[[Any, list[tuple[object, ...]]], int] | None = None,
        remote: RemoteFragments | None = None,
    ) -> Execution:
        """Start the member fragments and return the execution that advances the root fragment."""
        memory = None if state.memory_limit is None else MemoryLimit(state.memory_limit)
        root = ExecContext(parameters, snapshots, modify=modify, memory=memory, member=_root_member(plan))
        # A statement that writes holds locks, which are its thread's.
        root.weight = RowBudget(movable=plan.modifies is None)
        check_root = self._root_check(plan)
        root.check = partial(_check_all, state.check, check_objects, check_root)
        edges = Edges(plan, parameters, state)
        cancels: list[Callable[[], None]] = []
        root.workers = FragmentWorkers(self.scheduler, state, state.wake_reader.set, cancels)
        tasks: list[FragmentTask] = []
        for placement, context in edges.placed(partial(ExecContext, parameters, snapshots, memory=memory)):
            context.check = partial(_check_all, state.check, self._owner_check(plan, placement), check_objects)
            task = self._task(placement.member, context, build_operator(placement.fragment.node, code), state)
            context.workers = FragmentWorkers(self.scheduler, state, task.signal, cancels)
            edges.signal(placement, task.signal)
            cancels.append(task.signal)
            tasks.append(task)
        for edge in plan.root.received:
            fragment = plan.fragments[edge]
            if fragment.convention is Convention.SPARK:
                assert remote is not None, "the grid has a Spark session"
                channels, cancel = remote(fragment, state)
                edges.receive(edge, channels)
                cancels.append(cancel)
        root.incoming = edges.into_root()
        operator = build_operator(plan.root.node, code)
        check_root()
        operator.setup(root)
        for task in tasks:
            self.scheduler.submit(task)
        activity = [root.activity, *edges.activity]
        return Execution(operator, state, activity, root.weight, self.pool, partial(_call_all, cancels))

    def _task(self, name: str, context: ExecContext, operator: Exec, state: QueryState) -> FragmentTask:
        """A fragment of the member of this name, set up on the thread that advances it first."""
        member = self.cluster.member(name)

        def setup() -> None:
            member.count_fragment()
            context.verify()
            operator.setup(context)

        return FragmentTask(operator, state, setup)

    def _owner_check(self, plan: Plan, placement: FragmentPlacement) -> Callable[[], None]:
        version = plan.partition_map.version
        return partial(check_ownership, self.cluster, placement.member, placement.owned, version)

    def _root_check(self, plan: Plan) -> Callable[[], None]:
        """With one member the root fragment scans itself: what it owns is checked as any member's partitions are."""
        if len(plan.fragments) > 1 or len(plan.partition_map.owned) != 1:
            return _nothing_to_check
        member, owned = plan.partition_map.owned[0]
        return partial(check_ownership, self.cluster, member, owned, plan.partition_map.version)


def _root_member(plan: Plan) -> str:
    """With one member the root fragment is its."""
    owned = plan.partition_map.owned
    return owned[0][0] if len(owned) == 1 else "coordinator"


def check_ownership(cluster: Cluster, member: str, expected: tuple[int, ...], version: int) -> None:
    """A member must own exactly the partitions that the plan expects.

    With fewer, rows would be missed; with more, they would be found twice. As long as the version of the
    table is the plan's nothing has moved.
    """
    table = cluster.partition_table
    if table.version == version:
        return
    owned = table.owned_by(member)
    if owned != expected:
        moved = len(set(owned) ^ set(expected))
        raise SqlError(
            ErrorCode.PARTITION_DISTRIBUTION, f"{moved} partitions of {member} have moved since the query was planned"
        )


def _check_all(*checks: Callable[[], None]) -> None:
    for check in checks:
        check()


def _call_all(functions: list[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _nothing_to_check() -> None:
    pass
