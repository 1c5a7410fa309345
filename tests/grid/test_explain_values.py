"""EXPLAIN says what values decide: partitions, their owners, index or direct scan. A run then does just that."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

ROWS = 60_000


@pytest.fixture(scope="module", params=[1, 3], ids=["one member", "three members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql(
            "CREATE TABLE orders (customer VARCHAR, id BIGINT, day DATE, amount DOUBLE, PRIMARY KEY (customer, id)) "
            "PARTITION BY (customer)"
        )
        opened.sql("CREATE INDEX orders_amount ON orders (amount) TYPE SORTED")
        opened.sql("CREATE INDEX orders_day ON orders (day) TYPE HASH")
        numbers = range(ROWS)
        columns = {
            "customer": [f"C{i % 500}" for i in numbers],
            "id": list(numbers),
            "day": pa.array([i % 300 for i in numbers], pa.int32()).cast(pa.date32()),
            "amount": [float(i) for i in numbers],
        }
        opened.load("orders", pa.table(columns))
        opened.sql("CREATE TABLE days (id INTEGER, day DATE, PRIMARY KEY (id))")
        opened.load("days", pa.table({"id": pa.array(range(300), pa.int32()), "day": columns["day"].slice(0, 300)}))
        opened.sql("CREATE TABLE kinds (id BIGINT, label VARCHAR, PRIMARY KEY (id)) REPLICATED")
        opened.load("kinds", pa.table({"id": list(range(7)), "label": [f"K{i}" for i in range(7)]}))
        opened.sql("CREATE TABLE seen (at TIMESTAMP, PRIMARY KEY (at))")
        yield opened


def operators(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan["inputs"]:
        yield from operators(below)


def scans(grid: Any, text: str, *values: Any, options: str = "FORMAT JSON") -> list[dict[str, Any]]:
    plan = json.loads(grid.explain(f"EXPLAIN ({options}) {text}", *values))["plan"]
    return [each for each in operators(plan) if not each["inputs"]]


def owners(grid: Any, keys: list[str]) -> set[str]:
    """The members that own the partitions of these customers, by the partition table."""
    from remuda.storage import hash_values, partition_of

    definition = grid.store.catalog.find_map("orders", ("public",))
    partitions = {partition_of(hash_values([key], [definition.column("customer").type]), 271) for key in keys}
    table = grid.cluster.partition_table.partition_map()
    return {member for member, owned in table.owned if partitions & set(owned)}


def test_what_prunes_is_apart_from_what_filters(grid: Any) -> None:
    text = grid.explain("SELECT id FROM orders WHERE customer = 'C2' AND amount > id")
    assert "prune: customer = 'C2'   filter: amount > CAST(id AS DOUBLE)   columns: id" in text
    (member,) = owners(grid, ["C2"])
    assert f"partitionedBy=[customer]   partitions: 1 of 271   members: {member}" in text
    assert "MapScan orders [PARTITIONED by customer]" in text


@pytest.mark.parametrize(
    ("condition", "prune", "filter_", "partitions"),
    [
        ("customer IN ('C1', 'C2') AND id > 5", "customer IN ('C1', 'C2')", "id > 5", 2),
        ("customer = 'C1' AND customer <> 'C2'", "customer = 'C1'", "customer <> 'C2'", 1),
        # A branch says more than its partition: the OR is still a filter.
        (
            "customer = 'C1' AND id < 9 OR customer = 'C4' AND id > 9",
            "customer = 'C1' OR customer = 'C4'",
            "customer = 'C1' AND id < 9 OR customer = 'C4' AND id > 9",
            2,
        ),
    ],
)
def test_the_parts_of_a_filter(grid: Any, condition: str, prune: str, filter_: str, partitions: int) -> None:
    (scan,) = scans(grid, f"SELECT amount FROM orders WHERE {condition}")
    assert scan["attributes"].get("prune") == prune
    assert scan["attributes"].get("filter") == filter_
    assert scan["partitions"]["needed"] == partitions
    assert scan["partitions"]["of"] == 271


def test_a_range_that_is_too_wide_prunes_nothing(grid: Any) -> None:
    (scan,) = scans(grid, "SELECT day FROM days WHERE id BETWEEN ? AND ?", 5, 8)
    assert scan["partitions"]["needed"] == 4
    (scan,) = scans(grid, "SELECT day FROM days WHERE id BETWEEN ? AND ?", 5, 5000)
    assert scan["partitions"]["needed"] == 271


def test_parameters_decide_where_they_are_given(grid: Any) -> None:
    query = "SELECT amount FROM orders WHERE customer = ? AND id = ?"
    symbolic = grid.explain(query)
    assert "partitionedBy=[customer]\n" in symbolic + "\n"
    assert "partitions:" not in symbolic
    assert "parameters:" not in symbolic
    text = grid.explain(query, "C7", 7)
    (member,) = owners(grid, ["C7"])
    assert f"partitionedBy=[customer]   partitions: 1 of 271   members: {member}" in text
    assert text.endswith("\nparameters: ?0 = 'C7', ?1 = 7")
    assert text == "\n".join(row[0] for row in grid.sql(f"EXPLAIN {query}", "C7", 7))
    assert "partitions: 0 of 271   members: none" in grid.explain(query, None, 7)


def test_named_parameters(grid: Any) -> None:
    query = "SELECT amount FROM orders WHERE customer = :who AND amount > :least"
    expected = grid.explain(query, who="C7", least=3)
    assert expected.endswith("parameters: ?0 :who = 'C7', ?1 :least = 3.0")
    assert grid.explain(query, {"who": "C7", "least": 3}) == expected
    assert "\n".join(row[0] for row in grid.sql(f"EXPLAIN {query}", who="C7", least=3)) == expected


def test_values_that_do_not_fit_are_refused_as_by_the_query(grid: Any) -> None:
    query = "SELECT id FROM orders WHERE amount > ?"
    with pytest.raises(SqlError, match="1 parameter is expected, 2 were given"):
        grid.explain(query, 1, 2)
    with pytest.raises(SqlError, match="no parameter is expected, 1 was given"):
        grid.sql("EXPLAIN SELECT id FROM orders", 1)
    assert "0 rows of" in grid.explain("SELECT id FROM orders WHERE id = ?", 2.5), "no id is 2.5: an exact comparison"
    assert grid.explain("SELECT ?", "x").endswith("parameters: ?0 = 'x'"), "its type is that of the value"


@pytest.mark.parametrize("seed", range(12))
def test_the_access_path_is_the_one_that_runs(grid: Any, seed: int) -> None:
    """Values on both sides of the choice, and just beside it."""
    query = "SELECT id, day FROM orders WHERE amount > ?"
    (symbolic,) = scans(grid, query)
    cutover = int(symbolic["attributes"]["scan_cutover"])
    assert "access" not in symbolic
    generator = random.Random(seed)
    entries = [cutover, cutover + 1, 0, ROWS][seed] if seed < 4 else generator.randrange(ROWS)
    (scan,) = scans(grid, query, ROWS - entries - 0.5, options="FORMAT JSON, ANALYZE")
    assert scan["access"] == {"path": "direct scan" if entries > cutover else "index", "entries": entries}
    assert scan["actual"]["rows"] == entries
    if entries > cutover:
        assert scan["actual"]["rows_read"] == ROWS
        assert scan["actual"]["index_entries"] == 0
    else:
        assert scan["actual"]["index_entries"] == entries


def test_the_access_path_in_words(grid: Any) -> None:
    few = grid.explain("SELECT id FROM orders WHERE amount > ?", ROWS - 1.5)
    assert re.search(r"direct scan above \d+ entries   access: index, 1 entry", few)
    assert "access: direct scan, 60000 entries" in grid.explain("SELECT id FROM orders WHERE amount > ?", -1)
    literal = grid.explain("SELECT id FROM orders WHERE amount > 59990")
    assert "access: index, 9 entries" in literal


@pytest.mark.parametrize("seed", range(8))
def test_the_partitions_are_those_that_are_read(grid: Any, seed: int) -> None:
    generator = random.Random(seed)
    customers = [f"C{generator.randrange(500)}" for _ in range(1 + seed)]
    marks = ", ".join("?" for _ in customers)
    query = f"SELECT COUNT(*) FROM orders WHERE customer IN ({marks}) AND id >= 0"
    (scan,) = scans(grid, query, *customers, options="FORMAT JSON, ANALYZE")
    assert scan["partitions"]["needed"] == scan["actual"]["partitions"] <= len(customers)
    assert set(scan["partitions"]["members"]) == owners(grid, customers)
    assert scan["actual"]["members"] == len(scan["actual"]["member_names"]) == len(scan["partitions"]["members"])
    assert sorted(scan["partitions"]["members"]) == scan["actual"]["member_names"]


def writing(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the operator that writes: below a Commit and an exchange where members do."""
    while plan["description"].split()[0] not in {"Insert", "Update", "Delete"}:
        (plan,) = plan["inputs"]
    return plan


def test_a_statement_that_writes_says_where(grid: Any) -> None:
    (member,) = owners(grid, ["new"])
    insert = "INSERT INTO orders (customer, id, amount) VALUES (?, ?, ?)"
    assert "Insert orders [ROOT]" in grid.explain(insert)
    assert "partitions: at most 1 of 271" in grid.explain(insert)
    assert f"partitions: 1 of 271   members: {member}" in grid.explain(insert, "new", 1, 2.5)
    two = json.loads(grid.explain("EXPLAIN (FORMAT JSON) INSERT INTO orders (customer, id) VALUES ('a', 1), ('a', 2)"))
    assert two["plan"]["inputs"][0]["partitions"]["needed"] == 1
    for change in (
        "UPDATE orders SET amount = 0 WHERE customer = ? AND id < 3",
        "DELETE FROM orders WHERE customer = ?",
    ):
        top = writing(json.loads(grid.explain(f"EXPLAIN (FORMAT JSON) {change}", "new"))["plan"])
        assert top["partitions"] == {"needed": 1, "of": 271, "at_most": False, "members": [member]}
        top = writing(json.loads(grid.explain(f"EXPLAIN (FORMAT JSON) {change}"))["plan"])
        assert "partitions" not in top
    everything = json.loads(grid.explain("EXPLAIN (FORMAT JSON) DELETE FROM orders WHERE amount < 0"))
    assert "partitions" not in writing(everything["plan"])


def test_what_was_written_is_counted(grid: Any) -> None:
    customers = ["written 1", "written 2", "written 3"]
    values = ", ".join(f"('{name}', {number})" for number in range(2) for name in customers)
    for text in (
        f"INSERT INTO orders (customer, id) VALUES {values}",
        "UPDATE orders SET amount = 1 WHERE customer LIKE 'written%'",
        "DELETE FROM orders WHERE customer LIKE 'written%'",
    ):
        plan = json.loads(grid.explain(f"EXPLAIN (FORMAT JSON, ANALYZE) {text}"))["plan"]
        operator = writing(plan)
        actual = operator["actual"]
        assert actual["partitions"] == 3
        # Members that prepare rows are those that have looked for some.
        everyone = (
            {member.id for member in grid.cluster.members}
            if operator["distribution"] == "PARTITIONED"
            else owners(grid, customers)
        )
        assert set(actual["member_names"]) == everyone
        assert actual["members"] == len(actual["member_names"])


def test_a_replicated_map_has_its_partitions_once(grid: Any) -> None:
    query = "SELECT o.id FROM orders o JOIN kinds k ON o.id % 7 = k.id"
    found = scans(grid, query, options="FORMAT JSON, ANALYZE")
    kinds = next(each for each in found if "kinds" in each["description"])
    assert kinds["distribution"] == "REPLICATED"
    assert kinds["partitioned_by"] == []
    assert kinds["actual"]["partitions"] == 271
    assert kinds["actual"]["members"] == len(grid.cluster.members)


def test_what_waits_for_the_clock_is_decided_when_values_are_given(grid: Any) -> None:
    query = "SELECT at FROM seen WHERE at = CAST(CURRENT_TIMESTAMP AS TIMESTAMP)"
    assert "partitionedBy=[at]" in grid.explain(query)
    assert "partitions:" not in grid.explain(query), "the text of EXPLAIN does not depend on the time of day"
    assert "partitions: 1 of 271" in grid.explain(f"{query} OR at = CAST(? AS TIMESTAMP)", None)


def test_explaining_evaluates_nothing_that_fails(grid: Any) -> None:
    text = grid.explain("SELECT day FROM days WHERE id = 1 / ?", 0)
    assert "KeyLookup" in text
    assert "partitions:" not in text
