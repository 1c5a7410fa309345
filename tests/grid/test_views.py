"""Views: checked when created, kept in the folder, and plans that use one are made anew when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE items (id BIGINT, price INTEGER, PRIMARY KEY (id))")
        opened.sql("INSERT INTO items VALUES (1, 10), (2, 20), (3, 30)")
        yield opened


def rows(grid: Any, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in grid.sql(text, *parameters))


def refused(grid: Any, text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        grid.sql(text).fetchall()
    return caught.value


def test_a_cached_plan_is_not_used_after_its_view_was_replaced(grid: Any) -> None:
    grid.sql("CREATE VIEW cheap AS SELECT id FROM items WHERE price < 25")
    assert rows(grid, "SELECT id FROM cheap") == [(1,), (2,)]
    grid.sql("CREATE OR REPLACE VIEW cheap AS SELECT id FROM items WHERE price < 15")
    assert rows(grid, "SELECT id FROM cheap") == [(1,)]


def test_a_plan_depends_on_the_views_within_its_views(grid: Any) -> None:
    grid.sql("CREATE VIEW inner_view AS SELECT id FROM items WHERE price < 25")
    grid.sql("CREATE VIEW outer_view AS SELECT id FROM inner_view WHERE id > 1")
    assert rows(grid, "SELECT id FROM outer_view") == [(2,)]
    grid.sql("CREATE OR REPLACE VIEW inner_view AS SELECT id FROM items")
    assert rows(grid, "SELECT id FROM outer_view") == [(2,), (3,)]


def test_a_filter_above_a_view_reaches_its_map(grid: Any) -> None:
    grid.sql("CREATE VIEW doubled AS SELECT id, price * 2 AS twice FROM items")
    assert "partitionedBy=[id]" in grid.explain("SELECT twice FROM doubled WHERE id = ?")
    assert rows(grid, "SELECT twice FROM doubled WHERE id = ?", 2) == [(40,)]


def test_views_are_kept_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "shop.remuda"
    with remuda.open(folder) as grid:
        grid.sql("CREATE TABLE items (id BIGINT, price INTEGER, PRIMARY KEY (id))")
        grid.sql("INSERT INTO items VALUES (1, 10), (2, 20)")
        grid.sql("CREATE VIEW dear (number) AS SELECT id FROM items WHERE price > 15")
        grid.sql("CREATE VIEW gone AS SELECT 1 AS x")
        grid.sql("DROP VIEW gone")
    with remuda.open(folder) as grid:
        assert [tuple(row) for row in grid.sql("SELECT number FROM dear")] == [(2,)]
        assert [row.name for row in grid.sql("SHOW VIEWS")] == ["dear"]
    with remuda.open(folder, read_only=True) as grid:
        assert [tuple(row) for row in grid.sql("SELECT number FROM dear")] == [(2,)]


def test_a_view_over_a_dropped_map_says_so_where_it_is_named(grid: Any) -> None:
    grid.sql("CREATE VIEW v AS SELECT price FROM items")
    grid.sql("DROP TABLE items")
    error = refused(grid, "SELECT 1 + price\nFROM v")
    assert error.code is ErrorCode.OBJECT_NOT_FOUND
    assert error.message == "in the view v: unknown table: items"
    assert error.position is not None
    assert (error.position.line, error.position.column) == (2, 6)


def test_a_view_whose_map_has_fewer_columns_now(grid: Any) -> None:
    grid.sql("CREATE VIEW v (a, b) AS SELECT * FROM items")
    grid.sql("DROP TABLE items")
    grid.sql("CREATE TABLE items (id BIGINT, PRIMARY KEY (id))")
    assert refused(grid, "SELECT a FROM v").message == "the view v names 2 columns, its query has 1 now"


def test_an_error_while_a_view_is_computed_is_shown_where_it_is_named(grid: Any) -> None:
    grid.sql("CREATE VIEW v AS SELECT 100 / (price - 10) AS share FROM items")
    error = refused(grid, "SELECT share FROM v")
    assert error.code is ErrorCode.DATA_EXCEPTION
    assert error.position is not None
    assert error.position.column == 19


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE VIEW v AS SELECT prize FROM items", "unknown column: prize"),
        ("CREATE VIEW v AS SELECT id FROM items WHERE id = ?", "a view takes no parameters"),
        ("CREATE VIEW v (a, b) AS SELECT id FROM items", "the query has 1 columns, 2 names are given"),
        ("CREATE VIEW v AS SELECT id, id FROM items", "the view would have two columns id"),
        ("CREATE VIEW v (a, A) AS SELECT id, price FROM items", "the view would have two columns A"),
        ("CREATE VIEW items AS SELECT 1", "there is a table items already"),
        ("CREATE VIEW other.v AS SELECT 1", "unknown schema: other"),
        ("CREATE VIEW v AS SELECT * FROM v", "in the view v: the view v is made of itself"),
        ("CREATE TABLE w (id BIGINT, PRIMARY KEY (id))", "there is a view w already"),
        ("CREATE VIEW w AS SELECT 1", "the view w exists already"),
        ("CREATE OR REPLACE VIEW w AS SELECT * FROM u", "in the view u: in the view w: the view u is made of itself"),
        ("DROP TABLE w", "w is a view"),
        ("DROP VIEW items", "items is a table"),
        ("DROP VIEW nothing", "unknown view: nothing"),
        ("INSERT INTO w VALUES (1)", "w is a view: only tables can be changed"),
        ("UPDATE w SET id = 1", "w is a view: only tables can be changed"),
        ("DELETE FROM w", "w is a view: only tables can be changed"),
    ],
)
def test_views_that_cannot_be_are_refused_with_a_place(grid: Any, text: str, message: str) -> None:
    grid.sql("CREATE VIEW w AS SELECT id FROM items")
    grid.sql("CREATE VIEW u AS SELECT id FROM w")
    error = refused(grid, text)
    assert error.message == message
    assert error.position is not None
    assert rows(grid, "SELECT id FROM u") == [(1,), (2,), (3,)]


def test_information_schema_is_always_that_of_now(grid: Any) -> None:
    text = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    assert rows(grid, text) == [("items",)]
    grid.sql("CREATE VIEW v AS SELECT id AS number FROM items")
    assert rows(grid, text) == [("items",), ("v",)]
    assert rows(grid, "SELECT column_name FROM information_schema.columns WHERE table_name = 'v'") == [("number",)]
    assert text not in [row.sql for row in grid.sql("SHOW PLANS")]


def test_information_schema_lists_indexes_keys_and_schemata(grid: Any) -> None:
    grid.sql("CREATE INDEX items_price ON items (price, id) TYPE SORTED")
    assert rows(grid, "SELECT index_name, column_name, ordinal_position FROM information_schema.indexes") == [
        ("items_price", "id", 2),
        ("items_price", "price", 1),
    ]
    assert rows(grid, "SELECT column_name FROM information_schema.key_column_usage") == [("id",)]
    assert rows(grid, "SELECT schema_name FROM information_schema.schemata") == [("information_schema",), ("public",)]
