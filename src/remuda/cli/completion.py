"""What the Tab key offers in the shell: keywords, maps and views, their columns, and the shell's own commands."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.grid import Grid

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
