"""Hash aggregation: complete, or partial on workers and members and final on the coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.aggregate.accumulators import Count
from remuda.exec.aggregate.aggregate_calls import MergedCall, SplitCall, WholeCall
from remuda.exec.aggregate.spilled_groups import SpilledGroups
from remuda.exec.batch import ArrowBatch, RowBatch, layout_of, positional
from remuda.exec.keys.key_interner import KeyInterner
from remuda.exec.memory import bytes_of
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.selection import SelectedBatch
from remuda.exec.sort.ordering import concatenate
from remuda.plan.aggregates import AGGREGATES
from remuda.plan.physical import Phase

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.expr import Column
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.physical import HashAggregate, PartialRule

Computed = SplitCall | MergedCall | WholeCall

FEW_GROUPS = 10_000
"""Up to this many groups take no memory worth mentioning."""
COLLECTED_ROWS = 1 << 23
"""Where most rows are groups of their own, and so take no more memory than those, up to so many are added at once: many
keys are interned by sorting them, few by tables that grow and are made anew."""
BYTES_OF_KEY, BYTES_OF_STATE = 48, 40
"""What a group takes, about: a slot, an id and the value for each key; a state and its mark for each call."""
BYTES_OF_RESULT = 16
"""What a result that is no text takes at most beside its state: a DECIMAL."""


class HashAggregateExec(BlockingExec):
    """Every row is added to the states of its group as it comes; nothing but states is held, where states suffice.

    Over a local exchange (a `MergingExec`) it is given the node of its parts, and begins with rows, not with states.

    With a limit of memory rows come by way of `SpilledGroups`, which adds those that have room and spills others.
    """

    def __init__(
        self, node: HashAggregate, source: Exec, partial: HashAggregate | None = None, rule: PartialRule | None = None
    ) -> None:
        super().__init__(source)
        self._node = node
        self._partial = partial
        self._partial_rule = rule
        self._context: ExecContext | None = None
        self._spilled: SpilledGroups | None = None
        self.holder: HashAggregateExec = self
        """Stands for the memory of this aggregate and of those over its spilled rows, which come one after another."""
        self._delivers_states = node.phase in {Phase.PARTIAL, Phase.INTERMEDIATE}
        if partial is None:
            self._begin(node.input.columns, merges=node.phase in {Phase.FINAL, Phase.INTERMEDIATE})
        else:
            self._begin(partial.input.columns, merges=False)

    def _begin(self, columns: tuple[Column, ...], *, merges: bool) -> None:
        """Begin with no group; `merges` says that not rows but states come in."""
        node = self._node
        self.input_columns = columns
        self._merges = merges
        self._layout = layout_of(columns)
        self._collects = False
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self.key_ordinals = [self._layout[column.id] for column in node.keys]
        self._groups = KeyInterner([column.type for column in node.keys]) if node.keys else None
        self._rows = Count()
        self._calls: list[Computed]
        if merges:
            self._calls = [self._merged(call, states) for call, states in zip(node.calls, node.states, strict=True)]
        else:
            self._calls = [self._computed(call) for call in node.calls]

    def _computed(self, call: AggregateCall) -> Computed:
        is_split = AGGREGATES[call.function].partials
        return SplitCall(call, self._layout, self._rows) if is_split else WholeCall(call, self._layout)

    def _merged(self, call: AggregateCall, states: tuple[Column, ...]) -> Computed:
        ordinals = tuple((self._layout[column.id], column.type) for column in states)
        return MergedCall(call, ordinals, self._rows)

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._start(context, level=0)

    def _start(self, context: ExecContext, level: int | None) -> None:
        """Begin within a limit, if there is one. Rows without keys cannot be spread, nor can those without a level."""
        self._context = context
        if context.memory is not None and context.spill is not None and self._groups is not None and level is not None:
            holding = sum(call.holds_rows for call in self._calls)
            self._spilled = SpilledGroups(self, context, context.memory, level, holding)

    def over_spilled(self, level: int | None) -> HashAggregateExec:
        """Return an aggregate of the same rows or states that this one is given, for some of those it has spilled."""
        assert self._context is not None
        spilled = HashAggregateExec(self._node, self.source)
        spilled._begin(self.input_columns, merges=self._merges)
        spilled.holder = self.holder
        spilled._start(self._context, level)
        return spilled

    def wants_parts(self, scan_rows: int) -> bool:
        """Refuse where there are so many groups that merging their states is as much work as adding the rows.

        There are so many by now or, as most of the rows have been groups of their own, there will be in the end. Of a
        scan of a million rows a join may leave ten thousand: the sample shows which share of them comes here.
        """
        assert self._partial is not None
        assert self._context is not None
        if self._groups is None:
            self._begin(self._partial.columns, merges=True)
            return True
        rule = self._partial_rule
        assert rule is not None, "an aggregate by keys sees a sample first"
        counts = self._rows.counts(self._groups.count)
        found, rows = int(np.count_nonzero(counts)), int(counts.sum())
        expected = scan_rows * rows / rule.sample_rows
        is_off = len(counts) * rule.group_rows > expected or (found > rule.few_groups and 2 * found > rows)
        is_off = is_off or bool(self._spilled)
        decision = f"partial aggregation: {'off' if is_off else 'on'} after {{}} rows, {{}} groups"
        self._context.activity.decide(decision, rows, found)
        if is_off:
            return False
        arrays = self._arrays(states=True)
        self._begin(self._partial.columns, merges=True)
        if len(arrays[0]):
            self.consume(ArrowBatch(self._partial.columns, positional(arrays)))
        return True

    def part(self, source: Exec) -> Exec:
        assert self._partial is not None
        assert self._context is not None
        part = HashAggregateExec(self._partial, source)
        part._verify = self._verify
        part._start(self._context, level=0)
        return part

    def consume(self, batch: RowBatch) -> None:
        if self._spilled is None:
            self.add_or_collect(batch)
        else:
            self._spilled.consume(batch)

    def add_or_collect(self, batch: RowBatch) -> None:
        if not self._collects:
            self.add(batch)
            return
        self._waiting.append(batch.arrow())
        self._waiting_rows += batch.row_count
        if self._waiting_rows >= COLLECTED_ROWS:
            self.add_waiting()
        elif self._context is not None and self._context.memory is not None and self._groups is not None:
            # Once as they came, and once together.
            self._waiting_bytes += 2 * bytes_of(self._waiting[-1])
            self._hold(self._groups.count)

    def add_waiting(self) -> None:
        waiting, self._waiting, self._waiting_rows, self._waiting_bytes = self._waiting, [], 0, 0
        if waiting:
            self.add(ArrowBatch(self.input_columns, concatenate(waiting)))

    def add(self, batch: RowBatch) -> None:
        if self._groups is None and isinstance(batch, SelectedBatch) and batch.is_dense:
            for call in self._calls:
                if isinstance(call, SplitCall):
                    call.add_selected(batch)
                else:
                    call.add(None, batch.arrow(), 1)
            self._rows.add_rows(None, batch.row_count, 1)
            self._hold(1)
            return
        arrow = batch.arrow()
        groups, count = None, 1
        if self._groups is not None:
            before = self._groups.count
            groups = self._groups.intern([arrow.column(ordinal) for ordinal in self.key_ordinals])
            groups = groups.astype(np.intp, copy=False)  # as wide as an index, so that no accumulator widens them
            count = self._groups.count
            self._collects = self._collects or (before > FEW_GROUPS and 2 * (count - before) > arrow.num_rows)
        self._add_to_groups(groups, arrow, count)

    def add_known(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Add the rows whose groups there are; return the others."""
        assert self._groups is not None, "rows without keys are of one group"
        groups = self._groups.find([rows.column(ordinal) for ordinal in self.key_ordinals])
        is_known = groups >= 0
        if not is_known.any():
            return rows
        known = rows.filter(pa.array(is_known))
        self._add_to_groups(groups[is_known].astype(np.intp, copy=False), known, self._groups.count)
        return rows.filter(pa.array(~is_known))

    def _add_to_groups(self, groups: np.ndarray | None, rows: pa.RecordBatch, count: int) -> None:
        for call in self._calls:
            call.add(groups, rows, count)
        self._rows.add_rows(groups, rows.num_rows, count)
        self._hold(count)

    @property
    def is_empty(self) -> bool:
        return self._groups is not None and not self._groups.count and not self._waiting

    def groups_that_fit(self, room: int, row_bytes: int) -> int:
        """Return how many rows that are groups of their own have room, beside those that there are and that wait."""
        assert self._groups is not None, "rows without keys are of one group"
        held = self._groups.count + self._waiting_rows
        most = max(FEW_GROUPS, (room - self._bytes(0)) // self._group_bytes)
        result_bytes = BYTES_OF_RESULT * len(self._calls)
        left = room - self._bytes(held) - held * result_bytes
        return min(most - held, left // (row_bytes + result_bytes))

    def _hold(self, count: int) -> None:
        if self._context is not None and self._context.memory is not None:
            self._context.hold(self.holder, "the aggregation", self._bytes(count))

    @property
    def _group_bytes(self) -> int:
        return BYTES_OF_KEY * len(self.key_ordinals) + BYTES_OF_STATE * len(self._calls)

    def _bytes(self, count: int) -> int:
        of_groups = count * self._group_bytes if count > FEW_GROUPS else 0
        of_texts = 0 if self._groups is None else self._groups.bytes
        return of_groups + of_texts + sum(call.bytes for call in self._calls) + self._waiting_bytes

    def finish(self) -> RowBatch:
        if self._spilled is not None:
            self._spilled.add_kept()
        self.add_waiting()
        # Without keys there is one row, even where nothing is asked of it.
        finished = ArrowBatch(self._node.columns, positional(self._arrays(states=self._delivers_states), 1))
        if self._spilled:
            self._begin(self.input_columns, merges=self._merges)
            self._hold(0)
            self._following = self._spilled.following()
        return finished

    def _arrays(self, *, states: bool) -> list[pa.Array]:
        """Return the keys of all groups and their results, or the states that FINAL makes those of."""
        if self._groups is None:
            return self._values(1, states=states)
        count = self._groups.count
        # A group id may belong to a value that a dictionary has and no row.
        present = np.flatnonzero(self._rows.counts(count))
        values = self._values(count, states=states)
        if len(present) < count:
            values = [array.take(present) for array in values]
        return [*self._groups.keys(present), *values]

    def _values(self, count: int, *, states: bool) -> list[pa.Array]:
        if states:
            return [state for call in self._calls for state in call.states(count)]
        values: list[pa.Array] = []
        for call in self._calls:
            values.append(call.result(count))
            self._hold_results(values, count)
        return values

    def _hold_results(self, values: list[pa.Array], count: int) -> None:
        """Reserve memory for the results: codes of a dictionary are written out there, and may be much longer."""
        if self._context is not None and self._context.memory is not None:
            written = sum(array.nbytes for array in values if not pa.types.is_primitive(array.type))
            self._context.hold(self.holder, "the aggregation", self._bytes(count) + written)
