"""The names that can be typed: tables with their columns, functions, keywords, settings. All come from SQL."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from remuda.grid import Session


@dataclass(slots=True)
class Names:
    """A snapshot, made with the first question after each statement."""

    keywords: frozenset[str] = frozenset()
    """In upper case."""
    functions: frozenset[str] = frozenset()
    settings: dict[str, str] = field(default_factory=dict)
    """Each with the values that it takes, in words."""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of each map and view."""


class KnownNames:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._names = Names()
        self._stale = True

    def forget(self) -> None:
        """Ask for tables and columns again: a statement may have changed them."""
        self._stale = True

    @property
    def current(self) -> Names:
        if self._stale:
            with suppress(RemudaError):  # a folder that is damaged: its names are not completed
                self._refresh()
            self._stale = False
        return self._names

    def _refresh(self) -> None:
        sql, names = self._session.sql, self._names
        if not names.keywords:
            names.keywords = frozenset(row.word for row in sql("SHOW KEYWORDS"))
            names.functions = frozenset(row.name for row in sql("SHOW FUNCTIONS"))
            names.settings = {row.name: row["values"] for row in sql("SHOW SETTINGS")}
        columns: dict[str, list[str]] = {}
        for schema, table, column in sql(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns ORDER BY ordinal_position"
        ):
            columns.setdefault(table if schema == "public" else f"{schema}.{table}", []).append(column)
        names.tables = {table: tuple(each) for table, each in sorted(columns.items())}
