"""One scan of a map for all inputs of a union that are index scans of it: what runs where they have many entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.expr import Call, conjunction, conjuncts, is_volatile
from remuda.plan import physical
from remuda.rules.normalize.simplify import factor_common
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.expr import Expression


def scan_of_union(node: physical.Union) -> physical.MapScan | None:
    """Return a scan with the rows of all inputs; None where these are not index scans of one map in no order."""
    scans: tuple[Any, ...] = node.inputs
    if len(scans) < 2 or not all(map(_may_scan, scans)):
        return None
    first = scans[0]
    is_one_map = all(each.map.id == first.map.id for each in scans)
    same_columns = all(columns == node.columns for each in scans for columns in (each.columns, *node.sources))
    if not is_one_map or not same_columns or any(is_volatile(each.filter) for each in scans):
        return None
    return physical.MapScan(first.map, node.columns, _any_of([each.filter for each in scans]), None, first.traits)


def _may_scan(node: Any) -> bool:
    return isinstance(node, physical.IndexScan) and node.scan_cutover is not None and node.filter is not None


def _any_of(filters: Sequence[Expression]) -> Expression:
    """Return the OR of filters. A branch need not say that it is not an earlier one: a scan delivers a row once.

    `g = 2 AND (f = 1) IS NOT TRUE` is `g = 2` beside `f = 1`; what every branch says stands apart, as in the statement.
    """
    branches: list[tuple[Expression, ...]] = []
    for filter_ in filters:
        parts = conjuncts(filter_)
        left = [part for part in parts if not any(_is_left_to(earlier, part, parts) for earlier in branches)]
        branches.append(tuple(left))
    together = Call("or", tuple(whole for branch in branches if (whole := conjunction(branch)) is not None), BOOLEAN)
    return factor_common(together) or together


def _is_left_to(branch: Sequence[Expression], part: Expression, parts: Sequence[Expression]) -> bool:
    """Test whether a row that fails only this IS NOT TRUE of all parts passes a branch."""
    if not isinstance(part, Call) or part.function != "is not true":
        return False
    return {*parts, *conjuncts(part.arguments[0])}.issuperset(branch)
