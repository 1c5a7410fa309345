"""`python -m benchmarks [--rows N] [--only TEXT] [--no-spark]`"""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks import data, ending, footprint, planning, space
from benchmarks.case import Case, Setting, size_of
from benchmarks.cases import GROUPS
from benchmarks.measure import interleave
from benchmarks.peers import Peers
from benchmarks.report import heading, line
from remuda.cli.output import duration


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Remuda and its peers, interleaved.")
    parser.add_argument("--rows", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help=f"groups ({', '.join(GROUPS)}, ending, space, footprint, planning) or cases by part of their name",
    )
    parser.add_argument("--no-spark", action="store_true", help="without the cases that need a Java")
    options = parser.parse_args()
    started = time.perf_counter()
    rows = data.make(options.rows)
    print(f"{rows.rows:,} rows\n\n{heading()}")
    setting = Setting(rows, Peers(rows), with_spark=not options.no_spark)
    for group, make_cases in GROUPS.items():
        whole_group = options.only in ("", group)
        if options.only in {*GROUPS, "space", "footprint", "planning", "ending"} and not whole_group:
            continue
        for case in make_cases(setting):
            if whole_group or options.only.casefold() in case.name.casefold():
                _run(case)
    if options.only in ("", "ending"):
        ending.show(setting.peers.remuda)
    if options.only in ("", "space"):
        _show_space(rows)
    if options.only in ("", "planning"):
        planning.show()
    if options.only in ("", "footprint"):
        _show_footprint()
    setting.peers.close()
    print(f"\nin all {duration(time.perf_counter() - started)}")
    return 0


def _run(case: Case) -> None:
    if case.same_answers:
        sizes = {name: size_of(contender()) for name, contender in case.contenders.items()}
        if len(set(sizes.values())) > 1:
            raise AssertionError(f"{case.name}: answers of different size: {sizes}")
    print(line(case.name, interleave(case.contenders)), flush=True)


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
    with_remuda, bare = footprint.import_seconds()
    print(f"\nimport remuda: {duration(with_remuda - bare)} beyond the interpreter's own {duration(bare)}")
    unwanted = footprint.modules_that_should_be_absent()
    print(f"which loads {', '.join(unwanted) if unwanted else 'neither pyspark nor pandas'}")
    print("\nlines of code")
    lines = footprint.lines_by_package()
    for name, count in {**lines, "in all": sum(lines.values())}.items():
        print(f"  {name:<14} {count:>7,}")


if __name__ == "__main__":
    sys.exit(main())
