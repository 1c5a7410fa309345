"""A large scan, and what is done to its rows one batch at a time, by all threads of a member.

    Aggregate (merges)                        Aggregate
      Parallel        of   Project              Project      on each thread, over the next piece of the scan
                             Join (left)          Join       that nobody has taken; the join's table is shared
                               MapScan              pieces

Operators that pass batches on are forked, one chain for each thread; a consumer that can reduce its rows in parts (an
aggregate, the first rows of an order) is put on top of each chain, and merges the parts. Where merging may cost more
than it gains the consumer sees the first piece of the scan as it is, and then says whether it wants parts. A chain is
advanced like any fragment: it waits where its channel is full, ends with the query, and its errors are the query's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.exec.batch import empty_batch
from remuda.exec.offload import LIGHT_ROWS
from remuda.exec.operator import Exec, ForkableExec, IterationResult, UnaryExec
from remuda.exec.relational.filter import FilterExec
from remuda.exec.relational.project import ProjectExec
from remuda.exec.scan.map_scan import MapScanExec
from remuda.exec.selection import materialized

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import Channel, ExecContext, ReceivingEnd

PARALLEL_ROWS = 500_000
"""A scan of fewer rows is done before other threads have begun."""
SAMPLE_ROWS = 65_536
"""By so many rows a consumer can tell whether it wants parts."""
SIMPLE = FilterExec | ProjectExec
"""Operators that never ask for another thread."""


def in_parallel(
    source: Exec,
    reduce: Callable[[Exec], Exec] | None = None,
    wants_parts: Callable[[int], bool] | None = None,
    *,
    passed_on: bool = False,
) -> Exec:
    """The source, such that large scans use all threads; itself where it is no chain over a scan.

    `wants_parts` is asked, with the number of rows of the scan, after the first piece has been consumed unreduced.
    `passed_on` says that the consumer does nothing to the batches.
    """
    if isinstance(source, ForkableExec) and source.can_fork:
        return ParallelExec(source, reduce, wants_parts, passed_on=passed_on)
    return source


def _is_simple(source: Exec) -> bool:
    below: Any = source.plain
    while isinstance(below, SIMPLE):
        below = below.source.plain
    return isinstance(below, MapScanExec)


class ParallelExec(Exec):
    """`is_reduced` says, once it is set up, whether all of its batches are the reduced parts of the threads."""

    def __init__(
        self,
        source: ForkableExec,
        reduce: Callable[[Exec], Exec] | None,
        wants_parts: Callable[[int], bool] | None,
        *,
        passed_on: bool,
    ) -> None:
        self._source = source
        self._passed_on = passed_on
        self._reduce = reduce
        self._wants_parts = wants_parts
        self._sample: Exec | None = None
        self._is_sampled = wants_parts is None
        self._channels: list[ReceivingEnd] | None = None
        self._is_parallel = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        before = context.weight.rows
        self._source.setup(context)
        workers = context.workers
        self._is_parallel = workers is not None and workers.parallelism > 1 and self._source.scan_rows >= PARALLEL_ROWS
        if self._is_parallel and self._passed_on and _is_simple(self._source):
            # All that weighs is done by the workers: taking their batches is not, and the reader's thread can do it.
            context.weight.rows = before
        elif self._is_parallel:
            context.weight.add(LIGHT_ROWS + 1)

    def wrap_parts(self, wrap: Callable[[Exec], Exec]) -> None:
        """From now on the parts that reduce what the threads have read are wrapped."""
        reduce = self._reduce
        if reduce is not None:
            self._reduce = lambda source: wrap(reduce(source))

    @property
    def is_reduced(self) -> bool:
        return self._is_parallel and self._reduce is not None and self._wants_parts is None

    def advance(self) -> IterationResult:
        if not self._is_parallel:
            result = self._source.advance()
            if result is not IterationResult.WAIT:
                self.current_batch = self._source.current_batch
            return result
        if self._channels is None:
            if not self._source.prepare():
                return IterationResult.WAIT
            if not self._is_sampled:
                return self._advance_sample()
            if self._wants_parts is not None and not self._wants_parts(self._source.scan_rows):
                self._reduce = None
            self._channels = self._start()
        for channel in self._channels:
            batch = channel.poll()
            if batch is not None:
                self.current_batch = batch
                return IterationResult.FETCHED
        if all(channel.is_finished for channel in self._channels):
            self.current_batch = empty_batch(self._source.columns)
            return IterationResult.FETCHED_DONE
        return IterationResult.WAIT

    def _advance_sample(self) -> IterationResult:
        """The beginning of the scan, as the chain makes it."""
        if self._sample is None:
            self._sample = self._source.fork(SAMPLE_ROWS)
        result = self._sample.advance()
        if result is IterationResult.WAIT:
            return result
        self.current_batch = self._sample.current_batch
        self._is_sampled = result is IterationResult.FETCHED_DONE
        return IterationResult.FETCHED

    def _start(self) -> list[ReceivingEnd]:
        workers = self._context.workers
        assert workers is not None
        return [workers.start(lambda channel: _Feed(self._part(), channel)) for _ in range(workers.parallelism)]

    def _part(self) -> Exec:
        forked = self._source.fork()
        return forked if self._reduce is None else self._reduce(forked)


class _Feed(UnaryExec):
    """The top of a thread's chain: offers its batches to the consumer."""

    def __init__(self, source: Exec, channel: Channel) -> None:
        super().__init__(source)
        self._channel = channel
        self._unsent: RowBatch | None = None
        self._source_done = False

    def advance(self) -> IterationResult:
        if self._unsent is None and not self._source_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            self._unsent = materialized(self.source.current_batch)
        if self._unsent is not None:
            if self._unsent.row_count and not self._channel.offer(self._unsent):
                return IterationResult.WAIT
            self._unsent = None
        if self._source_done:
            self._channel.finish()
            return IterationResult.FETCHED_DONE
        return IterationResult.FETCHED
