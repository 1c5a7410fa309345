"""The executors of a session as members: who they are, how many tasks they run at once, whether that has changed."""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from remuda.errors import RemudaError
from remuda.spark.driver.connect import is_connect
from remuda.spark.driver.tasks import refuse_stopped, slot_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PERIOD = 1.0
"""Seconds between two questions: Spark itself learns of a lost executor no sooner."""


class ExecutorWatch:
    """Asks now and then rather than being told: a listener would need a server for calls from Java."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._lock = Lock()
        self._slots = slot_count(session)
        self._names = executor_names(session)
        self._asked = time.monotonic()

    @property
    def slots(self) -> int:
        """As of the last question."""
        return self._slots

    @property
    def names(self) -> tuple[str, ...]:
        """As of the last question."""
        return self._names

    @property
    def parallelism(self) -> int:
        """How many times the cores of this process the executors have: what a query gains by going there."""
        return max(1, self._slots // (os.cpu_count() or 1))

    def has_changed(self) -> bool:
        """Test whether executors have joined or left since this was last true; False between two looks.

        The names tell where the number does not: one that was lost may have been replaced meanwhile.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._asked < _PERIOD:
                return False
            self._asked = now
            if self._session.sparkContext._jsc is None:
                return False  # stopped: a query that needs it says so
            before = (self._slots, self._names)
            self._slots, self._names = slot_count(self._session), executor_names(self._session)
            return (self._slots, self._names) != before


def refuse_unusable(session: SparkSession) -> None:
    """Raise for a session that can run no job of ours, before a folder is opened for it."""
    if is_connect(session):
        raise RemudaError(
            "a Spark Connect session cannot run a grid's queries, which need tasks on chosen executors: open the grid "
            "without it, or with a session that has a SparkContext; the format remuda and remuda.spark.lookup do work",
            sqlstate="0A000",
        )
    refuse_stopped(session)


def executor_names(session: SparkSession) -> tuple[str, ...]:
    """Return the ids of the executors, which Spark never reuses. With a local master the driver does all work."""
    refuse_stopped(session)
    spark: Any = session.sparkContext._jsc.sc()
    return () if spark.isLocal() else tuple(sorted(spark.getExecutorIds().mkString(" ").split()))
