"""The jobs of one answer from Spark, and the streams in which it reaches the root fragment."""

from __future__ import annotations

import pickle
import weakref
from _thread import start_new_thread
from collections import deque
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol

from remuda.dataclass import dataclass
from remuda.spark.driver.tasks import cancel_tasks, run_partitions, run_tasks
from remuda.spark.query.answers import batches_of, measured_of, task_of
from remuda.spark.query.shuffle_blocks import Mailbox
from remuda.spark.query.shuffle_frames import chain_stages
from remuda.spark.query.stage_task import run_between, run_last
from remuda.storage.folder.delivery import own_folder, remove_while_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from remuda.exec import RowBatch
    from remuda.expr import Column
    from remuda.runtime import QueryState
    from remuda.spark.driver.job_marks import JobMarks
    from remuda.spark.query.shuffle_stages import Stage, Stages
    from remuda.spark.query.stage_task import StageWork, TaskWork
    from remuda.storage import MapSnapshot

    class WorksOf(Protocol):
        """What the tasks of a stage share, and what each has to do, given all that the stage before has sent.

        Tasks that are `alike` are told of nothing but what they share.
        """

        def __call__(
            self, stage: Stage, mailbox: Mailbox, *, alike: bool = False
        ) -> tuple[StageWork, dict[int, TaskWork]]: ...

    RunTasks = Callable[[Sequence[int]], Iterator[bytes]]
    """Runs tasks of the last stage, by their numbers, and gives their answers."""

CANCEL_PERIOD = 0.2
"""Seconds after which a job that has not ended is cancelled once more."""


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

    def abandon(self) -> None:
        """Let the job go on: it is cancelled when the query ends."""

    @property
    def is_finished(self) -> bool:
        # In this order: an answer that came just before the end must not be missed.
        return self._sent_all and not self._answers and self._batches is None


@dataclass(slots=True)
class SparkJob:
    """Runs the stages of one answer in a thread of its own, which waits for Spark as no thread of the scheduler may.

    It holds the snapshots, and so the files that its tasks read.
    """

    session: SparkSession
    snapshots: Mapping[str, MapSnapshot]
    store: Path | None
    state: QueryState
    tag: str
    marks: JobMarks
    measured: Callable[[bytes], None] | None = None
    """Takes what a task measured; None where nothing was asked for."""
    folder: str | None = field(init=False, default=None)
    _channels: list[AnswerChannel] = field(init=False, default_factory=list)
    _wanted: Event = field(init=False, default_factory=Event)
    _ended: Event = field(init=False, default_factory=Event)
    _lock: Lock = field(init=False, default_factory=Lock)
    _running: bool = field(init=False, default=True)
    _open: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        if self.store is None:
            return
        folder = own_folder(self.store, self.tag)
        try:
            folder.mkdir(parents=True)
        except OSError:
            return  # a folder that this process may only read: answers go through Spark
        self.folder = str(folder)

    def start(self, stages: Stages, works: WorksOf, slots: int) -> tuple[AnswerChannel, ...]:
        """Start a stream for each task of a task batch, as each may be ordered.

        Later task batches continue the streams of the first.
        """
        tasks = len(stages.last.tasks)
        width = tasks if stages.is_ordered else min(slots, tasks)
        (fragment,) = stages.last.fragments
        self._channels = [AnswerChannel(fragment.node.columns, self._wanted.set) for _ in range(width)]
        Thread(target=self._run, args=(stages, works), name=self.tag, daemon=True).start()
        return tuple(self._channels)

    def _run(self, stages: Stages, works: WorksOf) -> None:
        try:
            with self.marks.on_this_thread(self.session.sparkContext):
                through_spark = stages.before and self.folder is None and not stages.is_volatile
                run = self._by_spark(stages, works) if through_spark else self._by_blocks(stages, works)
                self._run_task_batches(list(stages.last.tasks), run)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the reader of the result must learn of it)
            self.state.fail(error)
        finally:
            for channel in self._channels:
                channel.finish()
            self.state.wake_reader.set()
            self._leave("_running")

    def _by_blocks(self, stages: Stages, works: WorksOf) -> RunTasks:
        """Stage after stage, each a job; see `shuffle_blocks`. Gives what runs tasks of the last one."""
        mailbox = Mailbox()
        for stage in stages.before:
            if self._is_over():
                break
            shared, tasks = works(stage, mailbox)
            answers = run_tasks(self.session, run_between, tasks, shared=(shared,), tag=self.tag)
            mailbox = Mailbox(map(pickle.loads, answers))
            for measured in mailbox.measured:
                self._take_measured(measured)
        shared, last = works(stages.last, mailbox)

        def run(tasks: Sequence[int]) -> Iterator[bytes]:
            chosen = {task: last[task] for task in tasks}
            return run_tasks(self.session, run_last, chosen, shared=(shared,), tag=self.tag)

        return run

    def _by_spark(self, stages: Stages, works: WorksOf) -> RunTasks:
        """Run the stages as one chain; see `shuffle_frames`."""
        before = [works(stage, Mailbox(), alike=True) for stage in stages.before]
        chain = chain_stages(self.session, before, works(stages.last, Mailbox(), alike=True))
        return lambda tasks: run_partitions(self.session, chain, tasks, tag=self.tag)

    def _run_task_batches(self, tasks: Sequence[int], run: RunTasks) -> None:
        width = len(self._channels)
        for first in range(0, len(tasks), max(1, width)):
            # Looked at after the clearing too, which may have been that of the last call that will ever come.
            if first and not self._is_over():
                self._wanted.wait()
            if self._is_over():
                return
            chosen = tasks[first : first + width]
            answers = self._rows_of(run(chosen))
            self._wanted.clear()
            for answer in answers:
                self._channels[chosen.index(task_of(answer))].add(answer)
            self.state.wake_reader.set()

    def _rows_of(self, answers: Iterator[bytes]) -> list[bytes]:
        """Without what was measured, which is taken before the reader can come to the end."""
        rows = []
        for answer in answers:
            measured = measured_of(answer)
            if measured is None:
                rows.append(answer)
            else:
                self._take_measured(measured)
        return rows

    def _take_measured(self, measured: bytes) -> None:
        assert self.measured is not None, "tasks measure only where it was asked for"
        self.measured(measured)

    def _is_over(self) -> bool:
        return not self._open or self.state.is_over

    def close(self) -> None:
        """Cancel what is running, as no reader is left. The later one of the job and its reader cleans up."""
        to_cancel = self._running and self._open
        self._leave("_open")
        self._wanted.set()
        if to_cancel:
            # Cancelling asks the JVM, and the caller that closes a result must not wait for that.
            Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        """Again and again: a job that is only about to begin when it is cancelled begins all the same."""
        with suppress(Exception):  # the session may be stopped: then there is no job
            while True:
                cancel_tasks(self.session, self.tag)
                if self._ended.wait(CANCEL_PERIOD):
                    return

    def _leave(self, flag: str) -> None:
        with self._lock:
            if not getattr(self, flag):
                return
            setattr(self, flag, False)
            last = not (self._running or self._open)
        if not self._running:
            self._ended.set()
        if last and self.folder is not None:
            remove_while_written(Path(self.folder))


class ReadersEnd:
    """Closes a job for its reader, who holds this and whom the job does not know: a result that is forgotten without
    being closed ends its job all the same."""

    __slots__ = ("__weakref__", "_close", "_forgotten")

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        # Garbage is collected at any moment, by a thread that may hold any lock. All that is safe then is to start
        # another thread, and not by `threading`, which has locks of its own.
        self._forgotten = weakref.finalize(self, start_new_thread, close, ())
        self._forgotten.atexit = False

    def __call__(self) -> None:
        self._forgotten.detach()
        self._close()
