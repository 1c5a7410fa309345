"""What a fragment's operators may know of the query they belong to."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, SqlError
from remuda.exec.offload import RowBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from remuda.exec.batch import RowBatch
    from remuda.exec.join.runtime_filter import FilterKeys
    from remuda.exec.memory import MemoryLimit
    from remuda.exec.operator import Exec
    from remuda.exec.relational.spool import SpooledRows
    from remuda.exec.scan.zone_order import TopNBound
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.expr import Parameters
    from remuda.storage import MapSnapshot

SCAN_BATCH_ROWS = 262_144
"""Rows that a direct scan passes to its kernels at once: enough to hide their start, few enough to stay in cache.

Measured, processor time of 10M rows with 131,072 / 262,144 / 524,288 at once: filter of 1 % 24 / 17 / 17 ms, of 50 %
50 / 45 / 40, filter and sum 27 / 22 / 21, five groups 61 / 55 / 60.
"""


class ReceivingEnd(Protocol):
    """What the receiver of a stream sees of it."""

    def poll(self) -> RowBatch | None:
        """Take the next batch; None where none has arrived yet, or where all have been taken."""

    @property
    def is_finished(self) -> bool:
        """Return whether all batches have been sent and taken."""

    def abandon(self) -> None:
        """Drop what has been sent and will be: the receiver needs no more rows.

        A sender that waits for room here sends nothing to its other receivers either, who would wait forever.
        """


class Channel(ReceivingEnd, Protocol):
    """The stream from one sending fragment to one receiver: bounded, so that a fast sender waits."""

    def offer(self, batch: RowBatch) -> bool:
        """Send a batch; False where there is no room: the sender waits and offers again."""

    def finish(self) -> None:
        """Say that the sender has nothing more."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The channels of an edge, one for each receiver. `receiver_of` says which one owns a partition, for HASH."""

    channels: tuple[Channel, ...]
    receiver_of: np.ndarray | None = None


class Workers(Protocol):
    """The threads that a fragment may use beside its own."""

    @property
    def parallelism(self) -> int: ...

    def start(self, feed: Callable[[Channel], Exec]) -> ReceivingEnd:
        """Advance the operator that `feed` makes until it is done; it sends its batches into the channel given."""


class WriterPart(Protocol):
    """Takes the rows that one fragment has for a statement that writes."""

    def add(self, batch: RowBatch) -> None: ...

    def finish(self) -> int:
        """Prepare all of the rows for the commit and return how many they are."""

    def prepared(self) -> bytes | None:
        """Return what the writer on the coordinator has to take over, where it is in another process."""


class RowWriter(Protocol):
    """Takes the rows of a statement that writes, from one fragment or from several."""

    def part(self, context: ExecContext) -> WriterPart: ...


class Committer(RowWriter, Protocol):
    """Commits the rows: the writer on the coordinator."""

    def take_over(self, rows: int, prepared: bytes, /) -> None:
        """Take over what a part in another process has prepared."""

    def commit(self) -> int:
        """Write the rows of all parts, or none of them, and return how many rows were written or removed."""


@dataclass(slots=True)
class OperatorActivity:
    """What an operator really did, for tests and EXPLAIN ANALYZE: rows of maps that it read, and what it decided."""

    partitions: int = 0
    index_entries: int = 0
    rows_read: int = 0
    decisions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Texts with a place for each of their counts: {"runtime filter #1: {} keys of {} rows": (120, 812)}."""

    def decide(self, text: str, *counts: int) -> None:
        """Note a decision; counts of the same text are added up."""
        known = self.decisions.get(text)
        self.decisions[text] = counts if known is None else tuple(map(sum, zip(known, counts, strict=True)))


@dataclass(slots=True)
class ExecContext:
    """`partitions` are those that this fragment works on, ascending; None stands for all of them."""

    parameters: Parameters
    snapshots: Mapping[str, MapSnapshot]
    partitions: np.ndarray | None = None
    partition_count: int | None = None
    """How many partitions the plan has, of which those are some; None: as many as the map that is read."""
    outgoing: Mapping[int, Outgoing] = field(default_factory=dict)
    incoming: Mapping[int, tuple[ReceivingEnd, ...]] = field(default_factory=dict)
    check: Callable[[], None] | None = None
    """Raises where the query was cancelled, or where a map or an index of the plan is gone."""
    working_tables: Mapping[int, Sequence[RowBatch]] = field(default_factory=dict)
    """Within the step of a recursive query: the rows found last, by the number of their table."""
    spools: dict[int, SpooledRows] = field(default_factory=dict)
    """The rows that are computed once for several readers in this fragment, by the number of their spool."""
    runtime_filters: dict[int, FilterKeys] = field(default_factory=dict)
    """What the hash joins of this fragment tell operators below them, by the number of the filter."""
    top_n_bounds: dict[int, TopNBound] = field(default_factory=dict)
    """What the TopNs of this fragment tell scans below them, by the number of the bound."""
    writer: RowWriter | None = None
    """Takes the rows of a statement that writes."""
    committer: Committer | None = None
    """Commits them; on the coordinator alone."""
    workers: Workers | None = None
    memory: MemoryLimit | None = None
    spill: SpillFolder | None = None
    """Where operators put rows that are beyond the limit; without it they fail there."""
    member: str | None = None
    """The member that runs the fragment; None in a task of another backend."""
    scan_batch_rows: int = SCAN_BATCH_ROWS
    activity: OperatorActivity = field(default_factory=OperatorActivity)
    weight: RowBudget = field(default_factory=RowBudget)

    def snapshot(self, map_id: str) -> MapSnapshot:
        found = self.snapshots.get(map_id)
        if found is None:
            raise SqlError(ErrorCode.MAP_DESTROYED, "the map was dropped")
        return found

    def hold(self, operator: object, name: str, size: int) -> None:
        """Told by operators that hold rows, as what they hold grows."""
        if self.memory is not None:
            self.memory.hold(operator, name, size)

    def verify(self) -> None:
        """Called before a fragment is set up, and by scans before each batch they return."""
        if self.check is not None:
            self.check()
