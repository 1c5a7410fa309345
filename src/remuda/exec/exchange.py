"""Send and receive: the two ends of an edge between fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, empty_batch, layout_of
from remuda.exec.merge import Stream, merge_pending
from remuda.exec.operator import Exec, IterationResult, UnaryExec

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.plan.physical import Receive, Send


class SendExec(UnaryExec):
    """Offers its input's batches to the channel; what finds no room is offered again."""

    def __init__(self, node: Send, source: Exec) -> None:
        super().__init__(source)
        self._edge = node.edge
        self._unsent: RowBatch | None = None
        self._source_done = False

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._channel = context.outgoing[self._edge]

    def advance(self) -> IterationResult:
        if self._unsent is None and not self._source_done:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return result
            self._source_done = result is IterationResult.FETCHED_DONE
            self._unsent = self.source.current_batch
        if self._unsent is not None:
            if self._unsent.row_count and not self._channel.offer(self._unsent):
                return IterationResult.WAIT
            self.current_batch, self._unsent = self._unsent, None
        if self._source_done:
            self._channel.finish()
            return IterationResult.FETCHED_DONE
        return IterationResult.FETCHED


class ReceiveExec(Exec):
    """Takes batches from whichever sender has some."""

    def __init__(self, node: Receive) -> None:
        self._node = node

    def setup(self, context: ExecContext) -> None:
        self._channels = context.incoming[self._node.edge]

    def advance(self) -> IterationResult:
        for channel in self._channels:
            batch = channel.poll()
            if batch is not None:
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
        self._places = [layout[key.column] for key in node.collation]

    def setup(self, context: ExecContext) -> None:
        self._channels = context.incoming[self._node.edge]
        self._streams = [Stream() for _ in self._channels]

    def advance(self) -> IterationResult:
        for stream, channel in zip(self._streams, self._channels, strict=True):
            while stream.needs_input:
                batch = channel.poll()
                if batch is not None:
                    stream.pending = batch.arrow()
                elif channel.is_finished:
                    stream.exhausted = True
                else:
                    return IterationResult.WAIT
        merged = merge_pending(self._streams, self._places, self._node.collation)
        if merged is None:
            self.current_batch = empty_batch(self._node.columns)
            return IterationResult.FETCHED_DONE
        self.current_batch = ArrowBatch(self._node.columns, merged)
        return IterationResult.FETCHED
