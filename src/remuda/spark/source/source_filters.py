"""Filters that Spark pushes down, as expressions of the engine. What cannot be said exactly stays with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource

from remuda.errors import SqlError
from remuda.expr import Call, Literal
from remuda.types import BOOLEAN, to_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import Filter

    from remuda.expr import Column, Expression

_COMPARISONS: dict[type[Any], str] = {
    datasource.EqualTo: "=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
}


def as_expression(pushed: Filter, columns: Mapping[str, Column]) -> Expression | None:
    """None where the filter names a field of a struct, or a value that the column's type cannot hold."""
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    column = columns.get(path[0]) if len(path) == 1 else None
    if column is None:
        return None
    match pushed:
        case datasource.IsNull():
            return Call("is null", (column,), BOOLEAN)
        case datasource.IsNotNull():
            return Call("is not null", (column,), BOOLEAN)
        case datasource.In():
            values = [_literal(value, column) for value in pushed.value]
            return None if not values or None in values else Call("in", (column, *values), BOOLEAN)  # type: ignore[arg-type]
        case _ if type(pushed) in _COMPARISONS:
            literal = _literal(pushed.value, column)  # type: ignore[attr-defined]
            return None if literal is None else Call(_COMPARISONS[type(pushed)], (column, literal), BOOLEAN)
        case _:
            return None


def _literal(value: Any, column: Column) -> Literal | None:
    if value is None:
        return None
    try:
        return Literal(to_stored(column.type, value), column.type)
    except SqlError:
        return None
