"""The threads that a fragment uses beside its own: those of the scheduler, like everybody's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.runtime.channel import BoundedChannel
from remuda.runtime.scheduler import FragmentTask, Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec import Channel, Exec
    from remuda.runtime.execution import QueryState


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
        task = FragmentTask(
            feed(channel), _nothing_to_set_up, self.state.check, self.state.fail, self.state.memory_limit
        )
        channel.signal_sender = task.signal
        self.cancels.append(task.signal)
        self.scheduler.submit(task)
        return channel


def _nothing_to_set_up() -> None:
    pass
