"""How Spark knows the jobs of a query: the group, pool, tags and description that the user's thread has set.

They belong to a thread, and the jobs of a query run in one of their own. So they are taken where the query is started
and set where its jobs are: groups cancel them, pools schedule them, and Spark's UI shows what they are for.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext

Answer = TypeVar("Answer")

_GROUP = ("spark.jobGroup.id", "spark.job.interruptOnCancel", "spark.scheduler.pool")
_DESCRIPTION = "spark.job.description"
_CALL_SITE = "callSite.short"
"""What the UI calls a stage; else it is "runJob at PythonRDD"."""
_LONGEST = 120


def carry_marks(context: SparkContext, statement: str, work: Callable[[], Answer]) -> Callable[[], Answer]:
    """Return work that marks its jobs, on the thread that runs it, as this thread would."""
    if context._jsc is None:  # stopped: a job says so
        return work
    marks = JobMarks.of_thread(context, statement)

    def run() -> Answer:
        with marks.on_this_thread(context):
            return work()

    return run


@dataclass(frozen=True, slots=True)
class JobMarks:
    """The local properties and tags of the thread that started a query."""

    properties: dict[str, str | None]
    tags: frozenset[str]

    @classmethod
    def of_thread(cls, context: SparkContext, statement: str) -> JobMarks:
        """Take those of this thread; the statement is the description where the thread has set none."""
        words = "remuda: " + " ".join(statement.split())
        words = words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
        properties: dict[str, str | None] = {name: context.getLocalProperty(name) for name in _GROUP}
        properties[_DESCRIPTION] = context.getLocalProperty(_DESCRIPTION) or words
        properties[_CALL_SITE] = words
        return cls(properties, frozenset(context.getJobTags()))

    @contextmanager
    def on_this_thread(self, context: SparkContext) -> Iterator[None]:
        """Mark the jobs of this thread, until the block ends."""
        before = {name: context.getLocalProperty(name) for name in self.properties}
        tags = self.tags - set(context.getJobTags())
        for name, value in self.properties.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it
        for tag in tags:
            context.addJobTag(tag)
        try:
            yield
        finally:
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]
            for tag in tags:
                context.removeJobTag(tag)
