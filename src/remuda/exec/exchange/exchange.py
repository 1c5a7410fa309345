"""Send and receive: the two ends of an edge between fragments."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pyarrow as pa

from remuda.exec.batch import ArrowBatch, empty_batch, layout_of
from remuda.exec.batch_size import BatchSizer
from remuda.exec.operator import Exec, IterationResult, UnaryExec
from remuda.exec.selection import materialized
from remuda.exec.sort.merge import Stream, merge_pending
from remuda.plan.physical import LocalExchange, Receive, Route, Spool
from remuda.plan.walk import inputs
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import Channel, ExecContext, Outgoing
    from remuda.plan.physical import Send

# Which receiver each row of an edge goes to.


Routed = tuple["Channel", "RowBatch"]


def router(node: Send, outgoing: Outgoing) -> Callable[[RowBatch], Iterable[Routed]]:
    """Make the function from a batch to what each receiver gets of it."""
    channels = outgoing.channels
    match node.route:
        case Route.ROOT | Route.BROADCAST:
            return lambda batch: [(channel, batch) for channel in channels]
        case Route.HASH:
            return _HashRouter(node, outgoing)
        case _:
            assert_never(node.route)


class _HashRouter:
    """By the partition of the keys: rows come to where a map that is partitioned by such columns has its own.

    Rows of a partition that no receiver has, numbered -1, match nothing there and are dropped.
    """

    def __init__(self, node: Send, outgoing: Outgoing) -> None:
        layout = layout_of(node.columns)
        self._ordinals = [layout[key.id] for key in node.keys]
        self._types = [key.type for key in node.keys]
        self._channels = outgoing.channels
        assert outgoing.receiver_of is not None, "rows are routed by owners of partitions"
        self._receiver_of = outgoing.receiver_of

    def __call__(self, batch: RowBatch) -> Iterator[Routed]:
        arrow = batch.arrow()
        hashes = hash_columns([arrow.column(ordinal) for ordinal in self._ordinals], self._types)
        receivers = self._receiver_of[hashes % len(self._receiver_of)]
        order = np.argsort(receivers, kind="stable")
        bounds = np.searchsorted(receivers[order], np.arange(len(self._channels) + 1))
        for channel, start, stop in zip(self._channels, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if start == stop:
                continue
            whole = stop - start == arrow.num_rows
            yield channel, ArrowBatch(batch.columns, arrow if whole else arrow.take(pa.array(order[start:stop])))


def abandon_inputs(node: Any, context: ExecContext) -> None:
    """Tell the senders below a node of this fragment that no more of their rows are read.

    Not those below a spool: another operator of the fragment may read its rows.
    """
    match node:
        case Spool():
            return
        case Receive():
            for channel in context.incoming[node.edge]:
                channel.abandon()
    for child in inputs(node):
        abandon_inputs(child, context)


class SendExec(UnaryExec):
    """Offers its input's batches to the channels of their receivers; what finds no room is offered again."""

    def __init__(self, node: Send, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        self._unsent: deque[tuple[Channel, RowBatch]] = deque()
        self._source_done = False

    def setup(self, context: ExecContext) -> None:
        # A local exchange adapts the size of the batches that its workers make.
        below = self._node.input
        self._sizer = None if isinstance(below, LocalExchange) else BatchSizer(context, below)
        super().setup(context)
        self._context = context
        outgoing = context.outgoing[self._node.edge]
        self._channels = outgoing.channels
        self._routed = router(self._node, outgoing)

    def advance(self) -> IterationResult:
        if not self._unsent and not self._source_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            self.current_batch = materialized(self.source.current_batch)
            if self.current_batch.row_count:
                self._adapt_size()
                self._unsent.extend(self._routed(self.current_batch))
        if not self._send():
            return IterationResult.WAIT
        if self._source_done:
            for channel in self._channels:
                channel.finish()
            abandon_inputs(self._node, self._context)
            return IterationResult.FETCHED_DONE
        return IterationResult.FETCHED

    def _adapt_size(self) -> None:
        if self._sizer is not None:
            self._sizer.adapt(self.current_batch)
            self._sizer.restart()

    def _send(self) -> bool:
        """Offer what is unsent; False where some finds no room. A slow receiver keeps no other from its rows."""
        for _ in range(len(self._unsent)):
            channel, batch = self._unsent.popleft()
            if not channel.offer(batch):
                self._unsent.append((channel, batch))
        return not self._unsent


class ReceiveExec(Exec):
    """Takes batches from whichever sender has some."""

    def __init__(self, node: Receive) -> None:
        self._node = node

    def setup(self, context: ExecContext) -> None:
        self._weight = context.weight
        self._channels = context.incoming[self._node.edge]

    def advance(self) -> IterationResult:
        if self._weight.should_offload:
            return IterationResult.WAIT
        for channel in self._channels:
            batch = channel.poll()
            if batch is not None:
                self._weight.add(batch.row_count)
                self.current_batch = batch
                return IterationResult.FETCHED
        if all(channel.is_finished for channel in self._channels):
            self.current_batch = empty_batch(self._node.columns)
            return IterationResult.FETCHED_DONE
        return IterationResult.WAIT


class MergingReceiveExec(Exec):
    """Merges the ordered streams of several senders into one."""

    def __init__(self, node: Receive) -> None:
        self._node = node
        layout = layout_of(node.columns)
        self._ordinals = [layout[key.column] for key in node.collation]

    def setup(self, context: ExecContext) -> None:
        self._weight = context.weight
        self._channels = context.incoming[self._node.edge]
        self._streams = [Stream() for _ in self._channels]

    def advance(self) -> IterationResult:
        if self._weight.should_offload:
            return IterationResult.WAIT
        for stream, channel in zip(self._streams, self._channels, strict=True):
            while stream.needs_input:
                batch = channel.poll()
                if batch is not None:
                    stream.pending = batch.arrow()
                    self._weight.add(batch.row_count)
                elif channel.is_finished:
                    stream.exhausted = True
                else:
                    return IterationResult.WAIT
        merged = merge_pending(self._streams, self._ordinals, self._node.collation)
        if merged is None:
            self.current_batch = empty_batch(self._node.columns)
            return IterationResult.FETCHED_DONE
        self.current_batch = ArrowBatch(self._node.columns, merged)
        return IterationResult.FETCHED
