"""What may be written after `remuda bench`, and the run that it asks for."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.bench.cases import GROUPS
from remuda.bench.measure import FULL, QUICK
from remuda.bench.run import GROWTH, Plan, run
from remuda.bench.terminal import heading, line
from remuda.errors import RemudaError
from remuda.presentation.durations import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS, QUICK_ROWS = 1_000_000, 200_000
SIZES = (100_000, 1_000_000, 10_000_000)
QUICK_SIZES = (20_000, 200_000)
"""The numbers of rows at which growth is measured, up to ten times the rows of the other cases."""
SMALLEST = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print each, and write a report if a folder for it is given."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser().parse_args(given)
    started = time.perf_counter()
    plan = _plan(options)
    machine = None
    if options.report is not None:
        from remuda.bench.machine import describe

        machine = describe()  # before the run, whose own load would count
    print(heading(plan.rows))
    measurements = []
    for measurement in run(plan):
        measurements.append(measurement)
        print(line(measurement), flush=True)
    if not measurements:
        raise RemudaError(f"no group is called {plan.only!r} and no case has that in its name", sqlstate="22023")
    if machine is not None:
        from remuda.bench.report import Report, write

        command = shlex.join(["remuda", "bench", *given])
        report = Report(command, machine, plan, tuple(measurements), options.remark, time.perf_counter() - started)
        print(f"\nwrote {write(report, options.report)}")
    print(f"\nin all {duration(time.perf_counter() - started)}")
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="remuda bench", description="Measure Remuda beside its peers, in one run.")
    made.add_argument("--quick", action="store_true", help="fewer rows, shorter turns, no Spark: under two minutes")
    made.add_argument("--rows", type=_rows, metavar="N", help=f"default: {ROWS:,}, or {QUICK_ROWS:,} with --quick")
    made.add_argument(
        "--growth",
        type=_sizes,
        metavar="N,N",
        help=f"further sizes; default: {','.join(map(str, SIZES))}, or {','.join(map(str, QUICK_SIZES))} with --quick",
    )
    made.add_argument(
        "--only", default="", metavar="TEXT", help=f"a group ({', '.join((*GROUPS, GROWTH))}) or part of a case's name"
    )
    made.add_argument("--no-spark", action="store_true", help="without the cases that need a Java")
    made.add_argument("--report", type=Path, metavar="FOLDER", help="write benchmarks.md and its plots here")
    made.add_argument("--remark", default="", metavar="TEXT", help="a sentence for the head of the report")
    return made


def _plan(options: argparse.Namespace) -> Plan:
    rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    sizes = QUICK_SIZES if options.quick else SIZES
    return Plan(
        rows,
        tuple(size for size in sizes if size <= 10 * rows) if options.growth is None else options.growth,
        QUICK if options.quick else FULL,
        options.only,
        with_spark=not (options.no_spark or options.quick),
    )


def _rows(text: str) -> int:
    rows = int(text.replace(",", "").replace("_", ""))
    if rows < SMALLEST:
        raise argparse.ArgumentTypeError(f"at least {SMALLEST:,}")
    return rows


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(_rows(each) for each in text.split(",") if each)
