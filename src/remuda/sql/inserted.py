"""Where in an INSERT the value stands that its map did not allow, found once it is known that there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from remuda.errors import Span
from remuda.sql.parse import parse
from remuda.sql.places import place_of
from remuda.sql.statements import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import Catalog, SearchPath


def place_of_inserted(
    text: str, row: int, columns: Sequence[str], catalog: Catalog, search_path: SearchPath
) -> Span | None:
    """The values given for these columns in a row of VALUES; None where the rows come from elsewhere."""
    statement = parse(text)
    tree = statement.tree if isinstance(statement, Query) else None
    if not isinstance(tree, exp.Insert) or not isinstance(tree.expression, exp.Values):
        return None
    rows = tree.expression.expressions
    if row >= len(rows):
        return None
    values = rows[row].expressions if isinstance(rows[row], exp.Tuple) else [rows[row]]
    places = [
        place
        for name, value in zip(_columns_given(tree, catalog, search_path), values, strict=False)
        if name in columns and (place := place_of(value)) is not None
    ]
    if not places:
        return None
    return Span(min(place.start for place in places), max(place.end for place in places))


def _columns_given(tree: exp.Insert, catalog: Catalog, search_path: SearchPath) -> list[str]:
    target = tree.this
    table = target.this if isinstance(target, exp.Schema) else target
    definition = catalog.find_map(table.name, (table.db,) if table.db else search_path)
    if definition is None:
        return []
    if not isinstance(target, exp.Schema):
        return [column.name for column in definition.visible_columns]
    found = [definition.find_column(name.name) for name in target.expressions]
    return ["" if column is None else column.name for column in found]
