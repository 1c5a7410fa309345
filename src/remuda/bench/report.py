"""Write the report: a page of Markdown and its plots. `docs/benchmarks.md` is one; it names the command."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from remuda.bench import tables
from remuda.bench.case import REMUDA
from remuda.bench.import_time import import_costs
from remuda.bench.machine import NOT_INSTALLED, versions
from remuda.bench.pictures import NULLS, pictures
from remuda.bench.run import GROWTH, SPARK, START_UP
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda.bench.machine import Machine
    from remuda.bench.run import Measurement, Plan

COLUMNS = 120
PAGE = "benchmarks.md"
PLOTS = "benchmarks"
TITLES = {
    "lookup": "Lookups",
    "write": "Writes that a crash may lose",
    "durable": "Writes that survive a power failure",
    "scan": "Scans, groups, joins",
    "series": "Series",
    "members": "Members",
    SPARK: "On Spark",
}

INTRODUCTION = """
Remuda beside SQLite, DuckDB, Polars, LMDB, chDB and Spark, on the same rows in the same run. The page and its plots are
the output of one command; the cases that Remuda loses come first.
"""
METHOD = """
**Interleaved.** Each contender of a case runs for a few milliseconds, then the next one, in an order that rotates,
until each has had its share of time. Other work of the machine meets all of them alike. Garbage collection is off
while a case runs.

**Minima.** A table shows the best turn of each contender. The best turn is the one that the rest of the machine has
disturbed least. The ratio of two minima varies less between runs than either of them.

**Processor time.** *processor* behind the name of a case means what all threads of a new process have worked, not how
long it took: other programs change it less, and work on a second processor counts.

**The same rows, the best form.** All engines have the same rows: {rows:,} orders with a key, two indexed columns and
three others; the rows with NULLs have 1 to 2 % of them in every column but the key. Each engine has the indexes that
it can use, prepared statements where it has them, and its fastest way out: Python tuples for a few rows, Arrow or its
own frame for many. Answers of different size end the run.

**The engines.** Remuda, SQLite and DuckDB are in memory, with a primary key and both indexes. *DuckDB file* is a file
with compressed columns and no index, at times faster for scans. Polars is a data frame, asked lazily. LMDB keeps a
row as MessagePack under its key, read in one long transaction. chDB is a MergeTree in the order of the key. *Spark
cached* and *Spark Parquet* are plain Spark SQL in local mode. Gray marks are references, not peers: an empty process,
the disk's syncs alone, a Spark job that does nothing.

**What it does not tell.** One process, one machine, synthetic rows of one shape, results that fit into memory.
Measure with your own data before you choose.
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run has measured, and how it was asked for."""

    command: str
    machine: Machine
    plan: Plan
    measurements: tuple[Measurement, ...]
    remark: str
    seconds: float

    def group(self, name: str) -> list[Measurement]:
        return [each for each in self.measurements if each.group == name]


def write(report: Report, folder: Path) -> Path:
    """Write the page and its plots below the folder; return the path of the page."""
    (folder / PLOTS).mkdir(parents=True, exist_ok=True)
    drawn = pictures(report.measurements, TITLES)
    for name, picture in drawn.items():
        (folder / PLOTS / f"{name}.svg").write_text(picture, encoding="utf-8")
    page = folder / PAGE
    page.write_text("\n\n".join(_sections(report, frozenset(drawn))) + "\n", encoding="utf-8")
    return page


def _sections(report: Report, drawn: frozenset[str]) -> Iterator[str]:
    yield "# Benchmarks"
    yield _prose(INTRODUCTION)
    yield f"```console\n$ {report.command}\n```"
    found = versions()
    yield tables.machine_table(report.machine, found, report.plan.rows)
    yield from _caveats(report, found)
    yield from _losses(report)
    yield from _cases(report, drawn)
    yield from _growth(report)
    yield from _start_up(report)
    yield "## How it is measured"
    yield from (_prose(paragraph.format(rows=report.plan.rows)) for paragraph in METHOD.strip().split("\n\n"))


def _caveats(report: Report, found: dict[str, str]) -> Iterator[str]:
    if report.remark:
        yield _prose(f"**{report.remark}**")
    if report.machine.is_busy:
        yield _prose(
            f"**The machine was busy** before the run began: a load of {report.machine.load:.1f} on "
            f"{report.machine.cores} cores. Ratios are worth more than times here, and small ratios are worth little."
        )
    missing = [name for name, number in found.items() if number == NOT_INSTALLED]
    if missing:
        yield _prose(f"Not installed, and so not measured: {', '.join(missing)}.")
    if not report.group(SPARK):
        yield "Spark was not measured in this run."


def _losses(report: Report) -> Iterator[str]:
    # Growth repeats cases at the main size.
    once = [each for each in report.measurements if each.group != GROWTH or each.rows != report.plan.rows]
    known = [each for each in map(tables.compared, once) if each is not None]
    lost = sum(each.ratio > 1 for each in known)
    yield "## Where Remuda is slower"
    if not lost:
        yield f"In none of {len(known)} cases."
        return
    yield _prose(f"In {lost} of {len(known)} cases a peer is faster. The greatest difference comes first.")
    yield tables.losses_table(once)


def _cases(report: Report, drawn: frozenset[str]) -> Iterator[str]:
    yield "## Case by case"
    yield _prose(
        "Best times. The last column is Remuda's time divided by that of the fastest peer: below 1 Remuda wins."
    )
    for group, title in TITLES.items():
        measured = report.group(group)
        if not measured:
            continue
        yield f"### {title}"
        if group in drawn:
            yield _image(f"{title}: times of the peers divided by Remuda's", group)
        yield tables.group_table(measured)
        if group == "scan" and NULLS in drawn:
            yield _image("What NULLs cost each engine", NULLS)


def _growth(report: Report) -> Iterator[str]:
    measured = report.group(GROWTH)
    if not measured:
        return
    sizes = sorted({each.rows for each in measured})
    yield "## Growth"
    yield _prose(f"The same cases from {sizes[0]:,} to {sizes[-1]:,} rows. A flat line does not depend on the rows.")
    yield _image("Times as the number of rows grows", GROWTH)
    names = dict.fromkeys(each.name for each in measured)
    yield tables.group_table([each for name in names for each in measured if each.name == name])


def _start_up(report: Report) -> Iterator[str]:
    measured = report.group(START_UP)
    if not measured:
        return
    yield "## Start-up"
    yield _prose("A new process to its first answer, the interpreter's own start included.")
    yield _image("Time of a new process to its first answer", START_UP)
    yield tables.group_table(measured)
    yield _prose(
        "What a new process with Remuda imports before it answers `SELECT 1`, by `-X importtime`, which adds its own "
        "cost to each module."
    )
    yield tables.import_table(import_costs(REMUDA))


def _image(text: str, name: str) -> str:
    return f"![{text}]({PLOTS}/{name}.svg)"


def _prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), COLUMNS, break_long_words=False, break_on_hyphens=False)
