"""Whatever is decided at execution, the answer is DuckDB's: each decision forced to either side, over the same rows.

Texts are repeated with other values, so that one plan meets both sides; in a grid that writes and in one that only
reads and refreshes; with rows in the log, in segments, in both and in neither; over the rows of now and over those of
an earlier version. A limit of memory has operators spill, and may end a query, but changes no answer.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError
from tests.harness.databases import DuckDatabase
from tests.harness.decision_queries import COLUMNS, KEYS, DecisionQueries, Text
from tests.harness.decisions import DECISIONS, Profile, forced, random_profile

ROWS = (0, 3, 40, 200, 700)
MOST_TEXTS = 16
"""Texts that are asked again and again, while everything below them changes."""
SPILLS, MOST_SPILLED = "exec.memory.SHARES", 100
"""A decision by which every row is spilled, at every level of the hash: many files for few rows."""
MOST_VERSIONS = 3
"""Versions of which the oracle keeps the rows."""
ROOMY, NARROW = ("off", "1GB"), ("60kB", "20kB")
"""Limits of memory: the profile may have operators spill below a gigabyte, and below the others they do in any case."""
OUT_OF_MEMORY = "53200"
SOURCE = re.compile(r"\b(FROM|JOIN) ([fgp])\b( AS \w+)?(?! AS| FOR)")
ARROW = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "DECIMAL(9, 2)": pa.decimal128(9, 2),
    "DECIMAL(38, 3)": pa.decimal128(38, 3),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
MOST_SECONDS = 60
"""A statement that waits for something that does not come is a failure, not a test without an end."""


def comparable(rows: Iterable[Iterable[Any]]) -> list[str]:
    """Numbers by their value, whatever their type; which of two zeros stands for a group of both is not defined."""
    return [repr([_plain(value) for value in row]) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{Decimal(value).normalize():f}"
    return value


class Trial:
    """One map full of rows, in several grids and in DuckDB, under one profile of decisions."""

    def __init__(self, seed: int, folder: Path, profile: Profile | None = None) -> None:
        self.random = Random(seed)
        drawn = random_profile(self.random)
        self.profile = drawn if profile is None else profile
        rows = self.random.choice(ROWS)
        self.queries = DecisionQueries(self.random, min(rows, MOST_SPILLED) if SPILLS in self.profile else rows)
        self.pool: list[Text] = []
        self.oracle = DuckDatabase()
        self.folder = folder if self.random.random() < 0.7 else None
        self.versions: list[int] = []
        self.compared = self.out_of_memory = 0

    def run(self, rounds: int) -> int:
        with forced(self.profile), ExitStack() as stack:
            stack.callback(self.oracle.close)
            members = self.random.choice((1, 1, 1, 3))
            self.writer = stack.enter_context(
                remuda.open(None if self.folder is None else str(self.folder), members=members)
            )
            self.grids = [self.writer]
            self.writer.sql(f"SET timeout = {MOST_SECONDS}")
            self._limit_memory(ROOMY)
            self._define(stack)
            for _ in range(rounds):
                self._round()
        return self.compared

    def _limit_memory(self, limits: tuple[str, ...]) -> None:
        self.limit = self.random.choice(limits)
        self.writer.sql(f"SET memory_limit = '{self.limit}'")

    def _define(self, stack: ExitStack) -> None:
        for statement, option in self.queries.definitions():
            self.writer.sql(statement + option)
            if statement.startswith("CREATE TABLE"):
                self.oracle.execute(statement, [])
        if self.folder is not None:
            self.writer.sql("CREATE TABLE kept (id INTEGER PRIMARY KEY) WITH (retention = '1 day')")
        early = self.random.random() < 0.5
        if early:
            self._open_reader(stack)
        self._refresh()
        self._ask(6)  # plans for maps without rows
        self._fill("g", [self.queries.dimension(number) for number in range(max(2, self.queries.rows // 12))])
        self._fill("p", [self.queries.wide(number) for number in range(self.queries.rows // 4)])
        self._fill("f", [self.queries.fact() for _ in range(self.queries.rows)])
        if not early:
            self._open_reader(stack)

    def _open_reader(self, stack: ExitStack) -> None:
        if self.folder is not None:
            members = self.random.choice((1, 1, 2))
            self.grids.append(stack.enter_context(remuda.open(str(self.folder), read_only=True, members=members)))
            self.grids[-1].sql(f"SET timeout = {MOST_SECONDS}")

    def _fill(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """By a load, by statements, or in part by either."""
        loaded = self.random.choice((0.0, 0.5, 1.0))
        for each in (rows[: round(len(rows) * loaded)], rows[round(len(rows) * loaded) :]):
            if not each:
                continue
            if loaded and each[0] is rows[0]:
                self.writer.load(name, _table(name, each))
            else:
                width = len(KEYS[name])
                self.writer.map(name).put_all(
                    {row[0] if width == 1 else row[:width]: row[width:] for row in each},
                )
            for first in range(0, len(each), 100):
                some = each[first : first + 100]
                places = ", ".join(f"({', '.join('?' for _ in row)})" for row in some)
                self.oracle.execute(f"INSERT INTO {name} VALUES {places}", [value for row in some for value in row])

    def _round(self) -> None:
        match self.random.choice(("change", "change", "change", "checkpoint", "empty", "index", "none")):
            case "change":
                for _ in range(self.random.choice((1, 3))):
                    self._change(self.queries.change())
            case "checkpoint":
                self.writer.checkpoint()
                if self.folder is not None:
                    self._keep_version()
            case "empty":
                self._change(Text("DELETE FROM f", ()))
                self._refresh()
                self._ask(3)
                self._fill("f", [self.queries.fact() for _ in range(self.queries.rows)])
            case "index":
                self.writer.sql("CREATE INDEX IF NOT EXISTS f_b ON f (b) TYPE SORTED")
                self._refresh()
                self._ask(1)
                self.writer.sql("DROP INDEX f_b ON f")
        self._refresh()
        self._ask(self.random.choice((2, 4)))

    def _refresh(self) -> None:
        for grid in self.grids[1:]:
            grid.refresh()

    def _keep_version(self) -> None:
        """Have the oracle keep the rows of the version that was just committed."""
        (newest,) = [row.version for row in self.writer.sql("SHOW VERSIONS") if row.newest]
        if newest in self.versions:
            return
        for name in COLUMNS:
            self.oracle.execute(f"CREATE TABLE {name}_{newest} AS FROM {name}", [])
        self.versions = [*self.versions, newest][-MOST_VERSIONS:]

    def _change(self, text: Text) -> None:
        values = [value() for value in text.values]
        self._limit_memory(ROOMY)
        try:
            expected = self.oracle.execute(text.sql, values)
        except duckdb.Error:
            if text.may_fail:
                with pytest.raises(SqlError):
                    self.writer.sql(text.sql, *values)
                self._compare_rows(text)
            return
        assert self.writer.sql(text.sql, *values).update_count == expected, (text.sql, values, self.profile)
        self._compare_rows(text)
        self.compared += 1

    def _compare_rows(self, text: Text) -> None:
        """Compare all rows of all maps after a statement: whatever it did, it did all of it or nothing."""
        for name in COLUMNS:
            expected = sorted(comparable(self.oracle.query(f"FROM {name}", [])))
            assert sorted(comparable(self.writer.sql(f"SELECT * FROM {name}"))) == expected, (text.sql, name)
        self._limit_memory(ROOMY + NARROW)

    def _ask(self, texts: int) -> None:
        for _ in range(texts):
            if self.random.random() < len(self.pool) / MOST_TEXTS:
                text = self.random.choice(self.pool)
            else:
                text = self.queries.text()
                self.pool.append(text)
            for _ in range(3 if text.values else 1):
                self._compare(text)

    def _compare(self, text: Text) -> None:
        values = [value() for value in text.values]
        sql, asked = text.sql, text.sql
        if self.versions and self.random.random() < 0.25:
            version = self.random.choice(self.versions)
            sql = SOURCE.sub(rf"\1 \2 FOR VERSION AS OF {version}\3", sql)
            asked = SOURCE.sub(lambda found: f"{found[1]} {found[2]}_{version}{found[3] or f' AS {found[2]}'}", asked)
        try:
            expected = comparable(self.oracle.query(asked, values))
        except duckdb.Error:
            return
        for grid in self.grids:
            try:
                found = comparable(grid.sql(sql, *values))
            except SqlError as error:
                if error.sqlstate != OUT_OF_MEMORY or self.limit in ROOMY or grid is not self.writer:
                    raise
                self.out_of_memory += 1
                continue
            if not text.ordered:
                found, expected = sorted(found), sorted(expected)
            assert found == expected, (sql, values, grid is self.writer, self.profile)
            self.compared += 1


def _table(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    types = COLUMNS[name].values()
    arrays = [pa.array(values, ARROW[type_]) for values, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.table(arrays, list(COLUMNS[name]))


def _each_side() -> Iterator[Profile]:
    for decision in DECISIONS:
        for side in range(len(decision.sides)):
            yield {decision.key: side}


def _name(profile: Profile) -> str:
    return ", ".join(f"{key} {side}" for key, side in profile.items())


def test_every_decision_is_there_to_be_forced() -> None:
    """A module that is renamed takes its decisions along: else a profile with one of them tests nothing."""
    for decision in DECISIONS:
        definer = import_module(f"remuda.{decision.module}")
        before = getattr(definer, decision.name)
        for side, value in enumerate(decision.sides):
            with forced({decision.key: side}):
                assert getattr(definer, decision.name) is value
        assert getattr(definer, decision.name) is before


@pytest.mark.parametrize("seed", range(10))
def test_decisions_change_no_answer(seed: int, tmp_path: Path) -> None:
    assert Trial(seed, tmp_path / "grid").run(5) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_decisions_change_no_answer(seed: int, tmp_path: Path) -> None:
    assert Trial(seed, tmp_path / "grid").run(40) > 100


@pytest.mark.slow
@pytest.mark.parametrize("profile", list(_each_side()), ids=_name)
def test_each_side_of_each_decision(profile: Profile, tmp_path: Path) -> None:
    for seed in range(2):
        assert Trial(seed + 1000, tmp_path / f"grid{seed}", profile).run(8) > 10
