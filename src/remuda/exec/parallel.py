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

from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

from remuda.exec.batch import empty_batch
from remuda.exec.offload import LIGHT_ROWS
from remuda.exec.operator import Exec, IterationResult, PassingExec, UnaryExec
from remuda.exec.relational.filter import FilterExec
from remuda.exec.relational.project import ProjectExec
from remuda.exec.scan.map_scan import MapScanExec
from remuda.exec.selection import materialized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import Channel, ExecContext, ReceivingEnd
    from remuda.exec.scan.zone_order import Piece

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
    below: Any = source
    while isinstance(below.plain, PassingExec) and below.can_fork:
        below = below.source
    if isinstance(below.plain, MapScanExec) and isinstance(source.plain, PassingExec | MapScanExec):
        return ParallelExec(source, below, reduce, wants_parts, passed_on=passed_on)
    return source


class ParallelExec(Exec):
    """`is_reduced` says, once it is set up, whether all of its batches are the reduced parts of the threads.

    `source` is a chain of passing operators over `scan`, each of them as it is or measured.
    """

    def __init__(
        self,
        source: Any,
        scan: Any,
        reduce: Callable[[Exec], Exec] | None,
        wants_parts: Callable[[int], bool] | None,
        *,
        passed_on: bool,
    ) -> None:
        self._source = source
        self._passed_on = passed_on
        self._columns = source.columns
        self._scan = scan
        self._reduce = reduce
        self._wants_parts = wants_parts
        self._pieces: _Pieces | None = None
        self._sample: Exec | None = None
        self._channels: list[ReceivingEnd] | None = None
        self._is_parallel = False

    def setup(self, context: ExecContext) -> None:
        self._context = context
        before = context.weight.rows
        self._source.setup(context)
        workers = context.workers
        self._is_parallel = workers is not None and workers.parallelism > 1 and self._scan.most_rows >= PARALLEL_ROWS
        if self._is_parallel and self._passed_on and all(isinstance(each.plain, SIMPLE) for each in self._chain()):
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
            result: IterationResult = self._source.advance()
            if result is not IterationResult.WAIT:
                self.current_batch = self._source.current_batch
            return result
        if self._channels is None:
            if not self._prepared():
                return IterationResult.WAIT
            if self._pieces is None:
                self._pieces = _Pieces(self._scan.pieces())
                if self._wants_parts is not None:
                    self._sample = self._forked(self._pieces.sample())
            if self._sample is not None:
                return self._advance_sample(self._sample)
            if self._wants_parts is not None and not self._wants_parts(self._scan.most_rows):
                self._reduce = None
            self._channels = self._start(self._pieces)
        for channel in self._channels:
            batch = channel.poll()
            if batch is not None:
                self.current_batch = batch
                return IterationResult.FETCHED
        if all(channel.is_finished for channel in self._channels):
            self.current_batch = empty_batch(self._columns)
            return IterationResult.FETCHED_DONE
        return IterationResult.WAIT

    def _chain(self) -> Iterator[Any]:
        below = self._source
        while isinstance(below.plain, PassingExec):
            yield below
            below = below.source

    def _prepared(self) -> bool:
        return all(operator.prepare() for operator in self._chain())

    def _advance_sample(self, sample: Exec) -> IterationResult:
        """The first piece of the scan, as the chain makes it."""
        result = sample.advance()
        if result is IterationResult.WAIT:
            return result
        self.current_batch = sample.current_batch
        if result is IterationResult.FETCHED_DONE:
            self._sample = None
        return IterationResult.FETCHED

    def _start(self, pieces: _Pieces) -> list[ReceivingEnd]:
        workers = self._context.workers
        assert workers is not None
        return [workers.start(lambda channel: _Feed(self._part(pieces), channel)) for _ in range(workers.parallelism)]

    def _part(self, pieces: _Pieces) -> Exec:
        forked = self._forked(pieces)
        return forked if self._reduce is None else self._reduce(forked)

    def _forked(self, pieces: _Pieces) -> Exec:
        top: Exec = _PieceScanExec(self._scan, pieces)
        for operator in reversed(list(self._chain())):
            top = operator.fork(top)
        return top


class _Pieces:
    """What is left of a scan; every piece is given to one thread."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._lock = Lock()

    def take(self) -> Piece | None:
        """The next one; None where none is left."""
        with self._lock:
            return next(self._pieces, None)

    def sample(self) -> _Pieces:
        """The beginning of the first one, taken from it: while it is looked at, other threads wait."""
        first = next(self._pieces, None)
        if first is None:
            return _Pieces(iter(()))
        source, start, stop = first
        middle = min(start + SAMPLE_ROWS, stop)
        if middle < stop:
            self._pieces = chain([(source, middle, stop)], self._pieces)
        return _Pieces(iter([(source, start, middle)]))


class _PieceScanExec(Exec):
    def __init__(self, scan: Any, pieces: _Pieces) -> None:
        self._scan = scan
        self._pieces = pieces

    def setup(self, context: ExecContext) -> None:
        """The scan that it reads for is set up."""

    def advance(self) -> IterationResult:
        piece = self._pieces.take()
        if piece is None:
            self.current_batch = empty_batch(self._scan.columns)
            return IterationResult.FETCHED_DONE
        self.current_batch = self._scan.read(piece)
        return IterationResult.FETCHED


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
