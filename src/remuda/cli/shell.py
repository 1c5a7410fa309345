r"""The interactive shell: statements over several lines up to `;`, history, a few commands that begin with `\`."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.cli.output import as_table, counted, printable
from remuda.cli.script import is_blank, run_script, run_statement, show_statement, split
from remuda.durations import duration
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.grid import Grid, Session

# What the Tab key offers in the shell: keywords, maps and views, their columns, and the shell's own commands.


DELIMITERS = " \t\n()=<>,;*+-/|%"
"""Between these stand the words that are completed. A dot is none: `orders.am` is one word."""

COMMANDS = ("\\d", "\\rows", "\\timing", "\\q", "\\?")

# fmt: off
KEYWORDS = (
    "ALL", "ANALYZE", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CHECK", "CHECKPOINT", "COPY", "COUNT",
    "CREATE", "CROSS", "CURRENT_DATE", "CURRENT_TIMESTAMP", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE",
    "END", "EXCEPT", "EXISTS", "EXPLAIN", "FALSE", "FILTER", "FROM", "FULL", "GROUP", "HASH", "HAVING", "ILIKE", "IN",
    "INDEX", "INNER", "INSERT", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LATERAL", "LEFT", "LIKE",
    "LIMIT", "NOT", "NULL", "NULLS", "OFFSET", "ON", "OR", "ORDER", "OVER", "PARTITION", "PRIMARY", "QUALIFY",
    "RECURSIVE", "REPLICATED", "RIGHT", "ROLLUP", "SELECT", "SET", "SHOW", "SINK", "SORTED", "TABLE", "THEN", "TRUE",
    "TRUNCATE", "TYPE", "UNION", "UPDATE", "USING", "VALUES", "VIEW", "WHEN", "WHERE", "WINDOW", "WITH", "BIGINT",
    "BOOLEAN", "DATE", "DECIMAL", "DOUBLE", "INTEGER", "JSON", "REAL", "SMALLINT", "TIME", "TIMESTAMP", "TINYINT",
    "VARBINARY", "VARCHAR",
)
# fmt: on


def completions(grid: Grid, word: str, line: str = "") -> list[str]:
    """What a word that has been begun may become: keywords in the case in which it is written, names as they are.

    `line` is all that is typed so far: at its beginning a word may be a command.
    """
    if word.startswith("\\"):
        return [command for command in COMMANDS if line.startswith("\\") and command.startswith(word)]
    keywords = [keyword if word[:1].isupper() else keyword.lower() for keyword in KEYWORDS]
    table, dot, begun = word.rpartition(".")
    if dot:
        return [f"{table}.{name}" for name in _matching(_columns(grid, table), begun)]
    return [*_matching(keywords, word), *_matching(sorted({*_tables(grid), *_columns(grid)}), word)]


def _matching(names: Iterable[str], begun: str) -> list[str]:
    return [name for name in names if name.casefold().startswith(begun.casefold())]


def _tables(grid: Grid) -> Iterable[str]:
    catalog = grid.store.catalog
    yield from (definition.name for definition in catalog.maps.values())
    yield from (view.name for view in catalog.views.values())


def _columns(grid: Grid, table: str | None = None) -> Iterable[str]:
    for definition in grid.store.catalog.maps.values():
        if table is None or definition.name.casefold() == table.casefold():
            yield from (column.name for column in definition.visible_columns)


def install(grid: Grid) -> None:
    """Binds the Tab key, where the terminal has readline."""
    with suppress(ImportError):
        import readline

        found: list[str] = []

        def complete(word: str, number: int) -> str | None:
            if number == 0:
                with suppress(RemudaError):  # a grid that was closed meanwhile
                    found[:] = completions(grid, word, readline.get_line_buffer())
            return found[number] if number < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims(DELIMITERS)
        editline = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if editline else "tab: complete")


PROMPT = "remuda> "
CONTINUED = "   ...> "
HISTORY = Path("~/.remuda_history")
HISTORY_LENGTH = 10_000

MOST_ROWS = 1_000
"""Shown of an answer, unless `\\rows` says otherwise. `remuda sql` prints all."""

HELP = """\
  SQL;          runs a statement; it may go over several lines
  \\d            the maps and views;  \\d name: the columns of one
  \\rows n       shows so many rows of an answer, 1,000 to begin with
  \\timing       shows how long each statement takes, or stops doing so
  \\q            leaves (so does Ctrl-D)
  Tab           completes a keyword, a name, a command
  Ctrl-C        drops what is being typed, or stops the statement that runs"""


_WORDS = {"quit": "\\q", "exit": "\\q", "help": "\\?"}
"""What people type who do not know the commands yet."""


class Shell:
    """One conversation with a grid. Lines go in, text comes out; reading and printing are `run_shell`'s."""

    def __init__(self, grid: Grid) -> None:
        self._session = grid.session()
        self._typed = ""
        self._timing = False
        self._most_rows = MOST_ROWS
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
            return printable(self._command(line.strip()))
        if not self._typed and line.strip().rstrip(";").casefold() in _WORDS:
            return self._command(_WORDS[line.strip().rstrip(";").casefold()])
        statements, self._typed = split(f"{self._typed}\n{line}" if self._typed else line)
        if is_blank(self._typed):
            self._typed = ""
        return printable("\n".join(filter(None, map(self._run, statements))))

    def _run(self, statement: str) -> str:
        started = time.perf_counter()
        try:
            answer = show_statement(self._session, statement, self._most_rows, shutil.get_terminal_size().columns)
        except RemudaError as error:
            return str(error)
        except KeyboardInterrupt:
            return "stopped"
        return f"{answer}\nTime: {duration(time.perf_counter() - started)}" if self._timing else answer

    def _command(self, line: str) -> str:
        match line.rstrip(";").split():
            case ["\\q"]:
                self.finished = True
                return ""
            case ["\\timing"]:
                self._timing = not self._timing
                return f"Timing is {'on' if self._timing else 'off'}."
            case ["\\rows", number] if number.isdecimal():
                self._most_rows = int(number)
                return f"Answers are shown up to {counted(self._most_rows, 'row')}."
            case ["\\d"]:
                return describe_maps(self._session)
            case ["\\d", name]:
                return describe_map(self._session, name)
            case ["\\?" | "\\h" | "\\help"]:
                return HELP
            case [command, *_]:
                return f"{command} is not a command.\n{HELP}"
            case _:
                return HELP


def describe_maps(session: Session) -> str:
    maps = run_statement(session, "SHOW TABLES", "table")
    views = [row["name"] for row in session.sql("SHOW VIEWS")]
    return f"{maps}\nviews: {', '.join(views)}" if views else maps


def describe_map(session: Session, name: str) -> str:
    """The columns of a map, with its key and indexes, or of a view."""
    definition = session.store.catalog.find_map(name, session.search_path)
    if definition is not None:
        columns = [
            (column.name, str(column.type), "key" if column.name in definition.key else "")
            for column in definition.visible_columns
        ]
        indexes = [f"  index {one.name} {one.type.value} ({', '.join(one.columns)})" for one in definition.indexes]
    elif any(row["name"].casefold() == name.casefold() for row in session.sql("SHOW VIEWS")):
        described = session.sql(f'SELECT * FROM "{name}" LIMIT 0')
        columns = [(column.name, str(column.type), "") for column in described.columns]
        indexes = []
    else:
        return f"There is no map {name}. \\d lists them."
    table = as_table(["column", "type", ""], columns).rsplit("\n", 1)[0]
    return "\n".join([table, *indexes])


def run_shell(folder: str | None) -> int:
    """A conversation on a terminal. What is piped in is a script, as `remuda sql` takes it: an error ends it."""
    if not sys.stdin.isatty():
        return run_script(folder, None, "table")
    with remuda.open(folder) as grid:
        shell = Shell(grid)
        _read_history()
        install(grid)
        place = "in memory" if folder is None else str(folder)
        print(f"Remuda {remuda.__version__}, {place}. \\? for help, \\q to leave.")
        while not shell.finished:
            try:
                answer = shell.feed(input(shell.prompt))
            except EOFError:
                print()
                break
            except KeyboardInterrupt:
                print()
                shell.drop()
                continue
            if answer:
                print(answer)
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
