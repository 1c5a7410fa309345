"""`python -m benchmarks [SUBJECT ...] [--rows N] [--scale S]`: see SUBJECTS."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import (
    access_paths,
    cluster_growth,
    ending,
    estimates,
    footprint,
    join_orders,
    manifest_growth,
    planning,
    scale,
    space,
    spark_frames,
    suites,
    write_tasks,
)
from remuda.bench import data
from remuda.bench.peers.remuda_peer import RemudaPeer
from remuda.presentation.durations import duration

SUBJECTS = (
    "ending",
    "space",
    "planning",
    "estimates",
    "access_paths",
    "join_orders",
    "suites",
    "manifest_growth",
    "cluster_growth",
    "footprint",
    "spark_frames",
)
LONG = ("scale", "write_tasks")
"""Subjects that take minutes to hours, and run where they are named."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measurements of Remuda alone.")
    parser.add_argument(
        "subjects", nargs="*", choices=[*SUBJECTS, *LONG, []], metavar="SUBJECT", help=", ".join([*SUBJECTS, *LONG])
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--folder", type=Path, help="where scale puts its maps; default: the temporary folder")
    parser.add_argument("--scale", type=float, default=1.0, help="of TPC-H and TPC-DS in suites; default: 1")
    parser.add_argument("--keys", type=int, default=1_000_000, help="looked up at most, in spark_frames")
    options = parser.parse_args()
    for subject in options.subjects or SUBJECTS:
        match subject:
            case "ending":
                ending.show(RemudaPeer(data.make(options.rows)))
            case "space":
                _show_space(data.make(options.rows))
            case "planning":
                planning.show()
            case "estimates":
                estimates.show(options.rows)
            case "access_paths":
                access_paths.show(options.rows)
            case "join_orders":
                join_orders.show(options.rows)
            case "suites":
                suites.show(options.scale)
            case "manifest_growth":
                manifest_growth.show()
            case "cluster_growth":
                cluster_growth.show()
            case "spark_frames":
                spark_frames.show(options.rows, options.keys)
            case "scale":
                scale.show(options.rows, options.folder)
            case "write_tasks":
                write_tasks.show(options.rows)
            case _:
                _show_footprint()
    return 0


def _show_space(rows: data.Data) -> None:
    print("\nbytes a row in a folder, and of Arrow data with dictionaries and indexes over arrays")
    for size in space.sizes(rows):
        ratio = f"{size.taken / size.needed:.2f}" if size.needed else ""
        print(f"  {size.name:<22} {size.taken:>8.1f} {size.needed:>8.1f} {ratio:>6}")
    given = rows.table.nbytes
    print(f"\npeak memory of a process that loads {given / 2**20:,.0f} MiB, all counted")
    for peak in space.peaks(rows):
        peak_size, bare_size = (f"{size / 2**20:,.0f} MiB" for size in (peak.peak, peak.bare))
        print(
            f"  {peak.name:<22} {peak_size:>10}, {peak.peak / given:.2f} times the data "
            f"({bare_size} without any), {duration(peak.seconds)}"
        )


def _show_footprint() -> None:
    unwanted = footprint.modules_that_should_be_absent()
    print(f"\nimport remuda loads {', '.join(unwanted) if unwanted else 'neither pyspark nor pandas'}")
    print("\nlines of code")
    lines = footprint.lines_by_package()
    for name, count in {**lines, "in all": sum(lines.values())}.items():
        print(f"  {name:<14} {count:>7,}")


if __name__ == "__main__":
    sys.exit(main())
