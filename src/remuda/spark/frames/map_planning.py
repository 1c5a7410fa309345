"""Opens the map that a frame is over: in this process, or, for Spark Connect, in a task beside the server."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import RemudaError
from remuda.spark.driver.connect import is_connect
from remuda.spark.driver.spark_session import make_importable
from remuda.spark.driver.tasks import refuse_stopped
from remuda.spark.source.planned_map import PlannedMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession


def plan_map(session: SparkSession, options: Mapping[str, str]) -> PlannedMap:
    """Return the map as it is now. A client of Spark Connect need not see the folder."""
    if not is_connect(session):
        refuse_stopped(session)
        make_importable(session.sparkContext)
        return PlannedMap(options)
    (row,) = session.range(0, 1, 1, 1).mapInArrow(_PlanningTask(dict(options)), "answer BINARY").collect()
    answer: PlannedMap | RemudaError = pickle.loads(row.answer)
    if isinstance(answer, RemudaError):
        raise answer
    return answer


@dataclass(frozen=True, slots=True)
class _PlanningTask:
    options: dict[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # one row, which makes the task answer
            answer: PlannedMap | RemudaError
            try:
                answer = PlannedMap(self.options)
            except RemudaError as error:
                answer = error
            yield pa.record_batch({"answer": pa.array([pickle.dumps(answer)], pa.binary())})
