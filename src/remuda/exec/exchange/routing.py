"""Which receiver each row of an edge goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np
import pyarrow as pa

from remuda.exec.batch import ArrowBatch, layout_of
from remuda.plan.physical import Route
from remuda.types import BIGINT
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import Channel, Outgoing
    from remuda.plan.physical import Send
    from remuda.types import SqlType

Routed = tuple["Channel", "RowBatch"]


def router(node: Send, outgoing: Outgoing) -> Callable[[RowBatch], Iterable[Routed]]:
    """The function from a batch to what each receiver gets of it."""
    channels = outgoing.channels
    match node.route:
        case Route.ROOT | Route.BROADCAST:
            return lambda batch: [(channel, batch) for channel in channels]
        case Route.HASH:
            return _HashRouter(node, outgoing)
        case _:
            assert_never(node.route)


class _HashRouter:
    """By the partition of the keys: rows come to where a map that is partitioned by such columns has its own."""

    def __init__(self, node: Send, outgoing: Outgoing) -> None:
        layout = layout_of(node.columns)
        self._places = [layout[key.id] for key in node.keys]
        self._types = [key.type for key in node.keys]
        self._channels = outgoing.channels
        assert outgoing.receiver_of is not None, "rows are routed by owners of partitions"
        self._receiver_of = outgoing.receiver_of

    def __call__(self, batch: RowBatch) -> Iterator[Routed]:
        arrow = batch.arrow()
        columns, types = zip(*map(_hashable, map(arrow.column, self._places), self._types), strict=True)
        receivers = self._receiver_of[hash_columns(columns, types) % len(self._receiver_of)]
        order = np.argsort(receivers, kind="stable")
        bounds = np.searchsorted(receivers[order], np.arange(len(self._channels) + 1))
        for channel, start, stop in zip(self._channels, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if start == stop:
                continue
            whole = stop - start == arrow.num_rows
            yield channel, ArrowBatch(batch.columns, arrow if whole else arrow.take(pa.array(order[start:stop])))


def _hashable(column: pa.Array, sql_type: SqlType) -> tuple[pa.Array, SqlType]:
    """An interval, which no map is partitioned by, as the number it is."""
    return (column.view(pa.int64()), BIGINT) if sql_type.is_interval else (column, sql_type)
