"""SQL in notebooks: `%load_ext remuda` adds `%remuda`, which opens a grid, and `%sql` and `%%sql`, which query it.

    %remuda shop.remuda                      a folder; --create where it does not exist yet
    %sql SELECT * FROM orders WHERE id = :order_id
    %%sql --pandas totals <<
    SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer

A parameter `:name` has the value of the Python variable of that name: it is bound, never put into the text.
"""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand

from remuda.errors import RemudaError, SqlError, data_error
from remuda.grid import Grid, Result, Session, open_grid
from remuda.sql import split_script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.sql import ScriptStatement

FRAMES = {"--pandas": "to_pandas", "--polars": "to_polars", "--arrow": "to_arrow"}
"""Options of `%sql`, and the method of a result that gives what they ask for."""

_LINE = re.compile(r"\s*(?P<options>(?:--[a-z-]+(?:\s+|$))*)(?:(?P<name>[^\W\d]\w*)\s*<<)?(?P<text>.*)", re.DOTALL)

_USAGE = "%remuda [--create] [--read-only] [--members N] [PATH or the name of a variable that is a grid]"


def load(shell: Any) -> None:
    """Add the magics to a shell."""
    shell.register_magics(SqlMagics(shell))


def unload(shell: Any) -> None:
    """Close the grid that the magics have opened."""
    magics = shell.magics_manager.registry.get(SqlMagics.__name__)
    if isinstance(magics, SqlMagics):
        magics.disconnect()


@magics_class
class SqlMagics(Magics):
    """The magics of one shell, with the session that they use: of a grid in memory unless `%remuda` names another."""

    _opened: Grid | None = None
    """The grid that is closed with the connection; one that the user has opened is not."""
    _session: Session | None = None

    @line_magic
    def remuda(self, line: str) -> Grid | Session | None:
        """Open a grid for `%sql`: `%remuda PATH`, or `%remuda name` for a variable that is a grid.

        `--create` makes a folder that does not exist, `--read-only` changes nothing, `--members N` shares the work
        between so many members. Without a name the grid is in memory.
        """
        with _shown_without_traceback():
            return self._connect(line)

    @no_var_expand
    @line_cell_magic
    def sql(self, line: str, cell: str | None = None) -> Any:
        """Run SQL: `%sql SELECT ...`, or a cell `%%sql` of statements with semicolons, of which the last is shown.

        `--pandas`, `--polars` or `--arrow` in front makes the result a frame or a table, `name <<` puts it into a
        variable. A parameter `:name` has the value of the Python variable.
        """
        found = _LINE.fullmatch(line)
        assert found is not None, "the pattern matches every text"
        options = found["options"].split()
        unknown = [option for option in options if option not in FRAMES]
        if unknown or len(options) > 1:
            raise UsageError(f"%sql takes one of {', '.join(FRAMES)}, not {' '.join(unknown or options)}")
        text = found["text"].strip() if cell is None else f"{found['text'].strip()}\n{cell}".lstrip("\n")
        with _shown_without_traceback():
            value = self._run(text)
            if options and isinstance(value, Result):
                value = getattr(value, FRAMES[options[0]])()
        if found["name"] is None:
            return value
        self._variables[found["name"]] = value
        return None

    @property
    def _variables(self) -> dict[str, Any]:
        """The variables of the notebook."""
        assert self.shell is not None, "magics are registered with a shell"
        variables: dict[str, Any] = self.shell.user_ns
        return variables

    def disconnect(self) -> None:
        """Close the grid, if these magics have opened it."""
        opened, self._opened, self._session = self._opened, None, None
        if opened is not None:
            opened.close()

    def _connect(self, line: str) -> Grid | Session | None:
        options, names = _connection_options(line)
        if not names and not options:
            return self._opened if self._session is None else self._opened or self._session
        known = self._variables.get(names[0]) if names else None
        if isinstance(known, Grid | Session):
            if options:
                raise UsageError(f"{names[0]} is open already: {_USAGE}")
            self.disconnect()
            self._session = known if isinstance(known, Session) else known.session()
            return known
        create = options.pop("create", False)
        path = names[0] if names else None
        if path is not None and not create and "://" not in path and not Path(path).expanduser().exists():
            raise RemudaError(
                f"there is neither a folder nor a grid called {path}. New folder: %remuda --create {path}",
                sqlstate="58P01",
            )
        opened = open_grid(path, **options)
        self.disconnect()
        self._opened, self._session = opened, opened.session()
        return opened

    def _run(self, text: str) -> Any:
        """Run all statements of a text; return the value of the last one."""
        statements = _split(text)
        if not statements:
            raise UsageError("%sql needs a statement")
        if self._session is None:
            self._connect("--members 1")
        assert self._session is not None, "a connection was made"
        value: Any = None
        for statement in statements:
            if isinstance(value, Result):
                value.close()
            values = self._values(statement)
            run = self._session.explain if statement.is_explain else self._session.sql
            value = run(statement.text, *([values] if values else []))
        if isinstance(value, Result) and value.columns:
            value.peek(1)  # an error of the first rows fails the cell, and not its display
        return value

    def _values(self, statement: ScriptStatement) -> dict[str, Any]:
        """Return the values of the Python variables that a statement names."""
        values: dict[str, Any] = {}
        for name, place in statement.parameters.items():
            if name not in self._variables:
                message = f"there is no Python variable called {name}"
                raise data_error(message, span=place).with_text(statement.text)
            values[name] = self._variables[name]
        return values


def _split(text: str) -> list[ScriptStatement]:
    try:
        return split_script(text)
    except SqlError as error:
        raise error.with_text(text) from error.__cause__


def _connection_options(line: str) -> tuple[dict[str, Any], list[str]]:
    """Return the options of `%remuda` and its argument, which is at most one."""
    options: dict[str, Any] = {}
    names: list[str] = []
    words = iter(shlex.split(line))
    for word in words:
        match word:
            case "--create":
                options["create"] = True
            case "--read-only":
                options["read_only"] = True
            case "--members" if (count := next(words, "")).isdecimal():
                options["members"] = int(count)
            case _ if word.startswith("-") or names:
                raise UsageError(_USAGE)
            case _:
                names.append(word)
    return options, names


@contextmanager
def _shown_without_traceback() -> Iterator[None]:
    """Have IPython print errors of Remuda as they are, with their caret: a cell of SQL has no lines of Python."""
    try:
        yield
    except RemudaError as error:
        message = str(error)
        error.__dict__["_render_traceback_"] = lambda: message.split("\n")
        raise
