"""What a failed Spark job means to the one who asked: the one place that reads Java's stack traces."""

from __future__ import annotations

import re

from remuda.errors import ErrorCode, SqlError

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
_JAVA_CLASSES = re.compile(r"^.*\b(?:java|org|py4j)\.[\w.$]+: ")
_UNPREPARED = "No module named 'remuda'"


def as_sql_error(failure: Exception) -> SqlError:
    """A failure that Spark reports, as an error of the engine: cancelled, out of reach, or whatever the task raised."""
    text = str(failure)
    reason = useful_line(text)
    if any(mark in text for mark in _CANCELLED):
        return SqlError(ErrorCode.CANCELLED_BY_USER, "the query was cancelled")
    if _UNPREPARED in text:
        return SqlError(
            ErrorCode.CONNECTION_PROBLEM,
            f"Spark's Python workers cannot import remuda: {reason}",
            suggestion="Install remuda on the executors, or set PYSPARK_PYTHON to a Python that has it.",
        )
    if isinstance(failure, OSError) or any(mark in text for mark in _LOST):
        return SqlError(ErrorCode.CONNECTION_PROBLEM, f"a Spark job lost a worker: {reason}")
    return SqlError(ErrorCode.GENERIC, f"a Spark job failed: {reason}")


def useful_line(text: str) -> str:
    """The line that says what went wrong: the last one before the frames of the Java stack.

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
