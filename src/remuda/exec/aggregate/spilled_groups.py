"""Aggregation beyond `memory_limit`: groups that have room keep their states, rows of all further groups are spilled.

    room for groups a, b        states   a 3   b 1
    rows a b a c a d c     →    spilled  c d c           each group in one file, which is aggregated when all rows came

Calls that hold their rows have no states. All rows of such an aggregate are kept as they come, and spilled together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import ArrowBatch, positional, slice_batch
from remuda.exec.memory import bytes_of
from remuda.exec.spill.spilled_partitions import DEEPEST, SpilledPartitions
from remuda.types.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from remuda.exec.aggregate.aggregate import HashAggregateExec
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.exec.memory import MemoryLimit

LEAST_ROWS = 1024
"""Rows, each perhaps a group, for which there is room as long as groups are added; fewer are not worth a step."""
FIRST_ROWS = 64
"""Rows that are added to no groups in any case, so that each level of spilled files leaves less to the next."""
BYTES_OF_KEPT_ROW = 80
"""What a call holds of a row beside its values: the id of its group, and the mark by which DISTINCT knows them."""
STATES_AND_RESULTS = 2
"""The room divided by this is for states: the results that are made of them are held beside them."""
DICTIONARIES_OF_ROOM = 4
"""The room divided by this is what a dictionary may take; the texts of a larger one are written out."""


class SpilledGroups:
    def __init__(
        self, aggregate: HashAggregateExec, context: ExecContext, memory: MemoryLimit, level: int, holding_calls: int
    ) -> None:
        """`holding_calls` is the number of calls that hold their rows."""
        self._aggregate = aggregate
        self._context = context
        self._memory = memory
        self._level = level
        self._holding_calls = holding_calls
        self._keeps_rows = holding_calls > 0
        self._kept: list[RowBatch] = []
        self._kept_bytes = 0
        self._partitions: SpilledPartitions | None = None

    def __bool__(self) -> bool:
        """Return whether rows have been spilled."""
        return self._partitions is not None

    def consume(self, batch: RowBatch) -> None:
        if self._partitions is None:
            rest = self._keep(batch) if self._keeps_rows else self._add_what_fits(batch)
            if rest is None:
                return
            batch = rest
        rows = batch.arrow()
        self._spill(rows if self._keeps_rows else self._aggregate.add_known(rows))

    def add_kept(self) -> None:
        """Add the rows that were kept and not spilled."""
        kept, self._kept, self._kept_bytes = self._kept, [], 0
        for batch in kept:
            self._context.verify()
            self._aggregate.add(batch)

    def following(self) -> Iterator[RowBatch]:
        """Deliver the groups of the spilled rows, a file at a time."""
        partitions = self._partitions
        assert partitions is not None, "rows have been spilled"
        size = partitions.finish()
        self._context.activity.decide("spilled: {:,} rows, {:,} bytes", sum(partitions.rows), size)
        for partition, rows in enumerate(partitions.rows):
            if rows:
                # Rows of one key cannot be spread: they are aggregated in memory, or fail at the limit.
                can_spread = rows < sum(partitions.rows) and self._level < DEEPEST
                part = self._aggregate.over_spilled(self._level + 1 if can_spread else None)
                for batch in partitions.batches(partition):
                    self._context.verify()
                    part.consume(ArrowBatch(self._aggregate.input_columns, batch))
                partitions.close(partition)
                yield part.finish()
                yield from part.following()

    def _keep(self, batch: RowBatch) -> RowBatch | None:
        """Keep a batch; return it where there is no room, after spilling what was kept."""
        # A row as it came, and for each call as it is held and once more as it is reduced.
        size = (1 + 2 * self._holding_calls) * bytes_of(batch.arrow())
        size += self._holding_calls * BYTES_OF_KEPT_ROW * batch.row_count
        if self._kept_bytes + size <= self._memory.room(self._aggregate.holder):
            self._kept.append(batch)
            self._kept_bytes += size
            self._context.hold(self._aggregate.holder, "the aggregation", self._kept_bytes)
            return None
        kept, self._kept, self._kept_bytes = self._kept, [], 0
        for each in kept:
            self._spill(each.arrow())
        self._context.hold(self._aggregate.holder, "the aggregation", 0)
        return batch

    def _add_what_fits(self, batch: RowBatch) -> RowBatch | None:
        """Add the rows for which there is room if each is a group of its own; return those that are left."""
        count, start = batch.row_count, 0
        texts = self._large_dictionaries(batch.arrow())
        row_bytes = 1 + bytes_of(batch.arrow()) // count + sum(texts.values())
        while start < count:
            room = self._memory.room(self._aggregate.holder) // STATES_AND_RESULTS
            rows = self._aggregate.groups_that_fit(room, row_bytes)
            if rows < min(LEAST_ROWS, count - start):
                if not self._aggregate.is_empty:
                    self._aggregate.add_waiting()
                    return slice_batch(batch, start, count - start)
                rows = FIRST_ROWS
            rows = min(rows, count - start)
            piece = slice_batch(batch, start, rows)
            self._aggregate.add_or_collect(_written_out(piece, texts) if texts else piece)
            start += rows
        return None

    def _large_dictionaries(self, rows: pa.RecordBatch) -> dict[int, int]:
        """Return the keys whose dictionaries take too much room, and the bytes of their texts on average.

        The values of a dictionary are interned at once, whether or not a row has them.
        """
        most = self._memory.room(self._aggregate.holder) // DICTIONARIES_OF_ROOM
        dictionaries = {
            ordinal: rows.column(ordinal).dictionary
            for ordinal in self._aggregate.key_ordinals
            if is_dictionary(rows.column(ordinal))
        }
        return {ordinal: 1 + each.nbytes // len(each) for ordinal, each in dictionaries.items() if each.nbytes > most}

    def _spill(self, rows: pa.RecordBatch) -> None:
        if self._partitions is None:
            folder, aggregate = self._context.spill, self._aggregate
            assert folder is not None, "without a folder nothing is spilled"
            self._partitions = SpilledPartitions(
                folder, aggregate.input_columns, aggregate.key_ordinals, level=self._level, limit=self._memory.limit
            )
        if rows.num_rows:
            self._partitions.add(rows)


def _written_out(batch: RowBatch, texts: Collection[int]) -> RowBatch:
    """Return the batch with the texts of these columns written out."""
    columns = batch.arrow().columns
    return ArrowBatch(
        batch.columns,
        positional([each.dictionary_decode() if ordinal in texts else each for ordinal, each in enumerate(columns)]),
    )
