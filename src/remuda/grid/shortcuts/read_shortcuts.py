"""Reads that are compiled into a function: one row by its key, few rows by an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from remuda.exec.scan.concrete_bounds import compile_lookups, pruned_partitions
from remuda.exec.scan.index_choice import FEW_ROWS, by_candidates, choose_index
from remuda.expr import Parameter
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.shortcuts.shortcut_parts import RowComputation, Shortcut, Values, key_reader, value_converter
from remuda.plan.bounds import End, Interval, Points
from remuda.storage import index_read, row_projection

if TYPE_CHECKING:
    import numpy as np

    from remuda.expr import Expression
    from remuda.plan import physical
    from remuda.plan.fragments import Plan
    from remuda.storage import IndexLookup, IndexRead, Lookup, MapSnapshot, RowProjection, Store

MOST_ROWS = 1_000
"""Rows that an index read may give as tuples; for more, Arrow's kernels are cheaper, long as they take to start."""

Rows = Iterable[Any]
Find = Callable[["IndexLookup", "MapSnapshot", Values, int], Rows | None]
"""From the snapshot and the values to the rows found, in the form they are asked for; None where they are more than the
number."""


def compile_key_select(
    plan: Plan, lookup: physical.KeyLookup, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    find = store.map(lookup.map).find
    row = RowComputation(lookup, assignments)
    read_key, convert, shape = key_reader(lookup), value_converter(plan), RowShape(plan.columns)
    compute, finish = row.compute, shape.row
    projection = row_projection(row.positions, shape.row_class if compute is None else None)
    if compute is None and len(lookup.key) == 1 and isinstance(only := lookup.key[0].values[0], Parameter):
        return _compile_point_select(only.index, projection, find, convert, shape)

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        key = read_key(values)
        found = None if key is None else find(key, projection)
        if found is None:
            return Result(shape, ())
        if compute is not None:
            computed = compute(found, values)
            if computed is None:
                return Result(shape, ())
            found = finish(computed)
        return Result(shape, None, (found,))

    return run


def _compile_point_select(
    index: int,
    projection: RowProjection,
    find: Callable[[Any, RowProjection], Any],
    convert: Callable[[Values], Values | None],
    shape: RowShape,
) -> Shortcut:
    """Compile `SELECT columns FROM m WHERE key = ?` to one function: a call to read the key is 4 % of a lookup."""

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        key = values[index]
        found = None if key is None else find(key, projection)
        return Result(shape, ()) if found is None else Result(shape, None, (found,))

    return run


def compile_index_select(
    plan: Plan, scan: physical.IndexScan, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    """Few rows through an index."""
    if scan.candidates:
        return _compile_chosen_select(plan, scan, assignments, store)
    snapshot = store.map(scan.map).snapshot
    row = RowComputation(scan, assignments)
    shape, compute = RowShape(plan.columns), row.compute
    is_finished = compute is None and scan.pruning is None
    read = index_read(scan.index.id, row_projection(row.positions, shape.row_class if is_finished else None))
    convert, ends = value_converter(plan), _ends(scan)
    if is_finished and ends is not None:
        return _compile_range_select(ends, read, snapshot, convert, shape)
    find = _compile_find(scan, read)

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        taken = snapshot()
        version = taken.version
        # The lookup without a call where it is there already, as it nearly always is.
        found = find(version.index_lookups.get(read) or version.index_lookup(read), taken, values, MOST_ROWS)
        if found is None:
            return None
        if is_finished:
            return Result(shape, None, found)
        if compute is not None:
            found = [computed for each in found if (computed := compute(each, values)) is not None]
        return Result(shape, found)

    return run


class _Way(NamedTuple):
    """One of several indexes by which rows may be found, and what becomes of them."""

    read: IndexRead
    find: Find
    compute: Callable[[Values, Values], Values | None] | None

    def find_in(self, snapshot: MapSnapshot, values: Values, most: int) -> Rows | None:
        version = snapshot.version
        lookup = version.index_lookups.get(self.read) or version.index_lookup(self.read)
        return self.find(lookup, snapshot, values, most)

    def finished(self, found: Rows, values: Values) -> Rows:
        compute = self.compute
        if compute is None:
            return found
        return [computed for each in found if (computed := compute(each, values)) is not None]


def _compile_chosen_select(
    plan: Plan, scan: physical.IndexScan, assignments: tuple[Expression, ...] | None, store: Store
) -> Shortcut:
    """Few rows through the first index that has no more than a few entries, else through that with the fewest."""
    snapshot, shape, convert = store.map(scan.map).snapshot, RowShape(plan.columns), value_converter(plan)
    scans = by_candidates(scan)
    ways: list[_Way] = []
    for each in scans:
        row = RowComputation(each, assignments)
        read = index_read(each.index.id, row_projection(row.positions, None))
        ways.append(_Way(read, _compile_find(each, read), row.compute))

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        taken = snapshot()
        for way in ways:
            found = way.find_in(taken, values, FEW_ROWS)
            if found is not None:
                return Result(shape, way.finished(found, values))
        choice = choose_index(scans, taken, values)
        way = ways[choice.number]
        found = None if choice.entries > MOST_ROWS else way.find_in(taken, values, MOST_ROWS)
        return None if found is None else Result(shape, way.finished(found, values))

    return run


Ends = tuple[int, bool, int, bool]
"""The parameters that are the ends of a range, by number, each with whether it is included."""


def _ends(scan: physical.IndexScan) -> Ends | None:
    """Return the ends of one range, or one value, of the first column of an index that serves ranges, or None."""
    if scan.pruning is not None or not scan.index.type.serves.ranges:
        return None
    match scan.bounds:
        case (Interval(lows=(End(Parameter() as low, from_low),), highs=(End(Parameter() as high, to_high),)),):
            return low.index, from_low, high.index, to_high
        case (Points(values=(Parameter() as only,), or_null=False),):
            return only.index, True, only.index, True
    return None


def _compile_range_select(
    ends: Ends,
    read: IndexRead,
    snapshot: Callable[[], MapSnapshot],
    convert: Callable[[Values], Values | None],
    shape: RowShape,
) -> Shortcut:
    """Compile the most frequent form to one function: a call takes a tenth of the five microseconds of a row."""
    first, from_low, last, to_high = ends

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        start, stop = values[first], values[last]
        if start is None or stop is None:
            return Result(shape, ())
        taken = snapshot()
        version = taken.version
        lookup = version.index_lookups.get(read) or version.index_lookup(read)
        found = lookup.between(start, from_low, stop, to_high, taken.length, MOST_ROWS)
        return None if found is None else Result(shape, None, found)

    return run


def _compile_find(scan: physical.IndexScan, read: IndexRead) -> Find:
    pruning, ends = scan.pruning, _ends(scan)
    if ends is not None:
        first, from_low, last, to_high = ends

        def find_between(lookup: IndexLookup, snapshot: MapSnapshot, values: Values, most: int) -> Rows | None:
            start, stop = values[first], values[last]
            if start is None or stop is None:
                return ()
            return lookup.between(start, from_low, stop, to_high, snapshot.length, most)

        return find_between
    lookups_of = compile_lookups(scan.bounds)

    def find(lookup: IndexLookup, snapshot: MapSnapshot, values: Values, most: int) -> Rows | None:
        partitions = None if pruning is None else pruned_partitions(scan.map, pruning, values)
        if partitions is not None:
            return _find_in_partitions(snapshot, read, lookups_of(values), partitions, most)
        return lookup.find(lookups_of(values), snapshot.length, most)

    return find


def _find_in_partitions(
    snapshot: MapSnapshot, read: IndexRead, lookups: list[Lookup], partitions: np.ndarray, most: int
) -> Rows | None:
    found: list[Values] = []
    for lookup in lookups:
        for source in snapshot.sources:
            entries = source.positions(read.index, lookup, partitions)
            if len(entries) + len(found) > most:
                return None
            found.extend(source.rows_at(read.projection.columns, entries))
    return found
