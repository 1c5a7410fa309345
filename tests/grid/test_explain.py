"""EXPLAIN in its forms: text, JSON, the logical tree, the memo, and what operators really did."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError


@pytest.fixture(params=[1, 3], ids=["one member", "three members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, amount DOUBLE, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE customers (id BIGINT, name VARCHAR, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX orders_customer ON orders (customer) TYPE HASH")
        numbers = range(2000)
        columns = {"id": list(numbers), "customer": [i % 50 for i in numbers], "amount": [i / 4 for i in numbers]}
        opened.load("orders", pa.table(columns))
        opened.load("customers", pa.table({"id": list(range(50)), "name": [f"C{i}" for i in range(50)]}))
        yield opened


def text_of(grid: Any, statement: str, *values: Any) -> str:
    return "\n".join(row[0] for row in grid.sql(statement, *values))


def operators(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan["inputs"]:
        yield from operators(below)


JOIN = "SELECT name, SUM(amount) FROM orders JOIN customers ON customer = customers.id GROUP BY name"


def test_json_has_what_the_text_has(grid: Any) -> None:
    (only,) = grid.sql(f"EXPLAIN (FORMAT JSON) {JOIN}")
    found = list(operators(json.loads(only[0])["plan"]))
    lines = text_of(grid, f"EXPLAIN {JOIN}").splitlines()
    heads = [line.split("  rows≈")[0].strip() for line in lines if "rows≈" in line]
    assert [each["description"] for each in found] == heads
    assert {"MapScan", "HashJoin", "HashAggregate", "Root"} <= {each["operator"] for each in found}
    assert all(each["estimated_rows"] >= 0 and each["columns"] for each in found)


SHAPE = {
    "operator": str,
    "description": str,
    "details": list,
    "attributes": dict,
    "distribution": str,
    "partitioned_by": list,
    "convention": str,
    "columns": list,
    "estimated_rows": float,
    "estimated_cost": float,
    "inputs": list,
}
ACTUAL = {"rows", "batches", "seconds", "members", "member_names", "partitions", "index_entries", "rows_read"}
ACTUAL |= {"decisions"}
DECIDED = {"partitions", "access", "actual", "build_side", "runtime_filter", "zone_order", "bound", "row_cutover"}
DECIDED |= {"fork_rows", "partial_aggregation", "dynamic_lookup", "dynamic_pruning"}


@pytest.mark.parametrize("options", ["FORMAT JSON", "FORMAT JSON, ANALYZE", "FORMAT JSON, FRAGMENTS"])
def test_the_shape_of_json(grid: Any, options: str) -> None:
    """What docs/queries.md promises to programs."""
    document = json.loads(text_of(grid, f"EXPLAIN ({options}) {JOIN}"))
    trees = [each["plan"] for each in document["fragments"]] if "FRAGMENTS" in options else [document["plan"]]
    for each in (node for tree in trees for node in operators(tree)):
        for key, kind in SHAPE.items():
            assert isinstance(each[key], (kind, int) if kind is float else kind), key
        assert each.keys() - SHAPE.keys() <= DECIDED
        if "ANALYZE" in options:
            assert each["actual"].keys() == ACTUAL
        if each["partitioned_by"]:
            assert f"[PARTITIONED by {', '.join(each['partitioned_by'])}]" in each["description"]


def test_operators_say_what_they_are_partitioned_by(grid: Any) -> None:
    document = json.loads(text_of(grid, "EXPLAIN (FORMAT JSON) SELECT amount FROM orders WHERE amount > 3"))
    (scan,) = [each for each in operators(document["plan"]) if each["operator"] == "MapScan"]
    assert scan["partitioned_by"] == ["id"], "of the map, though the scan does not deliver it"
    changed = "INSERT INTO orders SELECT id + 10000, customer, amount FROM orders WHERE amount > 3"
    plan = json.loads(text_of(grid, f"EXPLAIN (FORMAT JSON) {changed}"))["plan"]
    (project,) = [each for each in operators(plan) if each["operator"] == "Project"]
    assert project["partitioned_by"] == [], "id + 10000 is called id, and lies anywhere"
    assert [each["partitioned_by"] for each in operators(plan) if each["operator"] == "MapScan"] == [["id"]]


def test_fragments_and_edges(grid: Any) -> None:
    """More of them are in tests/plans/distribution.plan."""
    query = "SELECT id FROM orders WHERE amount > 3"
    text = text_of(grid, f"EXPLAIN (FRAGMENTS) {query}")
    document = json.loads(text_of(grid, f"EXPLAIN (FRAGMENTS, FORMAT JSON) {query}"))
    if len(grid.cluster.members) == 1:
        assert text.startswith("Fragment 0   runs on: coordinator\n  Root  ")
        assert document["edges"] == []
        return
    names = "member-1, member-2, member-3"
    assert [line for line in text.split("\n") if line.startswith("Fragment")] == [
        "Fragment 0   runs on: coordinator   receives: edge 1",
        f"Fragment 1   runs on: {names}   sends: edge 1 to fragment 0",
    ]
    assert document["edges"] == [{"edge": 1, "from": 1, "to": 0, "route": "root", "keys": []}]
    assert [each["fragment"] for each in document["fragments"]] == [0, 1]
    assert [each["members"] for each in document["fragments"]] == [None, names.split(", ")]
    assert [each["receives"] for each in document["fragments"]] == [[1], []]
    analyzed = text_of(grid, f"EXPLAIN ANALYZE FRAGMENTS {query}")
    assert analyzed.count("actual: ") == text.count("rows≈") - 1, "all but the sending end"


def test_fragments_run_where_values_say(grid: Any) -> None:
    if len(grid.cluster.members) == 1:
        return
    query = "SELECT amount FROM orders WHERE id BETWEEN ? AND ? AND amount >= 0"
    assert "Fragment 1   runs on: owners of the partitions   sends:" in grid.explain(f"EXPLAIN (FRAGMENTS) {query}")
    before = {member.id: member.fragments_run for member in grid.cluster.members}
    assert len(grid.sql(query, 5, 5).fetchall()) == 1
    (asked,) = [member.id for member in grid.cluster.members if member.fragments_run > before[member.id]]
    text = grid.explain(f"EXPLAIN (FRAGMENTS) {query}", 5, 5)
    assert f"Fragment 1   runs on: {asked}   sends: edge 1 to fragment 0" in text
    assert "Fragment 1   runs on: no member   sends:" in grid.explain(f"EXPLAIN (FRAGMENTS) {query}", 5, None)


def test_logical_and_memo(grid: Any) -> None:
    assert text_of(grid, f"EXPLAIN LOGICAL {JOIN}").startswith("Root   name")
    (logical,) = grid.sql(f"EXPLAIN (LOGICAL, FORMAT JSON) {JOIN}")
    assert json.loads(logical[0])["plan"]["operator"] == "Root"
    memo = text_of(grid, f"EXPLAIN MEMO {JOIN}")
    assert "Join INNER(G" in memo
    (groups,) = grid.sql(f"EXPLAIN (MEMO, FORMAT JSON) {JOIN}")
    assert len(json.loads(groups[0])["groups"]) == memo.count("rows≈")


def test_the_memo_of_a_lookup_is_searched(grid: Any) -> None:
    assert "KeyLookup" in text_of(grid, "EXPLAIN MEMO SELECT amount FROM orders WHERE id = 5")


def test_analyze_counts_what_happened(grid: Any) -> None:
    (only,) = grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {JOIN}")
    document = json.loads(only[0])
    members = len(grid.cluster.members)
    actual = {each["description"].split(" [")[0]: each["actual"] for each in operators(document["plan"])}
    assert actual["MapScan orders"]["rows"] == actual["MapScan orders"]["rows_read"] == 2000
    assert actual["MapScan orders"]["members"] == members
    assert actual["MapScan orders"]["partitions"] == 271
    assert actual["Root"]["rows"] == 50
    assert actual["HashJoin INNER"]["rows"] == 50, "orders are grouped by their customer before they are joined"
    assert document["execution_seconds"] > 0


def test_analyze_with_parameters_touches_what_is_needed(grid: Any) -> None:
    plan = text_of(grid, "EXPLAIN ANALYZE SELECT amount FROM orders WHERE id = ?", 7)
    assert "KeyLookup" in plan
    assert "rows=1 " in plan
    assert re.search(r"partitions=1 index entries=1 members=1 \(member-\d\)", plan)
    plan = text_of(grid, "EXPLAIN ANALYZE SELECT amount FROM orders WHERE customer = ?", 7)
    assert "index entries=40" in plan
    with pytest.raises(SqlError, match="parameter"):
        grid.sql("EXPLAIN ANALYZE SELECT amount FROM orders WHERE id = ?")


def test_analyze_of_a_writing_statement_writes(grid: Any) -> None:
    assert "Update orders" in text_of(grid, "EXPLAIN ANALYZE UPDATE orders SET amount = 0 WHERE id < 10")
    assert grid.sql("SELECT COUNT(*) FROM orders WHERE amount = 0").fetchall() == [(10,)]


def test_an_explained_query_is_neither_run_nor_kept(grid: Any) -> None:
    text_of(grid, "EXPLAIN DELETE FROM orders")
    assert grid.sql("SELECT COUNT(*) FROM orders").fetchall() == [(2000,)]
    assert not any("EXPLAIN" in key[1] for key, _ in grid.engine.plans.entries())


def test_the_memo_names_a_partitioning_column_once() -> None:
    with remuda.open(members=3) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, g BIGINT, PRIMARY KEY (id))")
        memo = grid.explain("EXPLAIN MEMO SELECT g, COUNT(*) FROM t GROUP BY g")
    assert "[PARTITIONED by g]" in memo
    assert "g, g" not in memo
