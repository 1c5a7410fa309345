"""Local exchange: a large scan, and what is done to its rows one batch at a time, by all workers of a member.

    HashAggregate final (merges)      HashAggregate partial
      LocalExchange           of        Project                on each worker, over the next piece of the scan
                                          HashJoin (left)      that no other has taken; the join's table is shared
                                            MapScan

The operators below are forked (`ForkableExec`), once for each worker. One that can merge what workers have reduced
(`MergingExec`) puts an operator of its own on top of each fork. Where merging may cost more than it gains it sees the
beginning of the scan as it is, and then says whether it wants parts. A fork is advanced like any fragment: it waits
where its channel is full, ends with the query, and its errors are the query's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from remuda.exec.batch import empty_batch
from remuda.exec.batch_size import BatchSizer
from remuda.exec.offload import LIGHT_ROWS
from remuda.exec.operator import Exec, IterationResult, UnaryExec, forkable
from remuda.exec.selection import materialized

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import Channel, ExecContext, ReceivingEnd
    from remuda.plan.physical import LocalExchange


class MergingExec(Protocol):
    """What a local exchange asks of the operator above it, where that can merge what each worker has reduced."""

    def wants_parts(self, scan_rows: int) -> bool:
        """Decide whether the rows still to come are reduced by the workers, out of so many of the scan.

        Called once, when the sample has been consumed; after True nothing comes in but what `part` delivers.
        """

    def part(self, source: Exec) -> Exec:
        """Make the operator, set up, that reduces the rows of one worker."""


class LocalExchangeExec(UnaryExec):
    """Passes its source on as it is, or what workers make of forks of it.

    `read_by_user` says that the reader of the result takes the batches as they are, and that its own work is light;
    `sent`, that they go to another fragment as they are. In both cases they wait for a reader, and are kept small.
    """

    def __init__(self, node: LocalExchange, source: Exec, *, read_by_user: bool = False, sent: bool = False) -> None:
        super().__init__(source)
        self._node = node
        self._read_by_user = read_by_user
        self._keeps_small = read_by_user or sent
        self._sizer: BatchSizer | None = None
        self._merging: MergingExec | None = None
        self._wrap: Callable[[Exec], Exec]
        self._sample: Exec | None = None
        self._is_sampled = node.partial_rule is None
        self._channels: list[ReceivingEnd] | None = None
        self._is_parallel = False

    def merge_by(self, merging: MergingExec, wrap: Callable[[Exec], Exec]) -> None:
        """Have the operator above merge what its parts, each of them wrapped, have reduced."""
        self._merging, self._wrap = merging, wrap

    def setup(self, context: ExecContext) -> None:
        self._context = context
        if self._keeps_small:
            self._sizer = BatchSizer(context, self._node)
        before = context.weight.rows
        super().setup(context)
        workers, source = context.workers, forkable(self.source)
        rows = source.scan_rows
        count = 1 if workers is None else workers.parallelism
        self._is_parallel = count > 1 and rows >= self._node.fork_rows
        used = count if self._is_parallel else 1
        context.activity.decide("parallel: {} of {} workers for {} rows", used, count, rows)
        if not self._is_parallel:
            return
        if self._read_by_user:
            # All that weighs is done by the workers: taking their batches is not, and the reader's thread can do it.
            context.weight.rows = before
        else:
            context.weight.add(LIGHT_ROWS + 1)

    def advance(self) -> IterationResult:
        if not self._is_parallel:
            result = self.source.advance()
            if result is not IterationResult.WAIT:
                self.current_batch = self.source.current_batch
                if self._sizer is not None:
                    self._sizer.adapt(self.current_batch)
            return result
        if self._channels is None:
            source = forkable(self.source)
            if not source.prepare():
                return IterationResult.WAIT
            if source.scan_rows < self._node.fork_rows and self._sample is None:
                return self._advance_alone(source.scan_rows)
            if not self._is_sampled:
                return self._advance_sample()
            if self._merging is not None and not self._merging.wants_parts(source.scan_rows):
                self._merging = None
            self._channels = self._start()
        for channel in self._channels:
            batch = channel.poll()
            if batch is not None:
                self.current_batch = batch
                return IterationResult.FETCHED
        if all(channel.is_finished for channel in self._channels):
            self.current_batch = empty_batch(self._node.columns)
            return IterationResult.FETCHED_DONE
        return IterationResult.WAIT

    def _advance_alone(self, rows: int) -> IterationResult:
        """Share nothing after all: the keys of a join have left few rows to be read."""
        self._is_parallel = False
        self._context.activity.decide("parallel: not used for {} rows", rows)
        return self.advance()

    def _advance_sample(self) -> IterationResult:
        """Deliver the beginning of the scan, as the chain makes it."""
        if self._sample is None:
            assert self._node.partial_rule is not None
            self._sample = forkable(self.source).fork(self._node.partial_rule.sample_rows)
        result = self._sample.advance()
        if result is IterationResult.WAIT:
            return result
        self.current_batch = self._sample.current_batch
        self._is_sampled = result is IterationResult.FETCHED_DONE
        return IterationResult.FETCHED

    def _start(self) -> list[ReceivingEnd]:
        workers = self._context.workers
        assert workers is not None
        if self._sizer is not None:
            self._sizer.restart()

        def feed(channel: Channel) -> Exec:
            return _Feed(self._part(), channel, self._sizer)

        return [workers.start(feed) for _ in range(workers.parallelism)]

    def _part(self) -> Exec:
        forked = forkable(self.source).fork()
        return forked if self._merging is None else self._wrap(self._merging.part(forked))


class _Feed(UnaryExec):
    """The top of a worker's chain: offers its batches to the consumer."""

    def __init__(self, source: Exec, channel: Channel, sizer: BatchSizer | None) -> None:
        super().__init__(source)
        self._channel = channel
        self._sizer = sizer
        self._unsent: RowBatch | None = None
        self._source_done = False

    def advance(self) -> IterationResult:
        if self._unsent is None and not self._source_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            self._unsent = materialized(self.source.current_batch)
            if self._sizer is not None:
                self._sizer.adapt(self._unsent)
        if self._unsent is not None:
            if self._unsent.row_count and not self._channel.offer(self._unsent):
                return IterationResult.WAIT
            self._unsent = None
        if self._source_done:
            self._channel.finish()
            return IterationResult.FETCHED_DONE
        return IterationResult.FETCHED
