"""What shortcuts are made of: the shape of the plan, the values, the key, and what becomes of a stored row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError
from remuda.expr import Column, Expression, Literal, Parameter, columns_of, compile_row, evaluate_constant
from remuda.generated_code import generate, tuple_of
from remuda.grid.parameters import exact_converter
from remuda.grid.result import Result
from remuda.plan import physical
from remuda.types import convert_each, stored_as_is

if TYPE_CHECKING:
    from remuda.plan.fragments import Plan

Values = tuple[Any, ...]
Shortcut = Callable[[Values], Result | None]
"""A statement as a function of the values given for its parameters; None where it must go the long way."""


def scan_below(node: Any) -> tuple[Any, tuple[Expression, ...] | None]:
    """Return the node below an optional exchange and projection, and the projected columns."""
    assignments: tuple[Expression, ...] | None = None
    while isinstance(node, physical.RootExchange | physical.Project):
        if isinstance(node, physical.Project):
            if assignments is not None:
                return None, None
            assignments = tuple(item.expression for item in node.assignments)
        node = node.input
    return node, assignments


def is_one_key(node: physical.KeyLookup) -> bool:
    return node.is_single and all(isinstance(points.values[0], Parameter | Literal) for points in node.key)


def key_reader(node: physical.KeyLookup) -> Callable[[Values], Any]:
    """Return the function from the parameters' values to the stored key; it gives None for a part that is NULL."""
    parts = [points.values[0] for points in node.key]
    if len(parts) == 1:
        only = parts[0]
        if isinstance(only, Parameter):
            index = only.index
            return lambda values: values[index]
        constant = evaluate_constant(only)
        return lambda _: constant
    readers = [compile_row(part, {}) for part in parts]

    def read(values: Values) -> Any:
        key = tuple([reader((), values) for reader in readers])
        return None if None in key else key

    return read


def value_converter(plan: Plan) -> Callable[[Values], Values | None]:
    """Return the function from the user's values to stored ones; it gives None for a wrong number or type.

    Nearly always they are stored as they stand. That is asked of all of them in one expression: a call for each takes
    three times as long.
    """
    if plan.parameter_names or plan.reads_clock:
        return lambda _: None
    count = len(plan.parameters)
    convert_all = convert_each([exact_converter(type_) for type_ in plan.parameters])

    def convert(given: Values) -> Values | None:
        if len(given) != count:
            return None
        try:
            return convert_all(given)
        except SqlError:
            return None

    tests = [stored_as_is(type_, f"given[{ordinal}]") for ordinal, type_ in enumerate(plan.parameters)]
    if None in tests:
        return convert
    are_as_is = " and ".join([f"len(given) == {count}", *filter(None, tests)])
    return generate("given", f"given if {are_as_is} else convert(given)", {"convert": convert})


class RowComputation:
    """What happens between a stored row and the result's row: the remainder of the filter, and the projection."""

    def __init__(
        self, lookup: physical.KeyLookup | physical.IndexScan, assignments: tuple[Expression, ...] | None
    ) -> None:
        expressions = lookup.columns if assignments is None else assignments
        picked = [expression for expression in expressions if isinstance(expression, Column)]
        self._is_plain = lookup.residual is None and len(picked) == len(expressions)
        read = picked if self._is_plain else _columns_to_read(lookup)
        layout = {column.id: ordinal for ordinal, column in enumerate(read)}
        self.positions = tuple(lookup.map.position(column.name) for column in read)
        self._passes = None if lookup.residual is None else compile_row(lookup.residual, layout)
        self._items = [compile_row(expression, layout) for expression in expressions]
        self._picked = [layout[each.id] if isinstance(each, Column) else None for each in expressions]
        """Which ordinal of the row each item is; None for one that is computed."""

    @property
    def compute(self) -> Callable[[Values, Values], Values | None] | None:
        """From a stored row and the parameters' values to the result's row, None if the filter rejects it; no function
        at all where the row is what is read."""
        if self._is_plain:
            return None
        passes, items = self._passes, self._items
        names = {f"item_{ordinal}": item for ordinal, item in enumerate(items)}
        row = tuple_of(
            f"item_{ordinal}(row, values)" if picked is None else f"row[{picked}]"
            for ordinal, picked in enumerate(self._picked)
        )
        project = generate("row, values", row, names)
        if passes is None:
            return project
        return lambda row, values: project(row, values) if passes(row, values) else None


def _columns_to_read(lookup: physical.KeyLookup | physical.IndexScan) -> list[Column]:
    """Return the columns that are delivered, then those that only the filter needs."""
    delivered = {column.id for column in lookup.columns}
    return [*lookup.columns, *(column for id_, column in columns_of(lookup.residual).items() if id_ not in delivered)]
