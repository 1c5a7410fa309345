"""Statements that hold a query: what is read of them, and where their parts stand in the text."""

from __future__ import annotations

import pytest

from remuda.catalog import DEFAULT_SCHEMA, Catalog, ViewDefinition
from remuda.sql import (
    Analyze,
    CopyFrom,
    CopyTo,
    CreateMapAs,
    CreateView,
    DropView,
    Explain,
    ExplainFormat,
    ExplainMode,
    Query,
    Show,
    bind,
    parse,
)
from tests.sql.catalogs import CATALOG, bound


@pytest.mark.parametrize(
    ("text", "mode", "analyze", "shape"),
    [
        ("EXPLAIN SELECT 1", ExplainMode.PLAN, False, ExplainFormat.TEXT),
        ("EXPLAIN ANALYZE SELECT 1", ExplainMode.PLAN, True, ExplainFormat.TEXT),
        ("EXPLAIN LOGICAL SELECT 1", ExplainMode.LOGICAL, False, ExplainFormat.TEXT),
        ("EXPLAIN (FORMAT JSON) SELECT 1", ExplainMode.PLAN, False, ExplainFormat.JSON),
        ("EXPLAIN (ANALYZE, FORMAT json) SELECT 1", ExplainMode.PLAN, True, ExplainFormat.JSON),
        ("EXPLAIN (ANALYZE false, MEMO, FORMAT TEXT) SELECT 1", ExplainMode.MEMO, False, ExplainFormat.TEXT),
        ("EXPLAIN (SELECT 1)", ExplainMode.PLAN, False, ExplainFormat.TEXT),
        ("EXPLAIN ANALYZE INSERT INTO orders (id) VALUES (1)", ExplainMode.PLAN, True, ExplainFormat.TEXT),
    ],
)
def test_explain(text: str, mode: ExplainMode, analyze: bool, shape: ExplainFormat) -> None:
    statement = parse(text)
    assert isinstance(statement, Explain)
    assert (statement.mode, statement.analyze, statement.format) == (mode, analyze, shape)


def test_views_keep_the_text_of_their_query_alone() -> None:
    view = parse('CREATE OR REPLACE VIEW public.v (a, "B c") AS\n  SELECT id, amount FROM orders -- all\n;')
    assert isinstance(view, CreateView)
    assert (view.name.text, view.name.schema) == ("v", "public")
    assert [column.text for column in view.columns] == ["a", "B c"]
    assert view.text == "SELECT id, amount FROM orders"
    assert view.or_replace
    assert isinstance(parse("DROP VIEW IF EXISTS v"), DropView)
    assert parse("SHOW VIEWS") == Show("VIEWS")


def test_a_query_within_a_statement_stands_where_it_stood() -> None:
    text = "CREATE TABLE t (PRIMARY KEY (id))\n  REPLICATED AS (SELECT id FROM orders WHERE id > ?)"
    created = parse(text)
    assert isinstance(created, CreateMapAs)
    assert created.replicated
    assert [name.text for name in created.key] == ["id"]
    assert created.text.index("SELECT") == text.index("SELECT")
    again = parse(created.text)
    assert isinstance(again, Query)
    assert again.parameters.spans == created.query.parameters.spans


def test_copy() -> None:
    into = parse("COPY public.orders FROM 'a b.csv' WITH (MODE upsert, FORMAT CSV)")
    assert isinstance(into, CopyFrom)
    assert (into.name.schema, into.path, into.format, into.mode) == ("public", "a b.csv", "csv", "upsert")
    out = parse("COPY (SELECT (1)) TO 'x.parquet'")
    assert isinstance(out, CopyTo)
    assert (out.path, out.format) == ("x.parquet", None)
    whole = parse("COPY orders TO 'x' (FORMAT json)")
    assert isinstance(whole, CopyTo)
    assert bind(whole.query, CATALOG, (DEFAULT_SCHEMA,)).tree.names[0] == "id"
    assert whole.text == "TABLE orders"


def test_analyze() -> None:
    assert parse("ANALYZE") == Analyze(None)
    statement = parse("ANALYZE public.orders")
    assert isinstance(statement, Analyze)
    assert statement.name is not None
    assert statement.name.text == "orders"


def test_table_is_a_query() -> None:
    assert bound("TABLE lines").tree.names == ("order_id", "line", "price")
    assert bound("SELECT order_id FROM (TABLE lines) q").tree.names == ("order_id",)
    assert bound("TABLE lines UNION TABLE lines").tree.names == ("order_id", "line", "price")


def with_view(text: str, *columns: str, name: str = "v", catalog: Catalog = CATALOG) -> Catalog:
    return catalog.with_view(ViewDefinition(f"id of {name}", DEFAULT_SCHEMA, name, text, (DEFAULT_SCHEMA,), columns))


def test_a_statement_says_which_views_it_is_made_of() -> None:
    catalog = with_view("SELECT id FROM v", name="w", catalog=with_view("SELECT id, amount FROM orders"))
    query = bound("SELECT a.id FROM w a JOIN w b ON a.id = b.id", catalog)
    assert {view.name for view in query.views} == {"v", "w"}
    assert query.cacheable
    assert bound("SELECT id FROM orders", catalog).views == ()
    assert not bound("SELECT * FROM information_schema.views", catalog).cacheable


def test_names_of_with_and_of_aliases_hide_views_and_views_hide_nothing() -> None:
    catalog = with_view("SELECT id FROM orders", "number")
    assert bound("SELECT * FROM v", catalog).tree.names == ("number",)
    assert bound("WITH v AS (SELECT 1 AS x) SELECT * FROM v", catalog).tree.names == ("x",)
    assert bound("WITH v AS (SELECT * FROM v) SELECT * FROM v", catalog).tree.names == ("number",)
    assert bound("WITH orders AS (SELECT 1 AS x) SELECT * FROM v", catalog).tree.names == ("number",)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT count(*), Sum(amount) AS total FROM orders", ("COUNT(*)", "total")),
        ("SELECT count_if(paid), median(amount) FROM orders", ("COUNT_IF(paid)", "MEDIAN(amount)")),
        ("SELECT id + ? FROM orders", ("id + ?0",)),
        ("SELECT id + :more FROM orders", ("id + :more",)),
        ("SELECT SUM(amount) OVER (ORDER BY id DESC) FROM orders", ("SUM(amount) OVER (ORDER BY id DESC)",)),
        ("SELECT id AS a FROM orders UNION SELECT line AS b FROM lines", ("a",)),
        ("SELECT * FROM (VALUES (1, 2)) AS v (x)", ("x", "column2")),
    ],
)
def test_result_columns_are_called_by_their_text(text: str, names: tuple[str, ...]) -> None:
    assert bound(text).tree.names == names
