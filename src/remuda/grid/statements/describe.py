"""DESCRIBE: the columns of a map, a view or a query, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Column
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.plan import logical
from remuda.plan.result_column import ResultColumn
from remuda.sql import bind
from remuda.types import BOOLEAN, VARCHAR

if TYPE_CHECKING:
    from remuda.grid.query_run import Call
    from remuda.sql import Describe

_COLUMNS = (
    ResultColumn("column_name", VARCHAR, nullable=False),
    ResultColumn("column_type", VARCHAR, nullable=False),
    ResultColumn("nullable", BOOLEAN, nullable=False),
    ResultColumn("key", BOOLEAN, nullable=False),
)


def describe(call: Call, statement: Describe) -> Result:
    """Return the columns of a query; `key` is true for the key columns of a map."""
    root = bind(statement.query, call.session.store.catalog, call.session.search_path).tree
    key = _key_columns(root)
    rows = [
        (name, str(column.type), column.nullable, column.id in key)
        for name, column in zip(root.names, root.columns, strict=True)
    ]
    return Result(RowShape(_COLUMNS), rows)


def _key_columns(root: logical.Root) -> set[int]:
    """Return the columns of the result that are key columns of the only map in it, unchanged."""
    match root.input:
        case logical.Project(input=logical.Scan() as scan, assignments=assignments):
            found = {column.column.id: column.expression for column in assignments}
        case logical.Scan() as scan:
            found = {column.id: column for column in scan.columns}
        case _:
            return set()
    keys = {scan.columns[position].id for position in scan.map.positions(scan.map.key)}
    return {id_ for id_, value in found.items() if isinstance(value, Column) and value.id in keys}
