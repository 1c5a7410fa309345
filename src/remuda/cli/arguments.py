"""What may be written after `remuda`, and which function each of it runs."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING, Any

import remuda
from remuda.cli.output import FORMS
from remuda.errors import RemudaError
from remuda.presentation.text_table import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

DEMO_ROWS = 1_000_000
SMALLEST_DEMO = 1_000
YOUNG_OBJECTS = 200_000
"""New objects after which garbage is looked for in the process of the command. The first answer makes 130,000, most of
them by imports: looking through them after 700, the interpreter's number, takes an eighth of the time to it."""
SLEEP_AT_ONCE = "4"
"""Clock ticks, as a power of two, for which numpy's threads for linear algebra spin before they sleep. The engine has
no work for them. By OpenBLAS's own number they take 50 ms of another processor, a sixth of the time to the first
answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status is 0 where all went well, 1 after an error, 2 for wrong arguments."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    is_bench = given[:1] == ["bench"]
    is_process = arguments is None and not is_bench
    if is_process:  # a benchmark measures Remuda as a program has it that imports it
        _start_quickly()
    try:
        # `remuda bench` has a parser of its own, which is imported, with the benchmarks, only where it runs.
        return _run_benchmarks(given[1:]) if is_bench else _run(parse(given))
    except RemudaError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    finally:
        if is_process:
            gc.freeze()  # else the interpreter looks for garbage among all objects before it ends: 5 % of the time


def _start_quickly() -> None:
    """Set what a process may set that is the command's own, before numpy is imported."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", SLEEP_AT_ONCE)


def _run(options: argparse.Namespace) -> int:
    # Each command imports what it needs when it runs: `remuda --help` answers at once.
    match options.command:
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
            return _run_shell(options)


def _run_benchmarks(arguments: Sequence[str]) -> int:
    from remuda.bench.arguments import main as run_benchmarks

    return run_benchmarks(arguments)


def _run_shell(options: argparse.Namespace) -> int:
    """Run what was given with -c and -f, or what is piped in; without either, ask for statements on the terminal."""
    from remuda.cli.opening import find_target
    from remuda.cli.script import STANDARD_INPUT, Input, read_file, run_inputs
    from remuda.cli.shell.options import Options

    inputs = [read_file(text) if kind == "file" else Input(text) for kind, text in options.inputs]
    paths = [*([] if options.folder is None else [options.folder]), *options.paths]
    target = find_target(paths, read_only=options.read_only, create=options.create)
    settings = Options(format=options.format)
    if not inputs and (options.command == "sql" or not sys.stdin.isatty()):
        inputs = [read_file(STANDARD_INPUT)]
    if inputs:
        return run_inputs(target, inputs, settings, keep_going=options.keep_going)
    from remuda.cli.shell.interactive import run_interactive

    return run_interactive(target, settings)


COMMANDS = ("sql", "check", "demo", "bench")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments: of a command, where the first word is one, else those of the shell.

    A folder called `demo` is opened by `remuda ./demo`.
    """
    at = 0
    while at < len(arguments) and arguments[at] in {"-d", "--folder"}:
        at += 2
    first = arguments[at] if at < len(arguments) else None
    if first == "sql":
        return _shell_parser("sql").parse_intermixed_args([*arguments[:at], *arguments[at + 1 :]])
    if first in COMMANDS:
        return _command_parser().parse_args(arguments[at:])
    return _shell_parser().parse_intermixed_args(arguments)


def _shell_parser(command: str | None = None) -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="remuda" if command is None else f"remuda {command}",
        usage=None if command else "remuda [option ...] [folder | file ...]\n       remuda command ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_DESCRIPTION if command is None else "Run statements and print what they answer.",
        epilog=_EPILOG if command is None else None,
    )
    top.set_defaults(command=command)
    top.add_argument("--version", action="version", version=f"remuda {remuda.__version__}")
    top.add_argument("-d", "--folder", help="the folder of the maps; without one, in memory")
    top.add_argument("paths", nargs="*", metavar="path", help="a folder of maps, or files of data")
    _add_inputs(top)
    top.add_argument("--format", choices=FORMS, default="table", help="the form of answers (default: table)")
    top.add_argument("--read-only", action="store_true", help="open the folder beside a process that writes to it")
    top.add_argument("--create", action="store_true", help="create a folder that does not exist without a question")
    top.add_argument(
        "--continue", dest="keep_going", action="store_true", help="go on after a statement that fails; the status is 1"
    )
    return top


_DESCRIPTION = "A SQL engine over partitioned, keyed, indexed maps. Without -c, -f and a pipe: a shell."
_EPILOG = """\
commands:
  sql    run statements and print what they answer
  check  read every file of a folder and say what is damaged
  demo   show the engine on a million rows, with plain Spark beside it
  bench  measure Remuda and its peers

examples:
  remuda                                     a shell, in memory
  remuda shop.remuda                         a shell on the maps of a folder
  remuda sales.parquet                       a shell with the rows of a file as the table sales, in memory
  remuda shop.remuda -c "SELECT 1"           run a statement
  remuda shop.remuda -f script.sql           run a script, up to the first error"""


def _command_parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="remuda")
    commands = top.add_subparsers(dest="command", metavar="command")

    check = commands.add_parser("check", help="read every file of a folder and say what is damaged")
    check.add_argument("path", help="the folder of the maps")

    demo = commands.add_parser("demo", help="show the engine on a million rows, with plain Spark beside it")
    demo.add_argument("--rows", type=_demo_rows, default=DEMO_ROWS, metavar="N", help=f"default: {DEMO_ROWS:,}")
    demo.add_argument("--no-spark", dest="spark", action="store_false", help="only the embedded engine: no Java")

    commands.add_parser("bench", help="measure Remuda beside its peers: `remuda bench --help`")
    return top


def _add_inputs(target: argparse.ArgumentParser) -> None:
    for flags, kind, metavar, meaning in (
        (("-c", "--execute"), "statement", "SQL", "run these statements; may be given several times"),
        (("-f", "--file"), "file", "FILE", "run this script; - is standard input; may be given several times"),
    ):
        target.add_argument(
            *flags, dest="inputs", action=_AppendInput, const=kind, metavar=metavar, help=meaning, default=[]
        )


class _AppendInput(argparse.Action):
    """Keep -c and -f in the order in which they are given."""

    def __call__(
        self, _parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, _option: str | None = None
    ) -> None:
        namespace.inputs = [*namespace.inputs, (self.const, values)]


def _demo_rows(text: str) -> int:
    rows = int(text.replace(",", "").replace("_", ""))
    if rows < SMALLEST_DEMO:
        raise argparse.ArgumentTypeError(f"at least {SMALLEST_DEMO:,}")
    return rows
