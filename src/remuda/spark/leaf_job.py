"""The jobs of one leaf fragment, and the streams in which their answers reach the root fragment."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from shutil import rmtree
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from remuda.spark.answers import batches_of, slot_of
from remuda.spark.leaf_task import run_leaf
from remuda.spark.tasks import cancel_tasks, run_tasks
from remuda.storage.delivery import delivery_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from remuda.exec import RowBatch
    from remuda.expr import Column
    from remuda.runtime import QueryState
    from remuda.spark.leaf_task import LeafWork
    from remuda.storage import MapSnapshot


class AnswerChannel:
    """The batches of some answers, one after the other. An answer becomes batches when it is read, not before."""

    def __init__(self, columns: tuple[Column, ...], on_last: Callable[[], None]) -> None:
        self._columns = columns
        self._answers: deque[bytes] = deque()
        self._batches: Iterator[RowBatch] | None = None
        self._sent_all = False
        self._on_last = on_last
        """Called when the last answer that has arrived is begun, or none has."""

    def add(self, answer: bytes) -> None:
        self._answers.append(answer)

    def finish(self) -> None:
        self._sent_all = True

    def poll(self) -> RowBatch | None:
        while True:
            if self._batches is not None:
                batch = next(self._batches, None)
                if batch is not None:
                    return batch
                self._batches = None
            if self._answers:
                self._batches = batches_of(self._answers.popleft(), self._columns)
            if not self._answers:
                self._on_last()
            if self._batches is None:
                return None

    @property
    def is_finished(self) -> bool:
        # In this order: an answer that came just before the end must not be missed.
        return self._sent_all and not self._answers and self._batches is None


@dataclass(slots=True)
class LeafJob:
    """Runs the tasks of a fragment in a thread of its own, which waits for Spark as no thread of the scheduler may.

    It holds the snapshots, and so the files that its tasks read.
    """

    session: SparkSession
    snapshots: Mapping[str, MapSnapshot]
    store: Path | None
    state: QueryState
    tag: str
    folder: str | None = field(init=False, default=None)
    _channels: dict[int, AnswerChannel] = field(init=False, default_factory=dict)
    _wanted: Event = field(init=False, default_factory=Event)
    _lock: Lock = field(init=False, default_factory=Lock)
    _running: bool = field(init=False, default=True)
    _open: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        if self.store is None:
            return
        folder = delivery_folder(self.store, self.tag)
        try:
            folder.mkdir(parents=True)
        except OSError:
            return  # a folder that this process may only read: answers go through Spark
        self.folder = str(folder)

    def start(self, works: Sequence[LeafWork], slots: int, columns: tuple[Column, ...]) -> tuple[AnswerChannel, ...]:
        """A stream for each task, as each may be ordered; those of later waves continue the first ones."""
        self._channels = {work.slot: AnswerChannel(columns, self._wanted.set) for work in works[:slots]}
        Thread(target=self._run, args=(works, slots), name=self.tag, daemon=True).start()
        return tuple(self._channels.values())

    def _run(self, works: Sequence[LeafWork], slots: int) -> None:
        try:
            for first in range(0, len(works), slots):
                if first:
                    self._wanted.wait()
                if self._is_over():
                    break
                self._run_wave({work.slot: work for work in works[first : first + slots]}, slots)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the reader of the result must learn of it)
            self.state.fail(error)
        finally:
            for channel in self._channels.values():
                channel.finish()
            self.state.wake_reader.set()
            self._leave("_running")

    def _run_wave(self, works: Mapping[int, LeafWork], slots: int) -> None:
        answers = run_tasks(self.session, run_leaf, {slot % slots: work for slot, work in works.items()}, tag=self.tag)
        self._wanted.clear()
        for answer in answers:
            self._channels[slot_of(answer) % slots].add(answer)
        self.state.wake_reader.set()

    def _is_over(self) -> bool:
        return not self._open or self.state.cancelled or self.state.error is not None

    def close(self) -> None:
        """Nobody reads any more. What is running is cancelled; whoever is later, the job or its reader, cleans up."""
        self._wanted.set()
        if self._running and self._open:
            # Cancelling asks the JVM, which must not keep whoever closes a result waiting.
            Thread(target=partial(cancel_tasks, self.session, self.tag), daemon=True).start()
        self._leave("_open")

    def _leave(self, flag: str) -> None:
        with self._lock:
            if not getattr(self, flag):
                return
            setattr(self, flag, False)
            last = not (self._running or self._open)
        if last and self.folder is not None:
            rmtree(self.folder, ignore_errors=True)
