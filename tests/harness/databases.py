"""What an `.slt` file runs on: Remuda in each of its configurations, and DuckDB, which says what the answers are."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

import remuda
from tests.harness.generated import rows_of
from tests.harness.shuffled import shuffles_for_nothing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Database(Protocol):
    names: frozenset[str]
    """What `skipif` and `onlyif` may call it."""

    def execute(self, sql: str, parameters: Sequence[Any]) -> int | None:
        """Runs a statement; the number of changed rows, where it has one."""

    def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]: ...

    def load(self, map_name: str, query: str) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to run Remuda; none of them may change an answer."""

    name: str
    members: int = 1
    indexes: bool = True
    pruning: bool = True
    folder: bool = False
    """A durable folder, closed and opened again between statements and queries."""
    spark: bool = False
    replicated: str = "none"
    """Which tables are made REPLICATED: none, all, or every second one."""
    shuffle: bool = False
    """Rows meet in Spark's tasks wherever they can, however few they are."""
    partitions: tuple[int | None, ...] = (None,)
    """How many partitions the tables have, in turn; None leaves it to the grid."""


CONFIGURATIONS = (
    Configuration("memory"),
    Configuration("three-members", members=3),
    Configuration("no-indexes", indexes=False),
    Configuration("no-pruning", members=3, pruning=False),
    Configuration("folder", folder=True),
    Configuration("replicated", members=3, replicated="all"),
    Configuration("half-replicated", members=3, replicated="half"),
    Configuration("mixed-partitions", members=3, partitions=(7, None, 1024)),
    Configuration("spark", folder=True, spark=True),
    Configuration("shuffle", folder=True, spark=True, shuffle=True),
)

_CREATE_TABLE = re.compile(r"\s*CREATE\s+TABLE\b.*\)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_OTHER_TABLE = re.compile(r"\b(AS\s*\(?\s*(SELECT|WITH|VALUES|FROM)|PARTITION(ED)?\s+BY|REPLICATED)\b", re.IGNORECASE)
_CREATE_INDEX = re.compile(r"\s*(CREATE|DROP)\s+INDEX\b", re.IGNORECASE)


def replicated(statement: str) -> str:
    """The CREATE TABLE statement for a map that is whole on every member; every other statement as it is.

    >>> replicated("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))"), replicated("CREATE TABLE t AS (SELECT 1 AS id)")
    ('CREATE TABLE t (id BIGINT, PRIMARY KEY (id)) REPLICATED', 'CREATE TABLE t AS (SELECT 1 AS id)')
    """
    if not _CREATE_TABLE.match(statement) or _OTHER_TABLE.search(statement):
        return statement
    return f"{statement.rstrip().removesuffix(';')} REPLICATED"


def divided(statement: str, partitions: int | None) -> str:
    """The CREATE TABLE statement for a map with so many partitions; every other statement as it is.

    >>> divided("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))", 7), divided("CREATE TABLE t AS (SELECT 1 AS id)", 7)
    ('CREATE TABLE t (id BIGINT, PRIMARY KEY (id)) WITH (partitions = 7)', 'CREATE TABLE t AS (SELECT 1 AS id)')
    """
    is_made_of_query = re.search(r"\bAS\s*\(?\s*(SELECT|WITH|VALUES|FROM)\b", statement, re.IGNORECASE)
    if partitions is None or not _CREATE_TABLE.match(statement) or is_made_of_query:
        return statement
    return f"{statement.rstrip().removesuffix(';')} WITH (partitions = {partitions})"


class RemudaDatabase:
    def __init__(self, configuration: Configuration, folder: Path, spark: object = None) -> None:
        self.names = frozenset({"remuda", configuration.name})
        self._configuration = configuration
        self._folder = folder
        self._spark = spark
        self._written = False
        self._tables = 0
        self._grid = self._open()
        self._context = ExitStack()
        if configuration.shuffle:
            self._context.enter_context(shuffles_for_nothing())

    def _open(self) -> Any:
        path = str(self._folder) if self._configuration.folder else None
        grid = remuda.open(path, members=self._configuration.members, spark=self._spark)
        if not self._configuration.pruning:
            grid.sql("SET partition_pruning = off")
        if self._configuration.spark:
            grid.sql("SET engine = spark")
        return grid

    def execute(self, sql: str, parameters: Sequence[Any]) -> int | None:
        if not self._configuration.indexes and _CREATE_INDEX.match(sql):
            return None
        self._written = True
        count: int = self._grid.sql(self._varied(sql), *parameters).update_count
        return count

    def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        self._reopen_if_written()
        return [tuple(row) for row in self._grid.sql(sql, *parameters)]

    def _varied(self, sql: str) -> str:
        self._tables += _CREATE_TABLE.match(sql) is not None
        sql = divided(sql, self._configuration.partitions[self._tables % len(self._configuration.partitions)])
        wanted = {"none": False, "all": True, "half": self._tables % 2 == 1}[self._configuration.replicated]
        return replicated(sql) if wanted else sql

    def load(self, map_name: str, query: str) -> None:
        self._written = True
        self._grid.load(map_name, rows_of(query))

    def close(self) -> None:
        self._context.close()
        self._grid.close()

    def _reopen_if_written(self) -> None:
        if self._configuration.folder and self._written:
            self._grid.close()
            self._grid = self._open()
        self._written = False


_FOR_DUCKDB = (
    (re.compile(r"\s+TYPE\s+(HASH|SORTED)\b", re.IGNORECASE), ""),
    (re.compile(r"\bSINK\s+INTO\b", re.IGNORECASE), "INSERT OR REPLACE INTO"),
    (
        re.compile(r"SET \((\w+), (\w+)\) = \(SELECT ([^,()]+), ([^,()]+) FROM ([^()]+)\)"),
        r"SET \1 = (SELECT \3 FROM \5), \2 = (SELECT \4 FROM \5)",
    ),
)
"""The statements that DuckDB spells in another way."""


class DuckDatabase:
    names = frozenset({"duckdb"})

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        self._connection.execute("SET integer_division = true")

    def execute(self, sql: str, parameters: Sequence[Any]) -> int | None:
        rows = self._run(sql, parameters)
        return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 and isinstance(rows[0][0], int) else None

    def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._run(sql, parameters)

    def query_within(self, sql: str, seconds: float, most_rows: int) -> list[tuple[Any, ...]] | None:
        """Return at most `most_rows` rows of the answer; None where the answer takes longer than `seconds`."""
        timer = Timer(seconds, self._connection.interrupt)
        timer.start()
        try:
            return self._connection.execute(sql).fetchmany(most_rows)
        except duckdb.InterruptException:
            return None
        finally:
            timer.cancel()
            timer.join()

    def load(self, map_name: str, query: str) -> None:
        self._connection.execute(f"INSERT INTO {map_name} BY NAME {query}")

    def close(self) -> None:
        self._connection.close()

    def _run(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        for pattern, replacement in _FOR_DUCKDB:
            sql = pattern.sub(replacement, sql)
        return self._connection.execute(sql, list(parameters)).fetchall()
