"""Where the value stands that a map did not allow, found once it is known that there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import Span
from remuda.sql.parse.parse import parse
from remuda.sql.parse.spans import span_of
from remuda.sql.parse.statements import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import Catalog, SearchPath


def span_of_refused(
    text: str, row: int, columns: Sequence[str], catalog: Catalog, search_path: SearchPath
) -> Span | None:
    """Return the span of the expressions of a refused value; where they are not known for sure, of the map's name.

    `row` counts the rows of VALUES. It says nothing after ON CONFLICT, where some were left out before they were
    counted, and where a value may come from VALUES or from SET.
    """
    statement = parse(text)
    match statement.tree if isinstance(statement, Query) else None:
        case exp.Update() as tree:
            values = _values_set(tree.expressions, columns)
        case exp.Insert() as tree:
            names = _columns_given(tree, catalog, search_path)
            given = _row_given(tree, row)
            is_known = len(given) == len(names) and not _may_be_set(tree, columns)
            values = [value for name, value in zip(names, given, strict=True) if name in columns] if is_known else []
        case _:
            return None
    return _span_of(values) or span_of(_target(tree))


def _span_of(nodes: Sequence[Any]) -> Span | None:
    positions = [position for node in nodes if (position := span_of(node)) is not None]
    return (
        Span(min(position.start for position in positions), max(position.end for position in positions))
        if positions
        else None
    )


def _values_set(assignments: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    folded = {name.casefold() for name in columns}
    return [entry.expression for entry in assignments if entry.this.name.casefold() in folded]


def _may_be_set(tree: exp.Insert, columns: Sequence[str]) -> bool:
    conflict: Any = tree.args.get("conflict")
    return conflict is not None and bool(_values_set(conflict.expressions, columns))


def _row_given(tree: exp.Insert, row: int) -> list[Any]:
    """Return the expressions of a row of VALUES, or of the only SELECT; nothing where the row is not known."""
    match tree.expression:
        case exp.Values() as rows:
            is_counted = len(rows.expressions) == 1 or not (tree.args.get("conflict") or tree.args.get("alternative"))
            if not is_counted or row >= len(rows.expressions):
                return []
            values = rows.expressions[row]
            return list(values.expressions) if isinstance(values, exp.Tuple) else [values]
        case exp.Select() as select:
            entries: list[Any] = select.expressions
            return [] if any(entry.is_star for entry in entries) else list(entries)
        case _:
            return []


def _target(tree: Any) -> Any:
    return tree.this.this if isinstance(tree.this, exp.Schema) else tree.this


def _columns_given(tree: exp.Insert, catalog: Catalog, search_path: SearchPath) -> list[str]:
    table = _target(tree)
    definition = catalog.find_map(table.name, (table.db,) if table.db else search_path)
    if definition is None:
        return []
    if not isinstance(tree.this, exp.Schema):
        return [column.name for column in definition.visible_columns]
    found = [definition.find_column(name.name) for name in tree.this.expressions]
    return ["" if column is None else column.name for column in found]
