"""The interactive shell: statements over several lines up to `;`, history, a few commands that begin with `\\`."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.cli.output import as_table, duration
from remuda.cli.script import run_statement
from remuda.cli.statements import is_blank, split
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from remuda.grid import Grid

PROMPT = "remuda> "
CONTINUED = "   ...> "
HISTORY = Path("~/.remuda_history")
HISTORY_LENGTH = 10_000

HELP = """\
  SQL;          runs a statement; it may go over several lines
  \\d            the maps;  \\d name: the columns of one
  \\timing       shows how long each statement takes, or stops doing so
  \\q            leaves (so does Ctrl-D);  Ctrl-C drops what is being typed"""


class Shell:
    """One conversation with a grid. Lines go in, text comes out; reading and printing are `run_shell`'s."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._typed = ""
        self._timing = False
        self.finished = False

    @property
    def prompt(self) -> str:
        return CONTINUED if self._typed else PROMPT

    def drop(self) -> None:
        """Forgets the statement that was being typed."""
        self._typed = ""

    def feed(self, line: str) -> str:
        """Takes one line and returns what it leads to: an answer, an error with its caret, or nothing yet."""
        if not self._typed and line.strip().startswith("\\"):
            return self._command(line.strip())
        statements, self._typed = split(f"{self._typed}\n{line}" if self._typed else line)
        if is_blank(self._typed):
            self._typed = ""
        return "\n".join(filter(None, map(self._run, statements)))

    def _run(self, statement: str) -> str:
        started = time.perf_counter()
        try:
            answer = run_statement(self._grid, statement, "table")
        except RemudaError as error:
            return str(error)
        return f"{answer}\nTime: {duration(time.perf_counter() - started)}" if self._timing else answer

    def _command(self, line: str) -> str:
        match line.rstrip(";").split():
            case ["\\q"]:
                self.finished = True
                return ""
            case ["\\timing"]:
                self._timing = not self._timing
                return f"Timing is {'on' if self._timing else 'off'}."
            case ["\\d"]:
                return describe_maps(self._grid)
            case ["\\d", name]:
                return describe_map(self._grid, name)
            case ["\\?"] | ["\\h"]:
                return HELP
            case [command, *_]:
                return f"{command} is not a command.\n{HELP}"
            case _:
                return HELP


def describe_maps(grid: Grid) -> str:
    return run_statement(grid, "SHOW TABLES", "table")


def describe_map(grid: Grid, name: str) -> str:
    definition = grid.store.catalog.find_map(name, grid.search_path)
    if definition is None:
        return f"There is no map {name}. \\d lists them."
    columns = [
        (column.name, str(column.type), "key" if column.name in definition.key else "")
        for column in definition.visible_columns
    ]
    table = as_table(["column", "type", ""], columns).rsplit("\n", 1)[0]
    indexes = [f"  index {one.name} {one.kind.value} ({', '.join(one.columns)})" for one in definition.indexes]
    return "\n".join([table, *indexes])


def run_shell(folder: str | None) -> int:
    interactive = sys.stdin.isatty()
    with remuda.open(folder) as grid:
        shell = Shell(grid)
        if interactive:
            _read_history()
            place = "in memory" if folder is None else str(folder)
            print(f"Remuda {remuda.__version__}, {place}. \\? for help, \\q to leave.")
        while not shell.finished:
            try:
                line = input(shell.prompt if interactive else "")
            except EOFError:
                break
            except KeyboardInterrupt:
                print()
                shell.drop()
                continue
            answer = shell.feed(line)
            if answer:
                print(answer)
        if interactive:
            print()
            _write_history()
    return 0


def _read_history() -> None:
    with suppress(ImportError, OSError):  # no readline on this platform, or no history yet
        import readline

        readline.set_history_length(HISTORY_LENGTH)
        readline.read_history_file(HISTORY.expanduser())


def _write_history() -> None:
    with suppress(ImportError, OSError):
        import readline

        readline.write_history_file(HISTORY.expanduser())
