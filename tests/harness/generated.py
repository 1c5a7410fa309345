"""Rows for a map, made by a query that DuckDB answers: data sets of any size in one line of a test file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    import pyarrow as pa


def rows_of(query: str) -> pa.Table:
    """The answer as one Arrow table; the same rows in the same order each time.

    >>> rows_of("SELECT i AS k, i / 2 AS v FROM range(3) AS r(i)").column_names
    ['k', 'v']
    """
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        return connection.sql(query).to_arrow_table()
