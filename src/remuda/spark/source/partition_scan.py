"""The scan of a map in tasks: each reads some partitions of the version that its execution has pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import column_twice, missing_column, nearest
from remuda.exec import ExecContext, IterationResult, build_operator
from remuda.exec.batch import conformed
from remuda.expr import Column, Parameters
from remuda.plan.physical import MapScan
from remuda.plan.traits import Traits
from remuda.spark.driver.tasks import freeze_garbage
from remuda.spark.source.planned_map import PlannedMap, made_anew
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.catalog import MapDefinition
    from remuda.plan.physical import PhysicalNode, Root
    from remuda.plan.result_column import ResultColumn
    from remuda.storage import MapSnapshot
    from remuda.types import SqlType


def scanned_columns(definition: MapDefinition, names: Iterable[str] | None) -> tuple[Column, ...]:
    """Return the visible columns, or those that are named, in that order."""
    visible = definition.visible_columns
    if names is not None:
        chosen = []
        for name in names:
            column = definition.find_column(name)
            if column is None:
                hint = nearest(name, [each.name for each in visible])
                raise missing_column(f"{definition.name} has no column {name}", suggestion=hint)
            if column in chosen:
                raise column_twice(f"columns name {column.name} twice")
            chosen.append(column)
        visible = tuple(chosen)
    return tuple(Column(number, each.name, each.type, each.nullable) for number, each in enumerate(visible))


def arrow_schema(columns: Iterable[Column] | Iterable[ResultColumn]) -> pa.Schema:
    """Return the schema as Spark compares it with the promised one: nullability included."""
    return pa.schema([pa.field(column.name, spark_arrow(column.type), column.nullable) for column in columns])


def spark_arrow(type_: SqlType) -> pa.DataType:
    """Return the Arrow type that Spark takes for a column: it counts the time of a day in nanoseconds alone."""
    return pa.time64("ns") if type_.kind is Kind.TIME else type_.arrow


def shares_of(definition: MapDefinition, tasks: int) -> list[np.ndarray]:
    """Return contiguous blocks of partitions, one for each task."""
    every = np.arange(definition.partitions, dtype=np.int64)
    return np.array_split(every, min(tasks, len(every)))


def run_share(
    node: PhysicalNode | Root, snapshot: MapSnapshot, partitions: np.ndarray, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Run a plan over some partitions of one map, in a task."""
    operator = build_operator(node)
    operator.setup(ExecContext(Parameters(), {snapshot.definition.id: snapshot}, partitions))
    while True:
        result = operator.advance()
        assert result is not IterationResult.WAIT, "a scan waits for nothing"
        if operator.current_batch.row_count:
            yield conformed(operator.current_batch.arrow(), schema)
        if result is IterationResult.FETCHED_DONE:
            break
    freeze_garbage()


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """What the tasks read, as a value that pickles."""

    planned: PlannedMap
    columns: tuple[Column, ...]

    def shares(self, tasks: int) -> list[np.ndarray]:
        return shares_of(self.planned.definition, tasks)

    def read(self, partitions: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Read some partitions. Runs in a task."""
        with self.planned.snapshot() as snapshot:
            self._refuse_other(snapshot.definition)
            scan = MapScan(snapshot.definition, self.columns, None, None, Traits())
            yield from run_share(scan, snapshot, partitions, arrow_schema(self.columns))

    def _refuse_other(self, definition: MapDefinition) -> None:
        """Raise if the map is no longer the one that the frame was planned for."""
        names = [column.name for column in self.columns]
        same = definition.partitions == self.planned.definition.partitions
        if not same or any(definition.find_column(name) is None for name in names):
            raise made_anew(definition)
        found = scanned_columns(definition, names)
        if found != self.columns or any(
            new.nullable and not old.nullable for new, old in zip(found, self.columns, strict=True)
        ):
            raise made_anew(definition)
