"""The time of a statement: one instant for all of it, another for the next, though the plan is kept."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError


@pytest.fixture(params=[1, 3], ids=["one-member", "three-members"])
def grid(request: pytest.FixtureRequest) -> Iterator[remuda.Grid]:
    with remuda.open(members=request.param) as grid:
        grid.sql("CREATE TABLE visits (day DATE, id INTEGER, seen TIMESTAMP, PRIMARY KEY (day, id)) PARTITION BY (day)")
        grid.sql("CREATE INDEX visits_seen ON visits (seen) TYPE SORTED")
        yield grid


def fill(grid: remuda.Grid, rows: int) -> None:
    """A row for today, one for yesterday and so on; shortly before midnight it is waited for."""
    now = dt.datetime.now(dt.UTC)
    left = 24 * 3600 - (now - now.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
    if left < 30:
        time.sleep(left + 1)
    today = dt.datetime.now(dt.UTC).date()
    for number in range(rows):
        day = today - dt.timedelta(days=number)
        grid.sql("INSERT INTO visits VALUES (?, ?, ?)", day, number, dt.datetime.combine(day, dt.time()))


def test_all_rows_see_one_instant(grid: remuda.Grid) -> None:
    fill(grid, 40)
    rows = grid.sql("SELECT now(), current_timestamp, localtimestamp, current_date FROM visits").fetchall()
    assert len(rows) == 40
    assert len({tuple(row) for row in rows}) == 1
    instant, same, local, day = rows[0]
    assert instant == same == local.replace(tzinfo=dt.UTC)
    assert day == instant.date()


def test_a_kept_plan_does_not_keep_the_time(grid: remuda.Grid) -> None:
    before = dt.datetime.now(dt.UTC)
    moments = [grid.sql("SELECT now()").fetchall()[0][0] for _ in range(3)]
    assert before <= moments[0] < moments[1] < moments[2] <= dt.datetime.now(dt.UTC)
    assert len([row for row in grid.sql("SHOW PLANS") if "SELECT now()" in row]) == 1


def test_an_index_is_asked_for_it(grid: remuda.Grid) -> None:
    fill(grid, 40)
    sql = "SELECT id FROM visits WHERE seen > now() - INTERVAL '3 days' AND seen < now()"
    assert sorted(row[0] for row in grid.sql(sql)) == [0, 1, 2]
    assert "seen > CAST(CURRENT_TIMESTAMP - INTERVAL '3 00:00:00' DAY TO SECOND AS TIMESTAMP)" in grid.explain(sql)


def test_partitions_are_pruned_by_it(grid: remuda.Grid) -> None:
    fill(grid, 5)
    sql = "SELECT id FROM visits WHERE day = current_date"
    assert [row[0] for row in grid.sql(sql)] == [0]
    assert "partitionedBy=[day]" in grid.explain(sql)


def test_parameters_are_counted_without_it(grid: remuda.Grid) -> None:
    assert grid.sql("SELECT ? < now()", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)).fetchall() == [(True,)]
    for given in [(), (1, 2)]:
        with pytest.raises(SqlError, match=f"1 parameter is expected, {len(given) or 'none'} w") as failure:
            grid.sql("SELECT CAST(? AS INTEGER), now()", *given)
        assert failure.value.code is ErrorCode.DATA_EXCEPTION
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert grid.sql("SELECT upper(:a), now() > :b", a="x", b=past).fetchall() == [("X", True)]


def test_it_is_stored(grid: remuda.Grid) -> None:
    grid.sql("INSERT INTO visits VALUES (current_date, 7, now())")
    before = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    assert grid.sql("UPDATE visits SET seen = current_timestamp WHERE id = 7").update_count == 1
    assert grid.sql("SELECT seen FROM visits WHERE id = 7").fetchall()[0][0] >= before


def test_key_lookups_and_writes_by_key_know_it(grid: remuda.Grid) -> None:
    grid.sql("CREATE TABLE notes (id INTEGER, seen TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))")
    for id_ in (1, 2):
        grid.sql("INSERT INTO notes VALUES (?, now())", id_)
    (first,) = grid.sql("SELECT seen <= now() FROM notes WHERE id = ?", 1).fetchall()
    assert first == (True,)
    assert grid.sql("DELETE FROM notes WHERE id = ? AND seen > now()", 2).update_count == 0
