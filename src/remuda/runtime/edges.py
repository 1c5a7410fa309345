"""The edges of a running plan: a channel from every placement of the fragment that sends to every one that receives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.context import Outgoing
from remuda.plan.physical import Route
from remuda.plan.traits import Convention
from remuda.runtime.channel import BoundedChannel
from remuda.runtime.placement import place_all, receiver_of_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.exec import ExecContext
    from remuda.exec.context import OperatorActivity, ReceivingEnd
    from remuda.expr import Parameters
    from remuda.plan.fragments import Plan
    from remuda.runtime.execution import QueryState
    from remuda.runtime.placement import FragmentPlacement

ROOT = 0
"""The number of the fragment that runs on the coordinator."""


class Edges:
    def __init__(self, plan: Plan, parameters: Parameters, state: QueryState) -> None:
        self._plan = plan
        local = [fragment for fragment in plan.fragments if fragment.convention is not Convention.SPARK]
        self._placements = place_all(local, plan.partition_map, parameters.values)
        self._receiver = {edge: fragment.number for fragment in plan.fragments for edge in fragment.received}
        self._channels: dict[int, list[list[BoundedChannel]]] = {}
        """For each edge, for each sender, the channels to its receivers."""
        self._root: dict[int, tuple[ReceivingEnd, ...]] = {}
        self.activity: list[OperatorActivity] = []
        for edge, senders in self._placements.items():
            receivers = self._receivers(edge)
            self._channels[edge] = [[BoundedChannel() for _ in range(receivers)] for _ in senders]
            if self._receiver[edge] == ROOT:
                for channels in self._channels[edge]:
                    channels[0].signal_receiver = state.wake_reader.set
                self._root[edge] = tuple(channels[0] for channels in self._channels[edge])

    def _receivers(self, edge: int) -> int:
        receiver = self._receiver[edge]
        return 1 if receiver == ROOT else len(self._placements[receiver])

    def placements(self) -> Iterator[FragmentPlacement]:
        for placements in self._placements.values():
            yield from placements

    def placed(self, make_context: Callable[..., ExecContext]) -> Iterator[tuple[FragmentPlacement, ExecContext]]:
        """Return every placement with the context of its operators."""
        for number, placements in self._placements.items():
            for index, placement in enumerate(placements):
                context = make_context(
                    placement.partitions, self._plan.partition_map.partitions, member=placement.member
                )
                context.outgoing = {number: self._outgoing(placement, index)}
                context.incoming = {
                    edge: tuple(channels[index] for channels in self._channels[edge])
                    for edge in placement.fragment.received
                }
                self.activity.append(context.activity)
                yield placement, context

    def _outgoing(self, placement: FragmentPlacement, index: int) -> Outgoing:
        edge = placement.fragment.number
        channels = tuple(self._channels[edge][index])
        if placement.fragment.route is not Route.HASH:
            return Outgoing(channels)
        placements = self._placements[self._receiver[edge]]
        return Outgoing(channels, receiver_of_partition(placements, self._plan.partition_map.partitions))

    def signal(self, placement: FragmentPlacement, signal: Callable[[], None]) -> None:
        """Return the signal that wakes a placed fragment: room in an outgoing channel, a batch in an incoming one."""
        number = placement.fragment.number
        index = self._placements[number].index(placement)
        for channel in self._channels[number][index]:
            channel.signal_sender = signal
        for edge in placement.fragment.received:
            for channels in self._channels[edge]:
                channels[index].signal_receiver = signal

    def receive(self, edge: int, channels: tuple[ReceivingEnd, ...]) -> None:
        """Receive a batch of another backend for the coordinator."""
        self._root[edge] = channels

    def into_root(self) -> dict[int, tuple[ReceivingEnd, ...]]:
        return self._root
