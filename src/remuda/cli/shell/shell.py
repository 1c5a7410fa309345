"""`Shell`: runs statements and commands one after the other, and prints what they lead to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from remuda.cli.output import csv_lines, json_objects, render
from remuda.cli.shell.options import Options
from remuda.cli.shell.progress_line import Progress
from remuda.cli.shell.screen import Screen
from remuda.cli.statement_text import Piece, first_word, line_of, split
from remuda.dataclass import dataclass
from remuda.errors import RemudaError, Span, SqlError
from remuda.presentation.durations import duration
from remuda.presentation.text_table import counted, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.grid import Grid, Result

ROWS_AT_ONCE = 4_096
WORDS = {"quit": "\\q", "exit": "\\q", "help": "\\?"}
"""What people type who do not know the commands yet."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text that pieces are cut from; `name` is that of its file, where there is one."""

    text: str
    name: str | None = None


class Shell:
    """One conversation with a grid, in a session of its own."""

    def __init__(
        self, grid: Grid, screen: Screen | None = None, options: Options | None = None, *, place: str = "in memory"
    ) -> None:
        self.grid = grid
        self.session = grid.session()
        self.screen = screen or Screen()
        self.options = options or Options()
        self.place = place
        """Where the maps are, as the user has written it."""
        self.last = ""
        """The statement before, for the commands that take one."""
        self.pending = ""
        """The text that the next prompt begins with."""
        self.depth = 0
        """How many scripts run each other at this moment."""
        self.finished = False
        self.remember: Callable[[str], None] = lambda _: None
        """Adds a statement that was not typed to the history."""

    def run(self, text: str, name: str | None = None, *, keep_going: bool = False) -> bool:
        """Run all that is in a text, and return whether all of it succeeded.

        An error ends it, as what follows was written for the state that the failed statement should have left; with
        `keep_going` the rest is run all the same.
        """
        word = WORDS.get(text.strip().rstrip(";").casefold()) if self.screen.interactive else None
        source = Source(word or text, name)
        pieces, rest = split(source.text)
        succeeded = True
        for piece in (*pieces, *([] if rest is None else [rest])):
            if self.finished:
                break
            if not self._run_piece(piece, source):
                succeeded = False
                if not keep_going:
                    break
        return succeeded

    def _run_piece(self, piece: Piece, source: Source) -> bool:
        try:
            if piece.command is not None:
                from remuda.cli.shell.commands import run_command  # with the first command: most scripts have none

                return run_command(self, piece.command, piece.text)
            self.execute(piece.text)
        except RemudaError as error:
            self.screen.error(_placed(error, piece, source))
            return False
        except KeyboardInterrupt:
            if not self.screen.interactive:
                raise
            self.screen.say("cancelled")
            return False
        return True

    def execute(self, statement: str) -> None:
        """Run one statement and print its answer."""
        self.last = statement
        started = time.perf_counter()
        with Progress(shown=self.screen.shows_progress) as progress, self.session.sql(statement) as result:
            form, is_plan = self.options.format, first_word(statement) == "EXPLAIN"
            streams = bool(result.columns) and form in {"csv", "json"} and not self.screen.is_terminal
            if streams:
                self.screen.stream(_streamed(result, form, progress))
            rows = [] if streams else self._fetch(result, progress)
        if not result.columns:
            self._say_outcome(result.outcome)
        elif is_plan and form not in {"csv", "json"}:
            self._answer("\n".join(printable(str(row[0])) for row in rows))
        elif not streams:
            self._show([column.name for column in result.columns], rows)
        if self.options.timing:
            self.screen.note(f"Time: {duration(time.perf_counter() - started)}")

    def _fetch(self, result: Result, progress: Progress) -> list[tuple[object, ...]]:
        """Return the rows that are shown, and one more where the answer has more."""
        most = self.options.rows if self.screen.interactive and self.screen.is_terminal else None
        rows: list[tuple[object, ...]] = []
        while result.columns and (most is None or len(rows) <= most):
            more = result.fetchmany(ROWS_AT_ONCE if most is None else min(ROWS_AT_ONCE, most + 1 - len(rows)))
            if not more:
                break
            rows += more
            progress.rows = len(rows)
        return rows

    def _show(self, names: list[str], rows: list[tuple[object, ...]]) -> None:
        most = self.options.rows if self.screen.interactive and self.screen.is_terminal else len(rows)
        form = self.options.format
        more = f"(the first {counted(most, 'row')}; \\rows n shows more)" if len(rows) > most else None
        text = render(names, rows[:most], form, self.screen.layout(self.options), more)
        if form in {"csv", "json"}:
            text = printable(text) if self.screen.is_terminal else text
        self._answer(text)
        if more is not None and form not in {"table", "line"}:
            self.screen.note(more)

    def _answer(self, text: str) -> None:
        self.screen.answer(text, pager=self.options.pager)

    def _say_outcome(self, outcome: str) -> None:
        if self.screen.interactive or self.options.format == "table":
            self.screen.say(outcome)


def _streamed(result: Result, form: str, progress: Progress) -> Iterator[str]:
    """Yield the lines of CSV or JSON as the rows come: an answer may be larger than memory."""
    names = [column.name for column in result.columns]

    def rows() -> Iterator[tuple[object, ...]]:
        while more := result.fetchmany(ROWS_AT_ONCE):
            yield from more
            progress.rows += len(more)

    if form == "csv":
        yield from csv_lines([names])
        yield from csv_lines(rows())
        return
    line = ""
    for each in json_objects(names, rows()):
        yield f"{line}," if line else "["
        line = f"  {each}"
    yield from (line, "]") if line else ("[]",)


def _placed(error: RemudaError, piece: Piece, source: Source) -> str:
    """Return the error with its place in the whole text, and with its file and line, where there is one."""
    line = line_of(source.text, piece.start)
    if isinstance(error, SqlError) and error.text == piece.text and error.span is not None:
        error.text = source.text
        error.span = Span(error.span.start + piece.start, error.span.end + piece.start)
        line = line_of(source.text, error.span.start)
    return f"{source.name}:{line}: {error}" if source.name is not None else str(error)
