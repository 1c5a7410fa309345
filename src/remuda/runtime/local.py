"""The local runtime: fragments on the members of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.errors import ErrorCode, SqlError
from remuda.exec import Channel, Code, ExecContext, build_operator
from remuda.exec.context import ScanActivity
from remuda.plan.traits import Convention
from remuda.runtime.binding import FragmentPlacement, place_fragments
from remuda.runtime.channel import BoundedChannel
from remuda.runtime.execution import Execution, QueryState
from remuda.runtime.scheduler import FragmentTask, Scheduler

if TYPE_CHECKING:
    from remuda.cluster import Cluster
    from remuda.expr import Parameters
    from remuda.plan.fragments import Fragment, Plan
    from remuda.storage import MapSnapshot

RemoteLeaves = Callable[["Fragment", "QueryState"], tuple[tuple[Channel, ...], Callable[[], None]]]
"""Starts a fragment of another backend; gives the channels it fills and what cancels it."""


@dataclass(slots=True)
class LocalRuntime:
    cluster: Cluster
    scheduler: Scheduler

    def run(
        self,
        plan: Plan,
        parameters: Parameters,
        snapshots: Mapping[str, MapSnapshot],
        code: Code,
        *,
        check_objects: Callable[[], None],
        modify: Callable[[Any, list[tuple[object, ...]]], int] | None = None,
        timeout: float | None = None,
        remote: RemoteLeaves | None = None,
    ) -> Execution:
        """Starts the member fragments and returns the execution that advances the root fragment."""
        state = QueryState(timeout)
        activity = [ScanActivity()]
        incoming: dict[int, tuple[Channel, ...]] = {}
        cancels: list[Callable[[], None]] = []
        tasks: list[FragmentTask] = []
        for fragment in plan.fragments[1:]:
            if fragment.convention is Convention.SPARK:
                assert remote is not None, "the grid has a Spark session"
                channels, cancel = remote(fragment, state)
                incoming[fragment.number] = channels
                cancels.append(cancel)
                continue
            sending: list[Channel] = []
            for placement in place_fragments(fragment, plan.partition_map, parameters.values):
                channel = BoundedChannel(state.wake_reader.set)
                sending.append(channel)
                context = ExecContext(parameters, snapshots, placement.partitions, outgoing={fragment.number: channel})
                activity.append(context.activity)
                tasks.append(self._task(plan, placement, context, channel, state, code, check_objects))
            incoming[fragment.number] = tuple(sending)
        root = build_operator(plan.root.node, code)
        check = partial(_check_all, state.check, check_objects, self._root_check(plan))
        root.setup(
            ExecContext(parameters, snapshots, incoming=incoming, check=check, modify=modify, activity=activity[0])
        )
        for task in tasks:
            self.scheduler.submit(task)
        cancels.extend(task.signal for task in tasks)
        return Execution(root, state, activity, partial(_call_all, cancels))

    def _task(
        self,
        plan: Plan,
        placement: FragmentPlacement,
        context: ExecContext,
        channel: BoundedChannel,
        state: QueryState,
        code: Code,
        check_objects: Callable[[], None],
    ) -> FragmentTask:
        member = self.cluster.member(placement.member)
        check_owner = partial(
            check_ownership, self.cluster, placement.member, placement.owned, plan.partition_map.version
        )
        context.check = partial(_check_all, state.check, check_owner, check_objects)
        operator = build_operator(placement.fragment.node, code)

        def setup() -> None:
            member.count_fragment()
            operator.setup(context)

        task = FragmentTask(operator, setup, state.check, state.fail)
        channel.signal_sender = task.signal
        return task

    def _root_check(self, plan: Plan) -> Callable[[], None]:
        """With one member the root fragment scans itself: what it owns is checked as any member's partitions are."""
        if len(plan.fragments) > 1 or len(plan.partition_map.owned) != 1:
            return _nothing_to_check
        member, owned = plan.partition_map.owned[0]
        return partial(check_ownership, self.cluster, member, owned, plan.partition_map.version)


def check_ownership(cluster: Cluster, member: str, expected: tuple[int, ...], version: int) -> None:
    """A member must own exactly the partitions that the plan expects.

    With fewer, rows would be missed; with more, they would be found twice. The version of the table is the stamp: as
    long as it is the plan's nothing has moved.
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
