"""What may be written after `remuda`, and which function each of it runs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import remuda
from remuda.cli.output import printable
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEMO_ROWS = 1_000_000
SMALLEST_DEMO = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status is 0 where all went well, 1 after an error, 2 for wrong arguments."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        # `remuda bench` has a parser of its own, which is imported, with the benchmarks, only where it runs.
        return _run_benchmarks(given[1:]) if given[:1] == ["bench"] else _run(parser().parse_args(given))
    except RemudaError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    # Each command imports what it needs when it runs: `remuda --help` answers at once.
    match options.command:
        case "sql":
            from remuda.cli.script import run_script

            return run_script(options.folder, options.execute, options.format)
        case "check":
            from remuda.cli.script import run_check

            return run_check(options.path)
        case "demo":
            from remuda.cli.demo import run_demo

            return run_demo(options.rows, with_spark=options.spark)
        case "bench":
            raise RemudaError(
                "`bench` takes no options before it: write `remuda bench`, then its options", sqlstate="22023"
            )
        case _:
            from remuda.cli.shell import run_shell

            return run_shell(options.folder)


def _run_benchmarks(arguments: Sequence[str]) -> int:
    from remuda.bench.arguments import main as run_benchmarks

    return run_benchmarks(arguments)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="remuda",
        description="A SQL engine over partitioned, keyed, indexed maps. Without a command: a shell.",
    )
    top.add_argument("--version", action="version", version=f"remuda {remuda.__version__}")
    _add_folder(top)
    commands = top.add_subparsers(dest="command", metavar="command")

    sql = commands.add_parser("sql", help="run statements and print what they answer")
    _add_folder(sql)
    sql.add_argument("-c", "--execute", metavar="SQL", help="the statements; read from standard input if absent")
    sql.add_argument("-f", "--format", choices=["table", "csv", "json"], default="table", help="default: table")

    check = commands.add_parser("check", help="read every file of a folder and say what is damaged")
    check.add_argument("path", help="the folder of the maps")

    demo = commands.add_parser("demo", help="show the engine on a million rows, with plain Spark beside it")
    demo.add_argument("--rows", type=_demo_rows, default=DEMO_ROWS, metavar="N", help=f"default: {DEMO_ROWS:,}")
    demo.add_argument("--no-spark", dest="spark", action="store_false", help="only the embedded engine: no Java")

    commands.add_parser("bench", help="measure Remuda beside its peers: `remuda bench --help`")
    return top


def _add_folder(target: argparse.ArgumentParser) -> None:
    # SUPPRESS keeps `remuda -d folder sql` from being overwritten by the default of the sub-command.
    suppress = target.prog != "remuda"
    default = argparse.SUPPRESS if suppress else None
    target.add_argument("-d", "--folder", default=default, help="the folder of the maps; without one, in memory")


def _demo_rows(text: str) -> int:
    rows = int(text.replace(",", "").replace("_", ""))
    if rows < SMALLEST_DEMO:
        raise argparse.ArgumentTypeError(f"at least {SMALLEST_DEMO:,}")
    return rows
