"""The hot path into Spark: one job, one task for each executor slot that has something to do.

A *slot* is one core of one executor. A job is an RDD with one partition for each task, whose data is the payload of
that task: it gets no other. What all tasks of a job need is sent beside the function, once to each executor. What a
task runs is named, not shipped: workers import it, and keep what it caches (open memory maps) from job to job. A cache
is all it is, for a slot meets different workers from one job to the next.
"""

from __future__ import annotations

import gc
import logging
import pickle
import re
import time
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remuda.errors import ErrorCode, RemudaError, SqlError, internal_error, state_error
from remuda.spark.driver.spark_session import make_importable
from remuda.storage.folder.manifest import NAME as MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD, SparkContext
    from pyspark.sql import SparkSession

    TaskFunction = Callable[..., Iterable[bytes]]
    """What a task does with what all tasks share, if anything, and with its payload: a function at the top level of an
    importable module."""

_logger = logging.getLogger("remuda.spark")

# What a failed Spark job means to the one who asked: the one place that reads Java's stack traces.


_CANCELLED = ("SPARK_JOB_CANCELLED", "cancelled because", "cancelled as part of")
_LOST = (
    "ExecutorLostFailure",
    "Python worker exited unexpectedly",
    "SparkContext was shut down",
    "stopped SparkContext",
    "Connection refused",
    "Connection reset",
    "FetchFailed",
    "Answer from Java side is empty",
)
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")
_MISSING_FILE = re.compile(r"FileNotFoundError: \[Errno 2\] [^']*'([^']+)'")
_OURS = re.compile(r"^remuda\.errors\.\w+: (?:\[-?\d+ (\w+)\] )?(.+(?:\n  (?!File ).+)*)$", re.MULTILINE)
"""The last lines of the traceback of an error of ours: its code, and its message with the suggestion below it."""
_JAVA_CLASSES = re.compile(r"^.*\b(?:java|org|py4j)\.[\w.$]+: ")


def as_sql_error(failure: Exception) -> SqlError:
    """Return a failure that Spark reports as an error of the engine: cancelled, out of reach, or what the task raised.

    What Spark said, with the stack of the task, is a note of the error: a traceback shows it below the message.
    """
    error = _error_of(failure, str(failure))
    if error.code is not ErrorCode.CANCELLED_BY_USER:
        error.add_note(f"What Spark said:\n{failure}")
    return error


def _error_of(failure: Exception, text: str) -> SqlError:
    ours = _OURS.findall(text)
    if ours:
        code, message = ours[-1]
        return SqlError(ErrorCode[code], message) if code in ErrorCode.__members__ else internal_error(message)
    reason = useful_line(text)
    if any(mark in text for mark in _CANCELLED):
        return SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")
    missing = _MISSING_MODULE.search(text)
    if missing is not None:
        return SqlError(
            ErrorCode.CONNECTION_PROBLEM,
            f"Spark's Python workers cannot import {missing[1]}: {reason}",
            suggestion=f"Install {missing[1].partition('.')[0]} on the executors (pip install 'remudadb[spark]'), or "
            "set PYSPARK_PYTHON to a Python that has it.",
        )
    file = _MISSING_FILE.search(text)
    store = None if file is None else _store_of(Path(file[1]))
    if store is not None:
        return unseen_folder(store)
    if isinstance(failure, OSError) or any(mark in text for mark in _LOST):
        return SqlError(ErrorCode.CONNECTION_PROBLEM, f"a Spark job lost a worker: {reason}")
    return internal_error(f"a Spark job failed: {reason}")


def unseen_folder(folder: Path | str) -> SqlError:
    """Report a folder that the driver has and a task has not found."""
    return state_error(f"the executors do not see {folder}: use a shared file system or s3://")


def _store_of(path: Path) -> Path | None:
    """Return the store that this process sees at a path, or some levels above it."""
    return next((each for each in (path, *path.parents) if (each / MANIFEST).is_file()), None)


def refuse_stopped(session: SparkSession) -> None:
    """Raise if the session can run no more jobs."""
    if session.sparkContext._jsc is None:
        raise RemudaError("the Spark session is stopped: open the grid again with one that runs", sqlstate="08003")


def useful_line(text: str) -> str:
    """Return the line that says what went wrong: the last one before the frames of the Java stack.

    >>> useful_line(
    ...     "Job aborted: PythonException: Traceback (most recent call last):\\n  File ...\\n"
    ...     "ValueError: no such column\\n\\n\\tat org.apache.spark.api.python...\\n\\tat java.base..."
    ... )
    'ValueError: no such column'
    >>> useful_line("o7.run: org.apache.spark.SparkException: aborted: java.io.EOFException: it broke off\\n\\tat java")
    'it broke off'
    """
    useful = "no reason was given"
    for line in text.splitlines():
        if line.startswith("\tat "):
            break
        if line.strip() and not line.strip().startswith("SQLSTATE:"):
            useful = line.strip()
    return _JAVA_CLASSES.sub("", useful)


def slot_count(session: SparkSession) -> int:
    """Count the tasks that the session runs at once at this moment: executors join and leave."""
    refuse_stopped(session)
    return session.sparkContext.defaultParallelism


def run_tasks(
    session: SparkSession,
    function: TaskFunction,
    payloads: Mapping[int, Any],
    *,
    shared: tuple[Any, ...] = (),
    tag: str | None = None,
) -> Iterator[bytes]:
    """Run `function(*shared, payload)` in one task for each payload, and return what they yield, in their order.

    The job has ended when this returns, and an error of any task has been raised: no result is handed out before it is
    known that all are good. An error that a task raises as a `RemudaError` arrives as the same error, and Spark does
    not try again what would only fail again. `tag` is what `cancel_tasks` takes. Payloads are anything that pickles.
    """
    if not payloads:
        return iter(())
    context = session.sparkContext
    make_importable(context)
    task = partial(_run_payload, f"{function.__module__}:{function.__qualname__}", shared)
    packed = [pickle.dumps(payloads[each]) for each in sorted(payloads)]
    rdd = context.parallelize(packed, len(packed))
    return run_partitions(session, rdd, list(range(len(packed))), task, tag=tag)


def run_partitions(
    session: SparkSession,
    rdd: RDD[Any],
    partitions: Sequence[int],
    function: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    *,
    tag: str | None = None,
) -> Iterator[bytes]:
    """Run the partitions of an RDD like `run_tasks`: answers and errors, or what the function makes these of."""
    context = session.sparkContext
    began = time.monotonic()
    with _tagged(context, tag):
        try:
            answers = context.runJob(rdd, function, partitions=partitions)
        except Exception as failure:  # noqa: BLE001  (Spark's own words are a note, not a stack above ours)
            raise as_sql_error(failure) from None
    results: list[bytes] = []
    for answer in answers:
        if isinstance(answer, RemudaError):
            raise answer
        results.append(answer)
    _log_job(context, len(partitions), time.monotonic() - began, results)
    return iter(results)


def _log_job(context: SparkContext, tasks: int, seconds: float, answers: Sequence[bytes]) -> None:
    """Log a job; its description is that of the thread's jobs: the statement, or the user's own."""
    if _logger.isEnabledFor(logging.INFO):
        what = context.getLocalProperty("spark.job.description") or "a job"
        size = sum(map(len, answers))
        _logger.info("%s: %d tasks, %.3f s, %d bytes through the driver", what, tasks, seconds, size)


def cancel_tasks(session: SparkSession, tag: str) -> None:
    """Ends the jobs with this tag, from any thread: `run_tasks` raises CANCELLED_BY_USER in theirs."""
    session.sparkContext.cancelJobsWithTag(tag)


@contextmanager
def _tagged(context: SparkContext, tag: str | None) -> Iterator[None]:
    """Tag the thread's jobs: a tag adds to their marks, while a job group would replace the user's."""
    if tag is None:
        yield
        return
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)


def _run_payload(name: str, shared: tuple[Any, ...], payloads: Iterator[bytes]) -> Iterator[bytes | RemudaError]:
    """Run a payload in the Python worker; its input is read to the end, or Spark would not reuse the worker."""
    try:
        for payload in payloads:
            yield from _function_named(name)(*shared, pickle.loads(payload))
    except RemudaError as error:
        yield error
    finally:
        freeze_garbage()


def _function_named(name: str) -> TaskFunction:
    module, _, function = name.partition(":")
    found: TaskFunction = getattr(import_module(module), function)
    return found


@cache
def freeze_garbage() -> None:
    """Once in each worker, after its first task: what the imports left on the heap is not looked at again.

    PySpark collects garbage after every task, which takes 25 ms over the modules of this package and its libraries.
    """
    gc.collect()
    gc.freeze()
