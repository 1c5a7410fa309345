"""Prune unused columns: part of the rewrite, before the rules run, and once more after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from remuda.dataclass import replace
from remuda.expr import columns_of
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.walk import with_inputs
from remuda.rules.normalize.project import narrowest
from remuda.rules.tree_properties import matches_at_most_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.expr import Column
    from remuda.plan.logical import LogicalNode


def trim_columns(tree: logical.Root) -> logical.Root:
    """Trim every operator to the columns that operators above it name, or that it needs itself and passes on.

    What has nothing to trim stays the same object.
    """
    needed = {column.id for column in tree.columns} | {key.column for key in tree.collation}
    trimmed = with_inputs(tree, (trim(tree.input, needed),))
    assert isinstance(trimmed, logical.Root)
    return trimmed


def trim(node: Any, needed: set[int]) -> LogicalNode:
    """Trim a tree to the columns that the operators above name; `needed` are their ids."""
    tree: LogicalNode = node
    match tree:
        case logical.Scan():
            kept = tuple(column for column in tree.columns if column.id in needed) or (narrowest(tree.columns),)
            return tree if len(kept) == len(tree.columns) else replace(tree, columns=kept)
        case logical.Values():
            return _trim_values(tree, needed)
        case logical.Filter():
            return _over(tree, trim(tree.input, needed | columns_of(tree.condition).keys()))
        case logical.Project():
            return _trim_project(tree, needed)
        case logical.Aggregate():
            return _trim_aggregate(tree, needed)
        case logical.Sort() | logical.Limit():
            return _over(tree, trim(tree.input, needed | {key.column for key in tree.collation}))
        case logical.Join() | logical.Apply():
            return _trim_join(tree, needed)
        case logical.Union():
            return _trim_union(tree, needed)
        case logical.Window():
            return _trim_window(tree, needed)
        case logical.Expand():
            return _trim_expand(tree, needed)
        case logical.Series():
            # How many values there are decides how many rows: the column stays, read or not.
            return _over(tree, trim(tree.input, needed | columns_of(*tree.call.arguments).keys()))
        case logical.Recursive():
            # What the step computes may depend on every column of the rows before, and so may which rows are new.
            parts = zip(tree.inputs, tree.sources, strict=True)
            return _over(tree, *(trim(part, _ids(source)) for part, source in parts))
        case logical.WorkingTable():
            return tree
        case logical.Modify():
            return _over(tree, trim(tree.input, _ids(tree.input.columns)))
        case logical.Root():
            return trim_columns(tree)
        case _:
            assert_never(tree)


def _over(node: LogicalNode, *trimmed: LogicalNode) -> LogicalNode:
    over: LogicalNode = with_inputs(node, trimmed)
    return over


def _places(columns: tuple[Column, ...], needed: set[int]) -> list[int]:
    """Return the ordinals of the needed columns; at least one, so that there are rows."""
    return [ordinal for ordinal, column in enumerate(columns) if column.id in needed] or [0]


def _trim_values(node: logical.Values, needed: set[int]) -> logical.Values:
    kept = _places(node.columns, needed)
    if len(kept) >= len(node.columns):
        return node
    rows = tuple(tuple(row[ordinal] for ordinal in kept) for row in node.rows)
    return logical.Values(tuple(node.columns[ordinal] for ordinal in kept), rows)


def _trim_project(node: logical.Project, needed: set[int]) -> LogicalNode:
    kept = tuple(item for item in node.assignments if item.column.id in needed) or node.assignments[:1]
    below = trim(node.input, set(columns_of(*(item.expression for item in kept))))
    return _over(node, below) if len(kept) == len(node.assignments) else logical.Project(below, kept)


def _trim_aggregate(node: logical.Aggregate, needed: set[int]) -> LogicalNode:
    """Keys stay, for they decide what the rows are; without keys one call stays, for the row to have a column."""
    calls = tuple(call for call in node.calls if call.column.id in needed)
    if not calls and not node.keys:
        calls = node.calls[:1]
    below = trim(node.input, _ids(node.keys).union(*(call.needed for call in calls)))
    return _over(node, below) if len(calls) == len(node.calls) else logical.Aggregate(below, node.keys, calls)


def _trim_join(node: logical.Join | logical.Apply, needed: set[int]) -> LogicalNode:
    """Remove a join that only adds unused columns: MARK whose mark is unused, LEFT that finds one match at most.

    Not a LEFT join that may find two, for it doubles left rows, nor SINGLE, which may be an error.
    """
    if isinstance(node, logical.Join):
        is_unread = needed.isdisjoint(column.id for column in node.columns[len(node.left.columns) :])
        if is_unread and (node.kind is JoinKind.MARK or (node.kind is JoinKind.LEFT and matches_at_most_once(node))):
            return trim(node.left, needed)
    below = needed | columns_of(node.condition, node.compared).keys()
    return _over(node, trim(node.left, below), trim(node.right, below))


def _trim_union(node: logical.Union, needed: set[int]) -> LogicalNode:
    """Keep the same ordinals of all inputs."""
    kept = _places(node.columns, needed)
    columns = tuple(node.columns[ordinal] for ordinal in kept)
    sources = tuple(tuple(source[ordinal] for ordinal in kept) for source in node.sources)
    trimmed = tuple(trim(part, _ids(source)) for part, source in zip(node.inputs, sources, strict=True))
    return _over(node, *trimmed) if columns == node.columns else logical.Union(trimmed, columns, sources)


def _trim_window(node: logical.Window, needed: set[int]) -> LogicalNode:
    """Drop an unused call, and with the last one the operator: it neither adds nor drops rows."""
    calls = tuple(call for call in node.calls if call.column.id in needed)
    if not calls:
        return trim(node.input, needed)
    arguments = columns_of(*(argument for call in calls for argument in call.arguments)).keys()
    below = needed - {call.column.id for call in calls} | arguments
    trimmed = trim(node.input, below | _ids(node.partition) | {key.column for key in node.order})
    return _over(node, trimmed) if len(calls) == len(node.calls) else replace(node, input=trimmed, calls=calls)


def _trim_expand(node: logical.Expand, needed: set[int]) -> LogicalNode:
    kept = _places(node.columns, needed)
    columns = tuple(node.columns[ordinal] for ordinal in kept)
    projections = tuple(tuple(projection[ordinal] for ordinal in kept) for projection in node.projections)
    below = trim(node.input, set(columns_of(*(value for projection in projections for value in projection))))
    return _over(node, below) if columns == node.columns else logical.Expand(below, columns, projections)


def _ids(columns: Iterable[Column]) -> set[int]:
    return {column.id for column in columns}
