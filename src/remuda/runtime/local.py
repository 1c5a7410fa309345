"""The local runtime: fragments on the members of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext, ExpressionCache, build_operator
from remuda.exec.context import ReceivingEnd
from remuda.exec.memory import MemoryLimit
from remuda.exec.offload import RowBudget
from remuda.exec.spill.spill_folder import SpillFolder
from remuda.plan.traits import Convention
from remuda.runtime.channel import MOST_BYTES, BoundedChannel
from remuda.runtime.edges import Edges
from remuda.runtime.execution import Execution, QueryState
from remuda.runtime.scheduler import FragmentTask, Scheduler

if TYPE_CHECKING:
    from remuda.cluster import Cluster
    from remuda.cluster.cluster import PartitionTable
    from remuda.exec import Channel, Exec
    from remuda.exec.context import Committer
    from remuda.expr import Parameters
    from remuda.plan.fragments import Fragment, Plan
    from remuda.runtime.offload_pool import OffloadPool
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
        # The workers of a fragment together hold what one sender may.
        channel = BoundedChannel(self.wake, most_bytes=MOST_BYTES // self.parallelism)
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
    pool: OffloadPool
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
        writer: Committer | None = None,
        remote: RemoteFragments | None = None,
    ) -> Execution:
        """Start the member fragments and return the execution that advances the root fragment."""
        memory = None if state.memory_limit is None else MemoryLimit(state.memory_limit)
        spill = None if memory is None else SpillFolder(state.spill_folder)
        root = ExecContext(
            parameters,
            snapshots,
            writer=writer,
            committer=writer,
            memory=memory,
            spill=spill,
            member=_root_member(plan),
        )
        # A statement that writes holds locks, which are its thread's.
        root.weight = RowBudget(movable=plan.modifies is None)
        check = root.check = partial(_check_all, state.check, check_objects)
        edges = Edges(plan, parameters, state)
        self._check_owners(plan, edges)
        cancels: list[Callable[[], None]] = [] if spill is None else [spill.close]
        root.workers = FragmentWorkers(self.scheduler, state, state.wake_reader.set, cancels)
        tasks: list[FragmentTask] = []
        for placement, context in edges.placed(
            partial(ExecContext, parameters, snapshots, writer=writer, memory=memory, spill=spill)
        ):
            context.check = check
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
        operator.setup(root)
        for task in tasks:
            self.scheduler.submit(task)
        activity = [root.activity, *edges.activity]
        return Execution(operator, state, activity, root.weight, self.pool, partial(_call_all, cancels))

    def _task(self, name: str, context: ExecContext, operator: Exec, state: QueryState) -> FragmentTask:
        """Return the task of a fragment on this member, set up on the thread that advances it first."""
        member = self.cluster.member(name)

        def setup() -> None:
            member.count_fragment()
            context.verify()
            operator.setup(context)

        return FragmentTask(operator, state, setup)

    def _check_owners(self, plan: Plan, edges: Edges) -> None:
        """Check the members that take part, before any fragment is set up.

        From then on every fragment keeps the partitions that it was given: the snapshot has all of their rows, however
        partitions move meanwhile. With one member the root fragment reads the partitions itself.
        """
        table, version = self.cluster.partition_table, plan.partition_map.version
        for placement in edges.placements():
            check_ownership(table, placement.member, placement.owned, version, plan.partition_map.partitions)
        if len(plan.fragments) == 1 and len(plan.partition_map.owned) == 1:
            member, owned = plan.partition_map.owned[0]
            check_ownership(table, member, owned, version, plan.partition_map.partitions)


def _root_member(plan: Plan) -> str:
    """Return the member of the root fragment: the only member, or none."""
    owned = plan.partition_map.owned
    return owned[0][0] if len(owned) == 1 else "coordinator"


def check_ownership(
    table: PartitionTable, member: str, expected: tuple[int, ...], version: int, partitions: int | None = None
) -> None:
    """Raise where a member does not own exactly those of the plan's partitions that the plan expects.

    As long as the version of the table is the plan's nothing has moved.
    """
    if table.version == version:
        return
    owned = table.owned_by(member, partitions)
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
