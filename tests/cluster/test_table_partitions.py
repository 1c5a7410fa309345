"""Tables with numbers of partitions of their own: each follows its number, and no two numbers are taken for one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.catalog import MapDefinition
from remuda.errors import SqlError
from remuda.exec.scan.partition_shares import in_plan, of_map
from remuda.plan import physical
from remuda.plan.checker import check_physical
from remuda.plan.partition_map import PartitionMap
from remuda.plan.walk import walk
from remuda.types.column_hash import hash_columns

ROWS = 5_000
PARTITIONS = {"seven": 7, "usual": None, "many": 1024, "more": 1024}


@pytest.fixture(params=[1, 3])
def grid(request: Any) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        for name, partitions in PARTITIONS.items():
            make(opened, name, partitions)
        yield opened


def make(grid: Any, name: str, partitions: int | None) -> None:
    option = "" if partitions is None else f" WITH (partitions = {partitions})"
    grid.sql(f"CREATE TABLE {name} (id BIGINT, n BIGINT, PRIMARY KEY (id)){option}")
    grid.load(name, pa.table({"id": range(ROWS), "n": [each % 100 for each in range(ROWS)]}))


def tree_of(grid: Any, text: str) -> physical.Root:
    return grid.default_session.planner().plan(text, remuda.sql.parse(text)).tree  # type: ignore[no-any-return]


@pytest.mark.parametrize(("left", "right"), list(product(PARTITIONS, repeat=2)))
def test_every_pair_joins_all_its_rows(grid: Any, left: str, right: str) -> None:
    joined = f"FROM {left} AS a {{}} {right} AS b ON a.id = b.id"
    for kind in ("JOIN", "LEFT JOIN", "FULL JOIN"):
        assert grid.sql(f"SELECT COUNT(*), SUM(b.n) {joined.format(kind)}").fetchall() == [(ROWS, 247_500)]
    # Few rows on one side: the other one is looked up by key.
    found = grid.sql(f"SELECT a.id, b.n {joined.format('JOIN')} WHERE a.id IN (3, 77, 4999) ORDER BY 1").fetchall()
    assert found == [(3, 3), (77, 77), (4999, 99)]
    absent = f"SELECT COUNT(*) FROM {left} WHERE id NOT IN (SELECT id FROM {right} WHERE n < 50)"
    assert grid.sql(absent).fetchall() == [(ROWS // 2,)]


def test_only_equal_numbers_are_joined_where_they_lie() -> None:
    with remuda.open(members=3) as grid:
        for name, partitions in PARTITIONS.items():
            make(grid, name, partitions)
        exchanges = physical.HashExchange | physical.BroadcastExchange
        for right, moved in (("more", False), ("usual", True), ("seven", True)):
            tree = tree_of(grid, f"SELECT a.n, b.n FROM many AS a JOIN {right} AS b ON a.id = b.id")
            assert any(isinstance(node, exchanges) for node in walk(tree)) is moved


def test_the_plan_checker_knows_the_numbers() -> None:
    with remuda.open(members=3) as grid:
        make(grid, "seven", 7)
        tree = tree_of(grid, "SELECT id, COUNT(*) FROM seven GROUP BY id")
    check_physical(tree, members=3, partitions=7)
    with pytest.raises(SqlError, match="only maps with the plan's partitions are by columns"):
        check_physical(tree, members=3, partitions=271)


def test_pruning_counts_the_partitions_of_the_table(grid: Any) -> None:
    plan = "\n".join(row[0] for row in grid.sql("EXPLAIN SELECT n FROM many WHERE id = 12"))
    assert "partitions: 1 of 1024" in plan
    (member,) = [row.member for row in grid.sql("SHOW PARTITIONS") if row.map == "many" and holds(row.partition, 12)]
    assert f"members: {member}" in plan
    before = {row.member: row.fragments_run for row in grid.sql("SHOW MEMBERS")}
    assert grid.sql("SELECT n FROM many WHERE id = ?", 12).fetchall() == [(12,)]
    after = {row.member: row.fragments_run for row in grid.sql("SHOW MEMBERS")}
    assert {name for name in after if after[name] > before[name]} <= {member}


def holds(partition: int, key: int) -> bool:
    from remuda.types import BIGINT

    return int(hash_columns([pa.array([key])], [BIGINT])[0] % 1024) == partition


def test_show_partitions_has_all_of_them(grid: Any) -> None:
    shown = grid.sql("SHOW PARTITIONS").fetchall()
    for name, partitions in PARTITIONS.items():
        own = [row for row in shown if row[0] == name]
        assert [row[1] for row in own] == list(range(partitions or 271))
        assert sum(row[3] for row in own) == ROWS
        assert {row[2] for row in own} == {member.id for member in grid.cluster.members}
    assert [row.partitions for row in grid.sql("SHOW TABLES")] == [7, 271, 1024, 1024]


def test_members_come_and_go(grid: Any) -> None:
    query = "SELECT COUNT(*), SUM(a.n + b.n) FROM many AS a JOIN seven AS b ON a.id = b.id"
    expected = grid.sql(query).fetchall()
    grid.cluster.add_member()
    assert grid.sql(query).fetchall() == expected
    grid.cluster.remove_member("member-1")
    assert grid.sql(query).fetchall() == expected


def test_the_number_stays_in_the_folder(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "store") as grid:
        make(grid, "most", 65_536)
        grid.sql("INSERT INTO most VALUES (-1, -1)")
    with remuda.open(tmp_path / "store") as grid:
        assert [row.partitions for row in grid.sql("SHOW TABLES")] == [65_536]
        assert grid.sql("SELECT COUNT(*), SUM(n) FROM most").fetchall() == [(ROWS + 1, 247_499)]
        assert all(grid.map("most").get(key) == (key % 100,) for key in range(0, ROWS, 111))
        grid.sql("UPDATE most SET n = 0 WHERE id = 77")
        grid.checkpoint()
    with remuda.open(tmp_path / "store") as grid:
        assert grid.sql("SELECT n FROM most WHERE id IN (77, 78) ORDER BY id").fetchall() == [(0,), (78,)]


def test_a_table_of_a_query_takes_the_option() -> None:
    with remuda.open() as grid:
        make(grid, "usual", None)
        grid.sql("CREATE TABLE few (PRIMARY KEY (id)) WITH (partitions = 5) AS SELECT id, n FROM usual")
        assert [row.partitions for row in grid.sql("SHOW TABLES") if row.name == "few"] == [5]
        assert grid.sql("SELECT COUNT(*) FROM few JOIN usual USING (id)").fetchall() == [(ROWS,)]


def test_a_grid_has_no_more_than_a_table() -> None:
    with pytest.raises(SqlError, match="at most 65536 partitions, not 65537"):
        remuda.open(partitions=65_537)


@pytest.mark.parametrize(("own", "plan"), [(1, 5), (3, 8), (7, 271), (271, 1024), (1024, 65_536), (5, 5)])
def test_each_partition_lies_in_one_of_the_plan(own: int, plan: int) -> None:
    import numpy as np

    with remuda.open() as grid:
        make(grid, "t", own)
        (definition,) = grid.store.catalog.maps.values()
    assert isinstance(definition, MapDefinition)
    ends = [0, plan // 3, plan // 2, plan]
    shares = [of_map(definition, np.arange(first, end), plan) for first, end in pairwise(ends)]
    assert np.concatenate(shares).tolist() == list(range(own))
    for share, (first, end) in zip(shares, pairwise(ends), strict=True):
        assert all(first <= each < end for each in in_plan(definition, share, plan))
    owned = PartitionMap(1, tuple((str(first), tuple(range(first, end))) for first, end in pairwise(ends)), plan)
    assert [each.tolist() for each in shares] == [list(each) for _, each in owned.owned_of(own)]
