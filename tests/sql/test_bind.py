"""Good statements: the trees they are bound to, the types and numbers of their parameters, definitions as parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remuda.catalog import ColumnDefinition, IndexType
from remuda.errors import SqlError
from remuda.expr import Expression, Literal, Parameter
from remuda.plan import logical
from remuda.plan.checker import check_logical
from remuda.plan.explain import explain_logical
from remuda.plan.walk import walk
from remuda.rules.decorrelate.free_columns import free_columns
from remuda.sql import CreateIndex, CreateMap, DropMap, Explain, ExplainMode, Query, SetOption, Show, bind, parse
from remuda.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, TIMESTAMP_TZ, VARCHAR, decimal
from tests.sql.catalogs import CATALOG, bound

BLOCKS = Path(__file__).with_name("bound.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")
CASES = [tuple(block.split("\n----\n")) for block in BLOCKS if not block.startswith("# ")]


@pytest.mark.parametrize(("text", "tree"), CASES, ids=[case[0] for case in CASES])
def test_bound_tree(text: str, tree: str) -> None:
    root = bound(text).tree
    assert free_columns(root) == {}, "every column of a sub-query is one of its own or of a query around it"
    if not any(isinstance(node, logical.Apply) for node in walk(root)):
        check_logical(root)
    assert [line.rstrip() for line in explain_logical(root).split("\n")] == tree.split("\n")


PARAMETER_TYPES = [
    ("SELECT id FROM orders WHERE id = ?", ["BIGINT"]),
    ("SELECT id FROM orders WHERE ? < amount", ["DOUBLE"]),
    ("SELECT id FROM orders WHERE created BETWEEN ? AND ?", ["TIMESTAMP", "TIMESTAMP"]),
    ("SELECT id FROM orders WHERE quantity IN (?, 2, ?)", ["INTEGER", "INTEGER"]),
    ("SELECT id FROM orders WHERE customer LIKE ?", ["VARCHAR"]),
    ("SELECT id FROM orders WHERE ?", ["BOOLEAN"]),
    ("SELECT id FROM orders WHERE NOT ? AND paid = ?", ["BOOLEAN", "BOOLEAN"]),
    ("SELECT amount * ?, ? - quantity FROM orders", ["DOUBLE", "INTEGER"]),
    ("SELECT customer || ? FROM orders", ["VARCHAR"]),
    ("SELECT COALESCE(customer, ?) FROM orders", ["VARCHAR"]),
    ("SELECT CAST(? AS DATE), ?::DECIMAL(10, 2)", ["DATE", "DECIMAL(10, 2)"]),
    ("SELECT id FROM orders LIMIT ? OFFSET ?", ["BIGINT", "BIGINT"]),
    ("SELECT order_id FROM lines WHERE __key = (?, ?)", ["BIGINT", "INTEGER"]),
    ("SELECT order_id FROM lines WHERE price >= ?", ["DECIMAL(10, 2)"]),
    ("INSERT INTO orders (id, customer, paid) VALUES (?, ?, ?)", ["BIGINT", "VARCHAR", "BOOLEAN"]),
    ("INSERT INTO odds VALUES (?, ?, ?, ?)", ["SMALLINT", "REAL", "VARBINARY", "INTEGER"]),
    ("UPDATE orders SET amount = ?, customer = UPPER(?) WHERE id = ?", ["DOUBLE", "VARCHAR", "BIGINT"]),
    ("UPDATE orders SET amount = ?, paid = ? WHERE id = ?", ["DOUBLE", "BOOLEAN", "BIGINT"]),
    ("DELETE FROM orders WHERE amount < ?", ["DOUBLE"]),
    ("SELECT status FROM orders GROUP BY status HAVING COUNT(*) > ?", ["BIGINT"]),
    ("SELECT id FROM orders JOIN lines ON order_id = id AND price > ? WHERE line = ?", ["DECIMAL(10, 2)", "INTEGER"]),
    ("SELECT id FROM orders WHERE id IN (SELECT order_id FROM lines WHERE price > ?)", ["DECIMAL(10, 2)"]),
    ("SELECT id FROM orders WHERE ? IN (SELECT line FROM lines)", ["INTEGER"]),
    ("SELECT id FROM orders WHERE quantity IN (SELECT ?)", ["INTEGER"]),
    ("SELECT id FROM orders WHERE (id, quantity) IN (SELECT ?, ?)", ["BIGINT", "INTEGER"]),
    ("SELECT id FROM orders WHERE (id, quantity) IN ((?, ?), (1, ?))", ["BIGINT", "INTEGER", "INTEGER"]),
    ("SELECT id FROM orders WHERE amount > ANY (SELECT ?)", ["DOUBLE"]),
    ("SELECT id FROM orders WHERE amount = (SELECT ?)", ["DOUBLE"]),
    ("SELECT id FROM orders WHERE (SELECT ?) = amount", None),
    ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM lines WHERE order_id = id + ?)", ["BIGINT"]),
    ("SELECT id, amount FROM orders UNION ALL SELECT ?, ?", ["BIGINT", "DOUBLE"]),
    ("SELECT ?, ? UNION ALL SELECT id, status FROM orders", ["BIGINT", "VARCHAR"]),
    ("SELECT ? UNION SELECT NULL UNION SELECT line FROM lines", ["INTEGER"]),
    ("SELECT ? UNION SELECT ?", None),
    ("VALUES (?, 'a'), (1, ?)", ["INTEGER", "VARCHAR"]),
    ("SELECT * FROM (VALUES (1.5), (?)) AS v (x)", ["DECIMAL(2, 1)"]),
    ("WITH q AS (SELECT id FROM orders WHERE amount > ?) SELECT id FROM q WHERE id < ?", ["DOUBLE", "BIGINT"]),
    ("WITH unused AS (SELECT id FROM orders WHERE amount > ?) SELECT 1", ["DOUBLE"]),
    ("WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + ? FROM t WHERE n < ?) SELECT n FROM t", ["INTEGER"] * 2),
    ("SELECT LAG(amount, ?, ?) OVER (ORDER BY id) FROM orders", ["BIGINT", "DOUBLE"]),
    ("SELECT SUM(amount) OVER (ORDER BY id ROWS ? PRECEDING) FROM orders", ["BIGINT"]),
    ("SELECT SUM(amount) OVER (ORDER BY quantity RANGE ? PRECEDING) FROM orders", ["INTEGER"]),
    ("SELECT SUM(amount) FILTER (WHERE status = ?) FROM orders", ["VARCHAR"]),
    ("SELECT id FROM orders ORDER BY id OFFSET ? ROWS FETCH NEXT ? ROWS ONLY", ["BIGINT", "BIGINT"]),
    ("INSERT INTO orders (id, amount) SELECT order_id, ? FROM lines", ["DOUBLE"]),
    ("INSERT INTO orders (id, amount) SELECT ?, ? UNION ALL SELECT 1, 2", ["BIGINT", "DOUBLE"]),
    ("INSERT INTO orders (id, amount) VALUES (?, (SELECT MAX(amount) FROM orders WHERE id < ?))", ["BIGINT", "BIGINT"]),
    ("UPDATE orders SET amount = l.price * ? FROM lines l WHERE l.line = ?", ["DECIMAL(10, 2)", "INTEGER"]),
    ("DELETE FROM orders USING lines l WHERE l.order_id = id AND l.line > ?", ["INTEGER"]),
]


@pytest.mark.parametrize(("text", "types"), PARAMETER_TYPES, ids=[case[0] for case in PARAMETER_TYPES])
def test_a_parameter_takes_its_type_from_its_place(text: str, types: list[str] | None) -> None:
    if types is None:
        with pytest.raises(SqlError, match="the type of this parameter cannot be told"):
            bound(text)
        return
    found = bound(text)
    assert [str(type_) for type_ in found.parameters] == types
    assert found.parameter_names == ()


def _limit(text: str) -> tuple[Expression | None, Expression | None]:
    (limit,) = (node for node in walk(bound(text).tree) if isinstance(node, logical.Limit))
    return limit.count, limit.offset


def test_question_marks_are_numbered_in_the_order_of_the_text() -> None:
    assert _limit("SELECT id FROM orders LIMIT ? OFFSET ?") == (Parameter(0, BIGINT), Parameter(1, BIGINT))
    assert _limit("SELECT id FROM orders OFFSET ? LIMIT ?") == (Parameter(1, BIGINT), Parameter(0, BIGINT))
    assert _limit("SELECT id FROM orders WHERE id = ? ORDER BY id LIMIT ?") == (Parameter(1, BIGINT), None)
    rows = next(
        node.rows
        for node in walk(bound("INSERT INTO lines VALUES (?, 1, ?), (2, ?, NULL)").tree)
        if isinstance(node, logical.Values)
    )
    price = decimal(10, 2)
    assert rows == (
        (Parameter(0, BIGINT), Literal(1, INTEGER), Parameter(1, price)),
        (Literal(2, BIGINT), Parameter(2, INTEGER), Literal(None, price)),
    )


def test_a_question_mark_in_a_string_or_a_comment_is_none() -> None:
    found = bound("SELECT '?', \"Mixed Case\" /* ? */ FROM odds WHERE code = ? -- ?")
    assert [str(type_) for type_ in found.parameters] == ["SMALLINT"]


def test_named_parameters_have_one_number_for_each_name() -> None:
    found = bound("SELECT id FROM orders WHERE amount > :least AND id = :id AND amount < :least * 2 LIMIT :many")
    assert found.parameter_names == ("least", "id", "many")
    assert found.parameters == (DOUBLE, BIGINT, BIGINT)
    assert "amount > ?0 AND id = ?1 AND amount < ?0 * 2.0" in explain_logical(found.tree)


def test_a_value_that_its_column_cannot_hold_is_bound_as_a_literal() -> None:
    statement = parse("SELECT id FROM orders WHERE quantity > ?")
    assert isinstance(statement, Query)
    found = bind(statement, CATALOG, ("public",), {0: 1.5})
    assert "Filter   quantity > 1" in explain_logical(found.tree)


def test_only_modifications_say_what_they_modify() -> None:
    assert bound("SELECT id FROM orders").modifies is None
    for text in ("DELETE FROM orders", "UPDATE orders SET paid = TRUE", "SINK INTO orders (id) VALUES (1)"):
        modified = bound(text).modifies
        assert modified is not None
        assert modified.name == "orders"


def test_column_ids_of_the_planner_come_after_those_of_the_query() -> None:
    found = bound("SELECT status, SUM(amount + 1) FROM orders GROUP BY status ORDER BY 2")
    used = {column.id for node in walk(found.tree) for column in node.columns}
    assert max(used) < found.next_column


def _names(statement: CreateMap, what: str) -> list[str]:
    return [name.text for name in getattr(statement, what)]


def test_create_table() -> None:
    statement = parse(
        'CREATE TABLE IF NOT EXISTS shop.lines (order_id BIGINT NOT NULL, "Line No" INTEGER, '
        "price DECIMAL(10, 2) NULL, "
        'name VARCHAR(20), at TIMESTAMP WITH TIME ZONE, rate DOUBLE PRECISION, PRIMARY KEY (order_id, "Line No")) '
        "PARTITION BY (order_id);"
    )
    assert isinstance(statement, CreateMap)
    assert (statement.name.text, statement.name.schema, statement.if_not_exists) == ("lines", "shop", True)
    assert statement.columns == (
        ColumnDefinition("order_id", BIGINT, nullable=False),
        ColumnDefinition("Line No", INTEGER),
        ColumnDefinition("price", decimal(10, 2)),
        ColumnDefinition("name", VARCHAR, length=20),
        ColumnDefinition("at", TIMESTAMP_TZ),
        ColumnDefinition("rate", DOUBLE),
    )
    assert _names(statement, "key") == ["order_id", "Line No"]
    assert _names(statement, "partitioned_by") == ["order_id"]
    assert not statement.replicated


def test_a_key_may_be_declared_at_its_column_and_a_table_be_replicated() -> None:
    statement = parse("create table t (a date primary key, b boolean) replicated")
    assert isinstance(statement, CreateMap)
    assert statement.columns == (ColumnDefinition("a", DATE), ColumnDefinition("b", BOOLEAN))
    assert _names(statement, "key") == ["a"]
    assert statement.replicated


def test_create_mapping_is_the_spelling_of_data_grids() -> None:
    statement = parse(
        "CREATE MAPPING people (__key BIGINT, name VARCHAR) TYPE IMap "
        "OPTIONS ('keyFormat' = 'bigint', 'valueFormat' = 'json-flat')"
    )
    assert isinstance(statement, CreateMap)
    assert statement.columns == (ColumnDefinition("__key", BIGINT), ColumnDefinition("name", VARCHAR))
    assert _names(statement, "key") == ["__key"]


@pytest.mark.parametrize(
    ("written", "kind"), [("", IndexType.SORTED), ("TYPE SORTED", IndexType.SORTED), ("TYPE hash", IndexType.HASH)]
)
def test_create_index(written: str, kind: IndexType) -> None:
    statement = parse(f"CREATE INDEX i ON orders (amount, id) {written}")
    assert isinstance(statement, CreateIndex)
    assert (statement.name.text, statement.map.text, statement.type) == ("i", "orders", kind)
    assert [column.text for column in statement.columns] == ["amount", "id"]


def test_other_statements() -> None:
    assert parse("SHOW partitions") == Show("PARTITIONS")
    drop: Any = parse("DROP TABLE IF EXISTS orders")
    assert isinstance(drop, DropMap)
    assert drop.if_exists
    for text in ("SET Engine = spark", "SET engine TO spark"):
        option = parse(text)
        assert isinstance(option, SetOption)
        assert (option.option, option.value) == ("engine", "spark")
    for word, mode in (("", ExplainMode.PLAN), ("LOGICAL", ExplainMode.LOGICAL), ("memo", ExplainMode.MEMO)):
        explain = parse(f"EXPLAIN {word} SELECT 1")
        assert isinstance(explain, Explain)
        assert explain.mode is mode
