"""Shortcuts: statements that touch one row by its key, or few rows by an index or in its order, run without fragments.

`compile_shortcut` looks whether a plan has the shape, and makes a function of the parameters from it once. The function
gives None where the values do not fit the types, or where an index finds more than a few rows: then the statement goes
the long way.

Members share the store. What one call finds in all partitions is not asked of each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Expression, Parameter, compile_row
from remuda.grid.result import Result
from remuda.grid.shortcuts.shortcut_parts import (
    RowComputation,
    Shortcut,
    Values,
    is_one_key,
    key_reader,
    scan_below,
    value_converter,
)
from remuda.plan import physical
from remuda.plan.logical import Operation
from remuda.plan.traits import Convention

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.plan.fragments import Plan
    from remuda.storage import MapStore, Store


def compile_shortcut(plan: Plan, store: Store) -> Shortcut | None:
    """Compile a single-row statement by key; None for any other plan."""
    top = plan.tree.input
    if isinstance(top, physical.Commit):
        top = plan.modification
    match top:
        case physical.Modify(operation=Operation.INSERT | Operation.SINK, input=physical.Values(rows=(row,))):
            return _compile_write(plan, top, row, store)
        case physical.Modify(operation=Operation.UPDATE | Operation.DELETE):
            return _compile_change(plan, top, store)
        case physical.Limit():
            from remuda.grid.shortcuts.ordered_shortcut import compile_ordered_select

            return compile_ordered_select(plan, top, store)
    if plan.tree.columns != top.columns:
        return None
    scan, assignments = scan_below(top)
    match scan:
        case physical.KeyLookup() if is_one_key(scan) and scan.traits.convention is Convention.LOCAL:
            from remuda.grid.shortcuts.read_shortcuts import compile_key_select

            return compile_key_select(plan, scan, assignments, store)
        case physical.IndexScan(direction=physical.Direction.UNORDERED) if scan.traits.convention is Convention.LOCAL:
            from remuda.grid.shortcuts.read_shortcuts import compile_index_select

            return compile_index_select(plan, scan, assignments, store)
    return None


def _compile_write(plan: Plan, node: physical.Modify, row: tuple[Expression, ...], store: Store) -> Shortcut | None:
    """Compile `INSERT INTO m VALUES (?, ?)` and `SINK INTO m VALUES (?, ?)` of one row."""
    if any(column.hidden for column in node.map.columns):
        return None  # the long way makes the key
    map_store = store.map(node.map)
    write = map_store.insert_one if node.operation is Operation.INSERT else map_store.put_one
    row_of, convert = _row_maker(row), value_converter(plan)

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        write(values if row_of is None else row_of(values))
        return Result.of_update(1)

    return run


def _row_maker(row: tuple[Expression, ...]) -> Callable[[Values], Values] | None:
    """Return the function from the parameters' values to the row; None where they are the row as they stand."""
    if all(isinstance(item, Parameter) and item.index == ordinal for ordinal, item in enumerate(row)):
        return None
    items = [compile_row(expression, {}) for expression in row]
    return lambda values: tuple([item((), values) for item in items])


def _compile_change(plan: Plan, node: physical.Modify, store: Store) -> Shortcut | None:
    """Compile `UPDATE m SET ... WHERE key = ?` and `DELETE FROM m WHERE key = ?`."""
    lookup, assignments = scan_below(node.input)
    if not (isinstance(lookup, physical.KeyLookup) and is_one_key(lookup)):
        return None
    map_store: MapStore = store.map(node.map)
    row = RowComputation(lookup, assignments)
    read_key, convert = key_reader(lookup), value_converter(plan)
    positions, compute, deletes = row.positions, row.compute, node.operation is Operation.DELETE

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        key = read_key(values)
        count = 0
        if key is not None:
            with map_store.writing():
                found = map_store.lookup(key, positions)
                changed = found if compute is None or found is None else compute(found, values)
                if changed is not None:
                    count = 1
                    if deletes:
                        map_store.delete([key])
                    else:
                        map_store.update_one(changed)
        return Result.of_update(count)

    return run
