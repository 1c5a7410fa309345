"""Members join and leave all the time while queries and writes go on: answers stay exact, and nobody notices."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import remuda
from tests.cluster.trouble import Trouble

ROWS = 60_000
GROUPS = 100


def stay_exact(seconds: float, pause: float) -> None:
    trouble = Trouble(seconds, migrate=10)
    with remuda.open(members=3) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, h BIGINT, s BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX m_h ON m (h) TYPE HASH")
        grid.sql("CREATE INDEX m_s ON m (s) TYPE SORTED")
        grid.load("m", pa.table({"id": range(ROWS), "h": [id_ % GROUPS for id_ in range(ROWS)], "s": range(ROWS)}))
        grid.sql("CREATE TABLE counters (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("counters", pa.table({"id": range(50), "n": [0] * 50}))
        added = {"one": 0, "many": 0}

        def migrate(chance: random.Random) -> None:
            members = grid.cluster.members
            if len(members) < 6 and (len(members) == 1 or chance.random() < 0.5):
                grid.cluster.add_member()
            else:
                grid.cluster.remove_member(chance.choice(members).id)
            time.sleep(pause * chance.random())

        def full(_: random.Random) -> None:
            found = grid.sql("SELECT id, h FROM m").to_arrow()
            assert found.num_rows == ROWS
            assert sorted(found.column("id").to_pylist()) == list(range(ROWS))

        def by_hash(chance: random.Random) -> None:
            wanted = chance.randrange(GROUPS)
            found = grid.sql("SELECT id FROM m WHERE h = ?", wanted).fetchall()
            assert sorted(found) == [(id_,) for id_ in range(wanted, ROWS, GROUPS)]

        def by_range(chance: random.Random) -> None:
            low = chance.randrange(ROWS - 500)
            found = grid.sql("SELECT s FROM m WHERE s BETWEEN ? AND ? ORDER BY s DESC", low, low + 499).fetchall()
            assert found == [(s,) for s in range(low + 499, low - 1, -1)]

        def pruned(chance: random.Random) -> None:
            ids = sorted(chance.sample(range(ROWS), 3))
            assert sorted(grid.sql("SELECT id FROM m WHERE id IN (?, ?, ?)", *ids).fetchall()) == [
                (id_,) for id_ in ids
            ]

        def grouped(_: random.Random) -> None:
            found = grid.sql("SELECT h, COUNT(*), SUM(s), MIN(s) FROM m GROUP BY h").fetchall()
            size = ROWS // GROUPS
            expected = [(h, size, size * h + GROUPS * size * (size - 1) // 2, h) for h in range(GROUPS)]
            assert sorted(found) == expected

        def first_rows(_: random.Random) -> None:
            found = grid.sql("SELECT s FROM m ORDER BY s LIMIT 7").fetchall()
            assert found == [(s,) for s in range(7)]

        def joined(_: random.Random) -> None:
            """By the other side's key: rows are sent to its owner, or it to all."""
            found = grid.sql("SELECT a.id, b.s FROM m a JOIN m b ON a.h = b.id WHERE a.id < 3000").fetchall()
            assert sorted(found) == [(id_, id_ % GROUPS) for id_ in range(3000)]

        def joined_in_place(_: random.Random) -> None:
            found = grid.sql("SELECT COUNT(*), SUM(a.s - b.s) FROM m a JOIN m b ON a.id = b.id").fetchall()
            assert found == [(ROWS, 0)]

        def numbered(chance: random.Random) -> None:
            wanted = chance.randrange(GROUPS)
            sql = "SELECT id, ROW_NUMBER() OVER (PARTITION BY h ORDER BY s) FROM m WHERE h = ?"
            assert sorted(grid.sql(sql, wanted).fetchall()) == [
                (id_, number + 1) for number, id_ in enumerate(range(wanted, ROWS, GROUPS))
            ]

        def add_one(chance: random.Random) -> None:
            assert grid.sql("UPDATE counters SET n = n + 1 WHERE id = ?", chance.randrange(50)).update_count == 1
            added["one"] += 1

        def add_to_all(_: random.Random) -> None:
            assert grid.sql("UPDATE counters SET n = n + 1 WHERE n >= 0").update_count == 50
            added["many"] += 50

        def come_and_go(chance: random.Random) -> None:
            """Rows beyond the model's: written and removed, so that the log changes under the scans."""
            id_ = ROWS * 2 + chance.randrange(100)
            assert grid.sql("INSERT INTO counters VALUES (?, ?)", id_, -(10**9)).update_count == 1

            def remove() -> None:
                assert grid.sql("DELETE FROM counters WHERE id IN (?, ?)", id_, id_).update_count == 1

            trouble.insist(remove)

        reading = (full, by_hash, by_range, pruned, grouped, first_rows, joined, joined_in_place, numbered)
        for work in (*reading, add_one, add_to_all, come_and_go, migrate):
            trouble.go(work.__name__, work)
        trouble.run()
        total = grid.sql("SELECT SUM(n) FROM counters").fetchone()
        assert total is not None
        assert int(total[0]) == sum(added.values()), "no update is lost, none is done twice"


def test_migration_is_never_seen() -> None:
    stay_exact(seconds=10.0, pause=0.1)


@pytest.mark.slow
def test_migration_is_never_seen_for_long() -> None:
    stay_exact(seconds=60.0, pause=0.3)


def test_a_result_per_thread_and_one_grid_for_all() -> None:
    """Many readers of many small queries at once, on more members than threads."""
    with remuda.open(members=7) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(1_000), "n": [id_ % 7 for id_ in range(1_000)]}))
        errors: list[Any] = []

        def read(number: int) -> None:
            for turn in range(15):
                wanted = (number + turn) % 7
                found = grid.sql("SELECT id FROM m WHERE n = ?", wanted).fetchall()
                if sorted(found) != [(id_,) for id_ in range(wanted, 1_000, 7)]:
                    errors.append((wanted, found))

        threads = [threading.Thread(target=read, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
