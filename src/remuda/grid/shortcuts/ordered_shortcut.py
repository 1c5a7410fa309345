"""`SELECT columns FROM m [WHERE ...] ORDER BY indexed LIMIT n` as a function: the first rows of a SORTED index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.exec.scan.concrete_bounds import compile_lookups
from remuda.expr import Expression, Literal, Parameter
from remuda.expr.constant import compile_constant
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.shortcuts.shortcut_parts import RowComputation, Shortcut, Values, scan_below, value_converter
from remuda.plan import physical
from remuda.plan.traits import Convention
from remuda.storage import index_read, row_projection

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.plan.fragments import Plan
    from remuda.storage import Store

MOST_ROWS = 1_000
"""Rows that are read as tuples; more are read by the operator."""


def compile_ordered_select(plan: Plan, limit: physical.Limit, store: Store) -> Shortcut | None:
    """Read the first rows through a SORTED index without a filter beyond its bounds; None for any other LIMIT."""
    scan, assignments = scan_below(_below(limit))
    count, offset = _number(limit.count), _number(limit.offset)
    if (
        not isinstance(scan, physical.IndexScan)
        or scan.direction is physical.Direction.UNORDERED
        or scan.residual is not None
        or scan.pruning is not None
        or scan.candidates
        or scan.traits.convention is not Convention.LOCAL
        or limit.count is None
        or count is None
        or offset is None
    ):
        return None
    below = dict(zip([column.id for column in limit.input.columns], assignments or scan.columns, strict=True))
    row = RowComputation(scan, tuple(below[column.id] for column in plan.tree.columns))
    shape, compute = RowShape(plan.columns), row.compute
    read = index_read(scan.index.id, row_projection(row.positions, shape.row_class if compute is None else None))
    snapshot, convert, lookups_of = store.map(scan.map).snapshot, value_converter(plan), compile_lookups(scan.bounds)
    descending = scan.direction is physical.Direction.DESCENDING

    def run(given: Values) -> Result | None:
        values = convert(given)
        if values is None:
            return None
        wanted, skipped = count(values), offset(values)
        # NULL and negative numbers are for the operator, which has the errors.
        if wanted is None or skipped is None or wanted < 0 or skipped < 0 or wanted + skipped > MOST_ROWS:
            return None
        taken = snapshot()
        version = taken.version
        lookup = version.index_lookups.get(read) or version.index_lookup(read)
        found = lookup.first(lookups_of(values), taken.length, wanted + skipped, descending=descending)
        if found is None:
            return None
        if skipped:
            del found[:skipped]
        if compute is None:
            return Result(shape, None, found)
        return Result(shape, [computed for each in found if (computed := compute(each, values)) is not None])

    return run


def _below(limit: physical.Limit) -> Any:
    """Return what a LIMIT reads, without the LIMIT of each member: their first rows have the first ones of all."""
    match limit.input:
        case physical.RootExchange(input=physical.Limit(input=below)):
            return below
        case below:
            return below


def _number(expression: Expression | None) -> Callable[[Values], Any] | None:
    """Return the function that gives a LIMIT or an OFFSET, 0 where there is none; None for one that is computed."""
    if expression is None:
        return lambda _: 0
    return compile_constant(expression) if isinstance(expression, Literal | Parameter) else None
