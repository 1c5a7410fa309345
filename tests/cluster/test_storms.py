"""Tables and indexes that come and go under running queries; many threads that read and write the same rows."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.cluster.trouble import Trouble
from tests.harness.threads import run_together

ROWS = 20_000
GROUPS = 100
GONE = {ErrorCode.OBJECT_NOT_FOUND, ErrorCode.MAP_DESTROYED}
"""What a user may be told of a table that is dropped and created over and over; never a wrong answer."""


def table_of(rows: int) -> pa.Table:
    return pa.table({"id": range(rows), "h": [id_ % GROUPS for id_ in range(rows)], "s": range(rows)})


def weather_the_storm(seconds: float, members: int) -> None:
    trouble = Trouble(seconds)
    with remuda.open(members=members) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, h BIGINT, s BIGINT, PRIMARY KEY (id))")
        grid.load("m", table_of(ROWS))
        grid.sql("CREATE TABLE groups (id BIGINT, name VARCHAR, PRIMARY KEY (id))")
        grid.load("groups", pa.table({"id": range(GROUPS), "name": [f"g{id_}" for id_ in range(GROUPS)]}))

        def indexes(chance: random.Random) -> None:
            name, column, kind = chance.choice(
                [("m_h", "h", "HASH"), ("m_s", "s", "SORTED"), ("m_hs", "h, s", "SORTED")]
            )
            grid.sql(f"CREATE INDEX {name} ON m ({column}) TYPE {kind}")
            grid.sql(f"DROP INDEX {name} ON m")

        def tables(chance: random.Random) -> None:
            """Rows come in one statement and carry the number of their table: an answer is all of one, or nothing."""
            number = chance.randrange(1_000)
            grid.sql("CREATE TABLE passing (id BIGINT, number BIGINT, PRIMARY KEY (id))")
            grid.load("passing", pa.table({"id": range(500), "number": [number] * 500}))
            grid.sql("DROP TABLE passing")

        def of_passing_table(_: random.Random) -> None:
            sql = "SELECT COUNT(*), MIN(p.number), MAX(p.number) FROM passing p JOIN m ON p.id = m.id"
            try:
                ((count, low, high),) = grid.sql(sql).fetchall()
            except SqlError as error:
                if error.code not in GONE:
                    raise
                return
            assert (count, low) in {(0, None), (500, high)}, "a torn table"

        def by_index(chance: random.Random) -> None:
            wanted = chance.randrange(GROUPS)
            found = grid.sql("SELECT id FROM m WHERE h = ?", wanted).fetchall()
            assert sorted(found) == [(id_,) for id_ in range(wanted, ROWS, GROUPS)]

        def in_order(chance: random.Random) -> None:
            low = chance.randrange(ROWS - 300)
            found = grid.sql("SELECT s FROM m WHERE s >= ? ORDER BY s LIMIT 300", low).fetchall()
            assert found == [(s,) for s in range(low, low + 300)]

        def joined(chance: random.Random) -> None:
            wanted = chance.randrange(GROUPS)
            sql = "SELECT g.name, COUNT(*), SUM(m.s) FROM m JOIN groups g ON m.h = g.id WHERE g.id = ? GROUP BY g.name"
            size = ROWS // GROUPS
            total = size * wanted + GROUPS * size * (size - 1) // 2
            assert grid.sql(sql, wanted).fetchall() == [(f"g{wanted}", size, total)]

        def probed(chance: random.Random) -> None:
            """Few rows that look for theirs in the other map, by an index where there is one just now."""
            low = chance.randrange(GROUPS - 3)
            sql = "SELECT COUNT(*) FROM groups g JOIN m ON m.h = g.id WHERE g.id BETWEEN ? AND ?"
            assert grid.sql(sql, low, low + 2).fetchall() == [(3 * ROWS // GROUPS,)]

        for work in (indexes, tables, of_passing_table, by_index, in_order, joined, probed):
            trouble.go(work.__name__, work)
        trouble.run()


@pytest.mark.parametrize("members", [1, 3], ids=["1 member", "3 members"])
def test_definitions_change_under_queries(members: int) -> None:
    weather_the_storm(3.0, members)


@pytest.mark.slow
def test_definitions_change_under_queries_for_long() -> None:
    weather_the_storm(30.0, members=3)


THREADS = 16
ACCOUNTS = 40
START = 1_000


@pytest.mark.parametrize("members", [1, 3], ids=["1 member", "3 members"])
def test_sixteen_threads_lose_no_update_and_tear_no_statement(members: int) -> None:
    """Money moves between accounts within one statement: whoever looks, however, finds the same sum."""
    with remuda.open(members=members) as grid:
        grid.sql("CREATE TABLE accounts (id BIGINT, owner BIGINT, amount BIGINT, moved BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX accounts_owner ON accounts (owner) TYPE HASH")
        grid.sql("CREATE INDEX accounts_amount ON accounts (amount) TYPE SORTED")
        start = {"owner": [id_ % 4 for id_ in range(ACCOUNTS)], "amount": [START] * ACCOUNTS, "moved": [0] * ACCOUNTS}
        grid.load("accounts", pa.table({"id": range(ACCOUNTS), **start}))
        moves = [0] * THREADS
        looks = (
            "SELECT SUM(amount), COUNT(*) FROM accounts",
            "SELECT SUM(amount), COUNT(*) FROM accounts WHERE owner IN (0, 1, 2, 3)",
            "SELECT SUM(amount), COUNT(*) FROM accounts WHERE amount > -1000000",
            "SELECT SUM(a.amount), COUNT(*) FROM accounts a JOIN accounts b ON a.id = b.id AND a.amount = b.amount",
        )

        def move(number: int, chance: random.Random) -> None:
            giver, taker = chance.sample(range(ACCOUNTS), 2)
            sql = (
                "UPDATE accounts SET amount = amount + CASE WHEN id = ? THEN -? ELSE ? END, moved = moved + 1"
                " WHERE id IN (?, ?)"
            )
            much = chance.randrange(1, 100)
            assert grid.sql(sql, giver, much, much, giver, taker).update_count == 2
            moves[number] += 1

        def look(chance: random.Random) -> None:
            ((total, count),) = grid.sql(chance.choice(looks)).fetchall()
            assert (int(total), count) == (ACCOUNTS * START, ACCOUNTS)

        def work(number: int) -> None:
            chance = random.Random(number)
            for _ in range(40):
                move(number, chance) if number % 2 else look(chance)

        run_together(*(partial(work, number) for number in range(THREADS)))
        totals: Any = grid.sql("SELECT SUM(amount), SUM(moved) FROM accounts").fetchone()
        assert (int(totals[0]), int(totals[1])) == (ACCOUNTS * START, 2 * sum(moves))
