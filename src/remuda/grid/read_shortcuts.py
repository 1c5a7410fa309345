"""Reads that are compiled into a function: one row by its key, few rows by an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from remuda.exec.bounds import compile_lookups, pruned_partitions
from remuda.expr import Parameter
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.shortcut_parts import RowComputation, Shortcut, Values, key_reader, value_converter
from remuda.plan.bounds import End, Interval

if TYPE_CHECKING:
    import numpy as np

    from remuda.expr import Expression
    from remuda.plan import physical
    from remuda.plan.fragments import Plan
    from remuda.storage import Lookup, MapSnapshot, Store

MOST_ROWS = 1_000
"""Rows that an index read may give as tuples; for more, Arrow's kernels are cheaper, long as they take to start."""

Rows = Iterable[Values]
Find = Callable[["MapSnapshot", Values], Rows | None]
"""From the snapshot and the values to the rows found, in stored form; None where they are too many."""


def compile_key_select(
    plan: Plan, lookup: physical.KeyLookup, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    definition = lookup.map
    map_store = store.map(definition)
    find = map_store.lookup
    row = RowComputation(lookup, assignments)
    read_key, convert, shape = key_reader(lookup), value_converter(plan), RowShape(plan.columns)
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


def compile_index_select(
    plan: Plan, scan: physical.IndexScan, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    """Few rows through an index."""
    map_store = store.map(scan.map)
    row = RowComputation(scan, assignments)
    convert, find, shape = value_converter(plan), _compile_find(scan, row.positions), RowShape(plan.columns)
    compute = row.compute

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        found = find(map_store.snapshot(), values)
        if found is None:
            return None
        if compute is not None:
            found = [computed for each in found if (computed := compute(each, values)) is not None]
        return Result(shape, found)

    return run


def _compile_find(scan: physical.IndexScan, columns: tuple[int, ...]) -> Find:
    """One range of one column is asked for as it is; everything else as lookups."""
    index, pruning = scan.index.id, scan.pruning
    match scan.bounds:
        case (Interval(lows=(End(Parameter() as low, from_low),), highs=(End(Parameter() as high, to_high),)),) if (
            pruning is None
        ):
            first, last = low.index, high.index

            def find_between(snapshot: MapSnapshot, values: Values) -> Rows | None:
                start, stop = values[first], values[last]
                if start is None or stop is None:
                    return ()
                finder = snapshot.version.index_finder(index, columns)
                return finder.between(start, from_low, stop, to_high, snapshot.length, MOST_ROWS)

            return find_between
    lookups_of = compile_lookups(scan.bounds)

    def find(snapshot: MapSnapshot, values: Values) -> Rows | None:
        partitions = None if pruning is None else pruned_partitions(scan.map, pruning, values)
        if partitions is not None:
            return _find_in_partitions(snapshot, index, columns, lookups_of(values), partitions)
        return snapshot.version.index_finder(index, columns).find(lookups_of(values), snapshot.length, MOST_ROWS)

    return find


def _find_in_partitions(
    snapshot: MapSnapshot, index: str, columns: tuple[int, ...], lookups: list[Lookup], partitions: np.ndarray
) -> Rows | None:
    found: list[Values] = []
    for lookup in lookups:
        for source in snapshot.sources:
            entries = source.positions(index, lookup, partitions)
            if len(entries) + len(found) > MOST_ROWS:
                return None
            found.extend(source.rows_at(columns, entries))
    return found
