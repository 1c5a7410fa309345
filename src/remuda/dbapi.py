"""The Python database interface (PEP 249) over a grid, for tools that speak it.

    connection = remuda.dbapi.connect("shop.remuda")
    cursor = connection.cursor()
    cursor.execute("SELECT id, amount FROM orders WHERE customer = ?", ["C1"])
    cursor.fetchall()

Every statement is a transaction of its own: `commit` has nothing left to do, and `rollback` is refused rather than
silently keeping what was written. Connections of one process to the same folder share one grid; each has settings of
its own.
"""

from __future__ import annotations

import os
import threading
import time as _time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from remuda import errors
from remuda.grid import Grid, open_grid
from remuda.types import Kind

if TYPE_CHECKING:
    from types import TracebackType

    from remuda.grid import Result, Session
    from remuda.types import SqlType

apilevel = "2.0"
threadsafety = 2
"""Threads may share the module and connections; each uses cursors of its own."""
paramstyle = "qmark"
"""`:name` with a mapping is understood as well."""

Date, Time, Timestamp = date, time, datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802  (PEP 249's name)
    return date(*_time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> time:  # noqa: N802
    return time(*_time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802
    return datetime(*_time.localtime(ticks)[:6])


class TypeObject:
    """A family of types: what a column's type in `description` is compared with."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        return other is self or getattr(other, "kind", None) in self._kinds

    def __hash__(self) -> int:
        return hash(self._kinds)


STRING = TypeObject(Kind.VARCHAR)
BINARY = TypeObject(Kind.VARBINARY)
NUMBER = TypeObject(
    Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.REAL, Kind.DOUBLE
)
DATETIME = TypeObject(Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ)
ROWID = TypeObject()


class Warning(Exception):  # noqa: A001, N818  (PEP 249's name)
    pass


class Error(Exception):
    """Its `__cause__` is the grid's own error, with position and suggestion.

    `sqlstate` and `code` are those of that error; None where this module itself refuses a call.
    """

    sqlstate: str | None = None
    code: errors.ErrorCode | None = None


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


_BY_STATE_CLASS: dict[str, type[Error]] = {
    "07": ProgrammingError,
    "08": OperationalError,
    "0A": NotSupportedError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "25": OperationalError,
    "3F": ProgrammingError,
    "40": OperationalError,
    "42": ProgrammingError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "XX": InternalError,
}
"""The exception of PEP 249 by the first two characters of the SQLSTATE, as PostgreSQL's drivers have it."""


def _translated(error: errors.RemudaError) -> Error:
    told = _BY_STATE_CLASS[error.sqlstate[:2]](str(error))
    told.sqlstate, told.code = error.sqlstate, error.code
    return told


@contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except errors.RemudaError as error:
        raise _translated(error) from error


class _SharedGrids:
    """The grids that connections have opened, by folder: a folder has one writer, a program many connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[Grid, int] = {}
        self._by_path: dict[str, Grid] = {}

    def take(self, path: str | None, options: dict[str, Any]) -> Grid:
        with self._lock:
            grid = None if path is None else self._by_path.get(path)
            if grid is not None and options:
                raise InterfaceError(f"{path} is open already: its options can not be chosen again")
            if grid is None:
                grid = open_grid(path, **options)
                if path is not None:
                    self._by_path[path] = grid
            self._users[grid] = self._users.get(grid, 0) + 1
            return grid

    def give_back(self, grid: Grid) -> None:
        with self._lock:
            self._users[grid] -= 1
            if self._users[grid]:
                return
            del self._users[grid]
            self._by_path = {path: known for path, known in self._by_path.items() if known is not grid}
        grid.close()

    def leave_at_fork(self) -> None:
        """Leave the grids of the parent in a forked process: new connections open grids of their own."""
        self._lock = threading.Lock()
        self._by_path = {}


_shared = _SharedGrids()
os.register_at_fork(after_in_child=_shared.leave_at_fork)


def connect(database: str | Path | Grid | None = None, **options: Any) -> Connection:
    """Connect to a folder (created if absent), to an open grid, or to a new grid in memory.

    `options` are those of `remuda.open`. A grid that was given stays open when the connection is closed.
    """
    if isinstance(database, Grid):
        return Connection(database, owned=False)
    with _translating():
        if database == "":
            raise errors.option_error("the path is empty")
        path = None if database is None or database == ":memory:" else str(database)
        if path is not None and "://" not in path:
            path = str(Path(path).expanduser().absolute())
        return Connection(_shared.take(path, options), owned=True)


class Connection:
    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    autocommit = True

    def __init__(self, grid: Grid, *, owned: bool) -> None:
        self._grid: Grid | None = grid
        self._owned = owned
        self.session = grid.session()
        """The settings of this connection: SET changes those of no other."""

    @property
    def grid(self) -> Grid:
        if self._grid is None:
            raise ProgrammingError("the connection is closed")
        return self._grid

    def cursor(self) -> Cursor:
        _ = self.grid
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: every statement has been committed by the time it returns."""
        _ = self.grid

    def rollback(self) -> None:
        _ = self.grid
        raise NotSupportedError("every statement is a transaction of its own: there is nothing to roll back")

    def close(self) -> None:
        grid = self.grid
        self._grid = None
        self.session.close()
        if self._owned:
            _shared.give_back(grid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._grid is not None:
            self.close()


class Cursor:
    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._result: Result | None = None
        self._closed = False
        self.rowcount = -1
        """Rows that the last statement changed; -1 after a query: they are not counted before they are read."""

    @property
    def description(self) -> list[tuple[str, SqlType, None, None, int | None, int | None, bool]] | None:
        """Name, type and nullability of each result column; None after a statement without rows."""
        if self._result is None or not self._result.columns:
            return None
        return [
            (column.name, column.type, None, None, *_digits(column.type), column.nullable)
            for column in self._result.columns
        ]

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Self:
        session = self._open_session()
        self._forget_result()
        if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence | Mapping):
            raise ProgrammingError(f"parameters are a sequence or a mapping, not {errors.kind_of(parameters)}")
        with _translating():
            if isinstance(parameters, Mapping):
                self._result = session.execute(operation, (), parameters)
            else:
                self._result = session.sql(operation, *parameters)
        self.rowcount = self._result.update_count
        return self

    def executemany(self, operation: str, parameter_rows: Sequence[Sequence[Any] | Mapping[str, Any]]) -> Self:
        """Runs the statement once for each row of parameters; each of them is committed on its own."""
        count = 0
        for parameters in parameter_rows:
            self.execute(operation, parameters)
            if self.description is not None:
                raise ProgrammingError("executemany is for statements that return no rows")
            count += max(0, self.rowcount)
        self.rowcount = count
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        with _translating():
            return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> Sequence[tuple[Any, ...]]:
        with _translating():
            return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        with _translating():
            rows = self._rows()
            return [] if rows.was_read else rows.fetchall()

    def fetch_arrow_table(self) -> Any:
        """Fetch the remaining rows as a `pyarrow.Table`, an extension of PEP 249."""
        with _translating():
            return self._rows().to_arrow()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Parameters need no declaration."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are never cut."""

    def close(self) -> None:
        self._open_session()
        self._forget_result()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            self.close()

    def _open_session(self) -> Session:
        if self._closed:
            raise ProgrammingError("the cursor is closed")
        _ = self.connection.grid
        return self.connection.session

    def _forget_result(self) -> None:
        if self._result is not None:
            self._result.close()
        self._result = None
        self.rowcount = -1

    def _rows(self) -> Result:
        self._open_session()
        if self._result is None or not self._result.columns:
            raise ProgrammingError("there are no rows to fetch: the last statement was not a query")
        return self._result


def _digits(type_: SqlType) -> tuple[int | None, int | None]:
    return (type_.precision, type_.scale) if type_.kind is Kind.DECIMAL else (None, None)
