"""The cases, in the order in which they are run and printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench.cases import durable, lookup, members, scan, series, spark, startup, writes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.bench.case import Case, Setting

GROUPS: dict[str, Callable[[Setting], Iterator[Case]]] = {
    "lookup": lookup.cases,
    "scan": scan.cases,
    "series": series.cases,
    "members": members.cases,
    "write": writes.cases,
    "durable": durable.cases,
    "start-up": startup.cases,
    "spark": spark.cases,  # last: a Java beside them would disturb the others
}
