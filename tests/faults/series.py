"""A series of statements of all kinds, each with its effect on a plain model of the store.

The model knows nothing of files: it has the rows of each table, its indexes, and the views. A statement that was
acknowledged has its effect, one that was refused has none, and of one whose outcome is unknown both are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

import remuda
from remuda.errors import RemudaError
from remuda.optimizer import cost
from remuda.storage.folder import kept_versions
from remuda.storage.load import map_load, segment_cut

Row = tuple[int, str, int]
Batch = tuple[str, int]

GROUP_BYTES = 1_000
"""Of a partition group: some dozen rows are split into groups."""


@dataclass(frozen=True, slots=True)
class Table:
    rows: frozenset[Row] = frozenset()
    indexes: frozenset[str] = frozenset()
    batches: frozenset[Batch] = frozenset()
    """The last batch of each stream."""

    def having(self, rows: Iterable[Row]) -> Table:
        """With these rows in the place of those with their keys."""
        by_key = {row[0]: row for row in self.rows} | {row[0]: row for row in rows}
        return replace(self, rows=frozenset(by_key.values()))

    def where(self, keeps: Callable[[Row], bool]) -> Table:
        return replace(self, rows=frozenset(row for row in self.rows if keeps(row)))


@dataclass(frozen=True, slots=True)
class State:
    """What a store holds. Equal states are equal stores."""

    tables: frozenset[tuple[str, Table]] = frozenset()
    views: frozenset[str] = frozenset()

    def table(self, name: str) -> Table:
        return dict(self.tables)[name]

    def with_table(self, name: str, table: Table) -> State:
        return replace(self, tables=frozenset((dict(self.tables) | {name: table}).items()))

    def without(self, name: str) -> State:
        return replace(self, tables=frozenset((key, table) for key, table in self.tables if key != name))


@dataclass(frozen=True, slots=True)
class Statement:
    """`effect` raises `KeyError` in a state in which the statement makes no sense: then it is not run."""

    name: str
    run: Callable[[Any], object]
    effect: Callable[[State], State]


def rows_of(numbers: Iterable[int], text: str) -> list[Row]:
    return [(number, f"{text} {number}" + "." * 50, number % 3) for number in numbers]


def arrow_table(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(
        [pa.array(columns[0], pa.int64()), pa.array(columns[1]), pa.array(columns[2], pa.int64())], ["id", "v", "n"]
    )


def _insert(table: str, rows: list[Row]) -> Statement:
    values = ", ".join(f"({key}, '{text}', {number})" for key, text, number in rows)
    return Statement(
        f"insert into {table}",
        lambda grid: grid.sql(f"INSERT INTO {table} VALUES {values}"),
        lambda state: state.with_table(table, state.table(table).having(rows)),
    )


def _load(table: str, rows: list[Row], mode: str) -> Statement:
    return Statement(
        f"load {table}, {mode}",
        lambda grid: grid.load(table, arrow_table(rows), mode),
        lambda state: state.with_table(
            table,
            (replace(state.table(table), rows=frozenset()) if mode == "replace" else state.table(table)).having(rows),
        ),
    )


def _create(table: str) -> Statement:
    return Statement(
        f"create {table}",
        lambda grid: grid.sql(f"CREATE TABLE {table} (id BIGINT, v VARCHAR, n BIGINT, PRIMARY KEY (id))"),
        lambda state: state.with_table(table, Table()),
    )


def _put(table: str, row: Row) -> Statement:
    return Statement(
        f"put into {table}",
        lambda grid: grid.map(table).set(row[0], row[1:]),
        lambda state: state.with_table(table, state.table(table).having([row])),
    )


def _delete(table: str, below: int) -> Statement:
    return Statement(
        f"delete from {table}",
        lambda grid: grid.sql(f"DELETE FROM {table} WHERE id < {below}"),
        lambda state: state.with_table(table, state.table(table).where(lambda row: row[0] >= below)),
    )


def _update(table: str, number: int) -> Statement:
    return Statement(
        f"update {table}",
        lambda grid: grid.sql(f"UPDATE {table} SET v = 'updated {number}' WHERE n = 1"),
        lambda state: state.with_table(
            table,
            state.table(table).having(
                [(key, f"updated {number}", n) for key, _, n in state.table(table).rows if n == 1]
            ),
        ),
    )


def _copy(source: str, table: str, by: int) -> Statement:
    return Statement(
        f"insert into {table} from {source}",
        lambda grid: grid.sql(f"INSERT INTO {table} SELECT id + {by}, v, n FROM {source}"),
        lambda state: state.with_table(
            table, state.table(table).having([(key + by, text, n) for key, text, n in state.table(source).rows])
        ),
    )


def _of_many_rows(statement: Statement) -> Statement:
    """The statement as if its rows were many: it commits segments and deletion vectors."""

    def run(grid: Any) -> object:
        before, cost.SEGMENT_START = cost.SEGMENT_START, 0.0
        try:
            return statement.run(grid)
        finally:
            cost.SEGMENT_START = before

    return replace(statement, name=f"{statement.name}, many rows", run=run)


def _create_as(table: str, rows: list[Row]) -> Statement:
    """Creates a table with rows in one commit: its first version has them."""
    return Statement(
        f"create {table} with rows",
        lambda grid: grid.load(table, arrow_table(rows), key="id"),
        lambda state: _created(state, table, rows),
    )


def _created(state: State, table: str, rows: list[Row]) -> State:
    if table in dict(state.tables):
        raise KeyError(table)
    return state.with_table(table, Table(frozenset(rows)))


def _apply(table: str, upserts: list[Row], deletes: list[int], batch: Batch) -> Statement:
    def run(grid: Any) -> object:
        rows = [*upserts, *((key, "gone", 0) for key in deletes)]
        words = ["u"] * len(upserts) + ["d"] * len(deletes)
        changes = arrow_table(rows).append_column("op", pa.array(words))
        return grid.load(table, changes, mode="apply", operation="op", batch_id=batch)

    return Statement(
        f"apply to {table}, batch {batch[1]}",
        run,
        lambda state: state.with_table(table, _applied(state.table(table), upserts, deletes, batch)),
    )


def _applied(table: Table, upserts: list[Row], deletes: list[int], batch: Batch) -> Table:
    if any(stream == batch[0] and number >= batch[1] for stream, number in table.batches):
        return table
    others = frozenset(each for each in table.batches if each[0] != batch[0])
    return replace(table.having(upserts).where(lambda row: row[0] not in deletes), batches=others | {batch})


def _restore(table: str, rows: list[Row]) -> Statement:
    """Restores the version that has these rows, if that could be kept."""

    def run(grid: Any) -> object:
        for version, *_ in grid.sql(f"SHOW VERSIONS {table}").fetchall():
            if set(grid.sql(f"SELECT id, v, n FROM {table} FOR VERSION AS OF {version}").fetchall()) == set(rows):
                return grid.sql(f"RESTORE TABLE {table} TO VERSION {version}")
        raise RemudaError("the version is not kept")

    return Statement(
        f"restore {table}",
        run,
        lambda state: state.with_table(table, replace(state.table(table), rows=frozenset(rows))),
    )


def _unchanged(state: State) -> State:
    return state


def _maintain(statement: str) -> Statement:
    """A statement that changes no row."""
    return Statement(statement.lower(), lambda grid: grid.sql(statement), _unchanged)


_CHECKPOINT = _maintain("CHECKPOINT")
CLOSE = Statement("close", lambda grid: grid.close(), _unchanged)

SAVING = (_CHECKPOINT.name, CLOSE.name)
"""Statements after which everything is durable, at any level."""

_FIRST = rows_of(range(40), "created")

SERIES: tuple[Statement, ...] = (
    _create("a"),
    _insert("a", rows_of(range(4), "first")),
    _put("a", (10, "put", 1)),
    _update("a", 1),
    _delete("a", 1),
    _load("a", rows_of(range(2, 40), "loaded"), "upsert"),
    _insert("a", rows_of(range(50, 53), "second")),
    Statement(
        "create index",
        lambda grid: grid.sql("CREATE INDEX a_n ON a (n)"),
        lambda state: state.with_table("a", replace(state.table("a"), indexes=state.table("a").indexes | {"a_n"})),
    ),
    _put("a", (11, "put again", 1)),
    _CHECKPOINT,
    Statement(
        "create b as",
        lambda grid: grid.sql("CREATE TABLE b (PRIMARY KEY (id)) AS SELECT id, v, n FROM a WHERE n <> 2"),
        lambda state: state.with_table("b", Table(state.table("a").where(lambda row: row[2] != 2).rows)),
    ),
    _insert("b", rows_of(range(100, 103), "third")),
    Statement(
        "truncate b",
        lambda grid: grid.sql("TRUNCATE TABLE b"),
        lambda state: state.with_table("b", replace(state.table("b"), rows=frozenset())),
    ),
    _insert("b", rows_of(range(110, 113), "fourth")),
    Statement(
        "create view",
        lambda grid: grid.sql("CREATE VIEW c AS SELECT id FROM a"),
        lambda state: _with_view(state, "c", "a"),
    ),
    _update("a", 2),
    Statement(
        "drop index",
        lambda grid: grid.sql("DROP INDEX a_n ON a"),
        lambda state: state.with_table("a", replace(state.table("a"), indexes=frozenset(_removed(state, "a", "a_n")))),
    ),
    _delete("a", 20),
    _of_many_rows(_copy("b", "a", 1000)),
    _put("a", (12, "put between", 1)),
    _of_many_rows(_update("a", 3)),
    _of_many_rows(_delete("a", 30)),
    _CHECKPOINT,
    _insert("b", rows_of(range(120, 122), "fifth")),
    CLOSE,
    _insert("a", rows_of(range(200, 203), "sixth")),
    Statement("drop b", lambda grid: grid.sql("DROP TABLE b"), lambda state: _dropped(state, "b")),
    _load("a", rows_of(range(300, 320), "replaced"), "replace"),
    _create("b"),
    _insert("b", rows_of(range(3), "seventh")),
    _put("a", (12, "last", 2)),
    CLOSE,
    _create_as("d", _FIRST),
    _apply("d", rows_of(range(25, 60), "applied"), [3, 4, 99], ("feed", 1)),
    _put("d", (30, "put after it", 1)),
    _apply("d", rows_of(range(25, 60), "applied"), [3, 4, 99], ("feed", 1)),
    _maintain("OPTIMIZE d"),
    _delete("d", 20),
    _CHECKPOINT,
    _load("d", rows_of(range(50, 90), "second load"), "upsert"),
    _maintain("VACUUM"),
    _put("d", (31, "before it is restored", 1)),
    _restore("d", _FIRST),
    _put("d", (7, "after it was restored", 1)),
    _apply("d", rows_of(range(5), "second batch"), [5], ("feed", 2)),
    _maintain("OPTIMIZE a"),
    _delete("d", 1000),
    # The second one finds nothing to flush, and commits what the first has flushed if that could not commit.
    _CHECKPOINT,
    _CHECKPOINT,
    CLOSE,
)


def _removed(state: State, table: str, index: str) -> set[str]:
    if index not in state.table(table).indexes:
        raise KeyError(index)
    return set(state.table(table).indexes - {index})


def _with_view(state: State, view: str, table: str) -> State:
    state.table(table)
    return replace(state, views=state.views | {view})


def _dropped(state: State, table: str) -> State:
    state.table(table)
    return state.without(table)


def state_of(grid: Any) -> State:
    """What a store holds, read by queries, and by key for every row."""
    state = State(views=frozenset(view.name for view in grid.store.catalog.views.values()))
    for definition in grid.store.catalog.maps.values():
        rows = frozenset((row[0], row[1], row[2]) for row in grid.sql(f"SELECT id, v, n FROM {definition.name}"))
        found = grid.map(definition.name)
        for key, text, number in rows:
            assert tuple(found.get(key))[-2:] == (text, number), f"the row {key} of {definition.name}"
        for number in range(3):
            by_index = {row[0] for row in grid.sql(f"SELECT id FROM {definition.name} WHERE n = {number}")}
            assert by_index == {row[0] for row in rows if row[2] == number}, f"an index of {definition.name}"
        indexes = frozenset(index.name for index in definition.indexes)
        batches = frozenset(grid.store.map(definition).state.batches.pairs())
        state = state.with_table(definition.name, Table(rows, indexes, batches))
    return state


def effects(states: Iterable[State], statement: Statement) -> set[State]:
    """The states after the statement; those in which it makes no sense stay as they are."""
    after = set()
    for state in states:
        try:
            after.add(statement.effect(state))
        except KeyError:
            after.add(state)
    return after


def open_store(path: str, durability: str) -> Any:
    """Open a store in which loads make segments, however small they are, versions are given up, and maps are split into
    groups but with the durability `os`. For processes of their own."""
    map_load.SMALL_LOAD = 0
    kept_versions.MOST_VERSIONS = 20
    if durability != "os":
        segment_cut.GROUP_BYTES = GROUP_BYTES
    return remuda.open(path, partitions=3, durability=durability)
