"""Shortcuts: statements that touch one row by its key, or few rows by an index, run without fragments.

`compile_shortcut` looks whether a plan has the shape, and makes a function of the parameters from it once. The function
gives None where the values do not fit the types, or where an index finds more than a few rows: then the statement goes
the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError
from remuda.exec.bounds import compile_lookups, pruned_partitions
from remuda.expr import Expression, Literal, Parameter, columns_of, compile_row, evaluate_constant
from remuda.grid.parameters import exact_converter
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.plan import physical
from remuda.plan.logical import Operation
from remuda.plan.traits import Convention

if TYPE_CHECKING:
    from remuda.plan.fragments import Plan
    from remuda.storage import MapStore, Store

Values = tuple[Any, ...]
Shortcut = Callable[[Values], Result | None]

MOST_ROWS = 1_000
"""Rows that an index read may give as tuples; for more, Arrow's kernels are cheaper, long as they take to start."""


def compile_shortcut(plan: Plan, store: Store) -> Shortcut | None:
    """None where the plan is not a single-row statement by key."""
    top = plan.tree.input
    match top:
        case physical.Modify(operation=Operation.INSERT | Operation.SINK, input=physical.Values(rows=(row,))):
            return _compile_write(plan, top, row, store)
        case physical.Modify(operation=Operation.UPDATE | Operation.DELETE):
            return _compile_change(plan, top, store)
    if plan.tree.columns != top.columns:
        return None
    scan, assignments = _scan_below(top)
    match scan:
        case physical.KeyLookup() if _is_one_key(scan) and scan.traits.convention is Convention.LOCAL:
            return _compile_select(plan, scan, assignments, store)
        case physical.IndexScan(direction=physical.Direction.UNORDERED) if len(plan.fragments) == 1:
            return _compile_index_select(plan, scan, assignments, store)
    return None


def _scan_below(node: Any) -> tuple[Any, tuple[Expression, ...] | None]:
    """What stands below an optional exchange and projection, and what is projected from its rows."""
    assignments: tuple[Expression, ...] | None = None
    while isinstance(node, physical.RootExchange | physical.Project):
        if isinstance(node, physical.Project):
            if assignments is not None:
                return None, None
            assignments = tuple(item.expression for item in node.assignments)
        node = node.input
    return node, assignments


def _is_one_key(node: physical.KeyLookup) -> bool:
    return node.is_single and all(isinstance(points.values[0], Parameter | Literal) for points in node.key)


def _key_reader(node: physical.KeyLookup) -> Callable[[Values], Any]:
    """From the parameters' values to the key as storage writes it; None where a part of it is NULL."""
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


def _value_converter(plan: Plan) -> Callable[[Values], Values | None]:
    """From what the user gave to stored values; None where the number or the type of one does not fit."""
    converters = [exact_converter(type_) for type_ in plan.parameters]
    count = len(converters)
    if plan.parameter_names:
        return lambda _: None
    if count == 1:
        (only,) = converters

        def convert_one(values: Values) -> Values | None:
            if len(values) != 1:
                return None
            try:
                return (only(values[0]),)
            except SqlError:
                return None

        return convert_one

    def convert(values: Values) -> Values | None:
        if len(values) != count:
            return None
        try:
            return tuple([converter(value) for converter, value in zip(converters, values, strict=True)])
        except SqlError:
            return None

    return convert


def _compile_select(
    plan: Plan, lookup: physical.KeyLookup, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    definition = lookup.map
    map_store = store.map(definition)
    find = map_store.lookup
    row = _RowComputation(lookup, assignments)
    read_key, convert, shape = _key_reader(lookup), _value_converter(plan), RowShape(plan.columns)
    positions, compute = row.positions, row.compute

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        key = read_key(values)
        found = None if key is None else find(key, positions)
        if found is None:
            return Result(shape, [])
        if compute is None:
            return Result(shape, [found])
        computed = compute(found, values)
        return Result(shape, [] if computed is None else [computed])

    return run


def _compile_index_select(
    plan: Plan, scan: physical.IndexScan, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    """Few rows through an index, read one by one."""
    map_store = store.map(scan.map)
    index, partition_filter = scan.index.id, scan.pruning
    row = _RowComputation(scan, assignments)
    convert, lookups_of, shape = _value_converter(plan), compile_lookups(scan.bounds), RowShape(plan.columns)
    positions, compute = row.positions, row.compute

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        partitions = None if partition_filter is None else pruned_partitions(scan.map, partition_filter, values)
        found: list[Values] = []
        sources = map_store.snapshot().sources
        for lookup in lookups_of(values):
            for source in sources:
                entries = source.positions(index, lookup, partitions)
                if len(entries) + len(found) > MOST_ROWS:
                    return None
                if len(entries):
                    found.extend(source.rows_at(positions, entries))
        if compute is not None:
            computed = [compute(each, values) for each in found]
            found = [each for each in computed if each is not None]
        return Result(shape, found)

    return run


class _RowComputation:
    """What happens between a stored row and the result's row: the remainder of the filter, and the projection."""

    def __init__(
        self, lookup: physical.KeyLookup | physical.IndexScan, assignments: tuple[Expression, ...] | None
    ) -> None:
        delivered = {column.id for column in lookup.columns}
        extra = [column for id_, column in columns_of(lookup.remainder).items() if id_ not in delivered]
        read = (*lookup.columns, *extra)
        layout = {column.id: place for place, column in enumerate(read)}
        self.positions = tuple(lookup.map.position(column.name) for column in read)
        self._passes = None if lookup.remainder is None else compile_row(lookup.remainder, layout)
        expressions = assignments if assignments is not None else lookup.columns
        self._items = [compile_row(expression, layout) for expression in expressions]
        self._is_plain = assignments is None and lookup.remainder is None

    @property
    def compute(self) -> Callable[[Values, Values], Values | None] | None:
        if self._is_plain:
            return None
        passes, items = self._passes, self._items

        def compute(row: Values, values: Values) -> Values | None:
            if passes is not None and not passes(row, values):
                return None
            return tuple([item(row, values) for item in items])

        return compute


def _compile_write(plan: Plan, node: physical.Modify, row: tuple[Expression, ...], store: Store) -> Shortcut | None:
    """`INSERT INTO m VALUES (?, ?)` and `SINK INTO m VALUES (?, ?)` of one row."""
    if any(column.hidden for column in node.map.columns):
        return None  # the long way makes the key
    map_store = store.map(node.map)
    write: Callable[[list[Values]], object] = map_store.insert if node.operation is Operation.INSERT else map_store.put
    items = [compile_row(expression, {}) for expression in row]
    convert = _value_converter(plan)

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        write([tuple([item((), values) for item in items])])
        return Result.of_update(1)

    return run


def _compile_change(plan: Plan, node: physical.Modify, store: Store) -> Shortcut | None:
    """`UPDATE m SET ... WHERE key = ?` and `DELETE FROM m WHERE key = ?`."""
    lookup, assignments = _scan_below(node.input)
    if not (isinstance(lookup, physical.KeyLookup) and _is_one_key(lookup)):
        return None
    map_store: MapStore = store.map(node.map)
    row = _RowComputation(lookup, assignments)
    read_key, convert = _key_reader(lookup), _value_converter(plan)
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
                        map_store.put([changed])
        return Result.of_update(count)

    return run
