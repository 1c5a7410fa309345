"""Removal of columns that nobody above uses: part of the rewrite, before the rules run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from remuda.expr import columns_of
from remuda.plan import logical
from remuda.rules.project import narrowest

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def trim_columns(tree: logical.Root) -> logical.Root:
    """Every operator delivers only columns that some operator above it names."""
    needed = {column.id for column in tree.columns} | {key.column for key in tree.collation}
    return replace(tree, input=_trim(tree.input, needed))  # type: ignore[arg-type]


def _trim(node: LogicalNode, needed: set[int]) -> LogicalNode:
    """`needed` are the ids of the columns that the operators above name."""
    match node:
        case logical.Scan():
            kept = tuple(column for column in node.columns if column.id in needed)
            return replace(node, columns=kept or (narrowest(node.columns),))
        case logical.Values():
            return node
        case logical.Filter():
            return replace(node, input=_trim(node.input, needed | set(columns_of(node.condition))))  # type: ignore[arg-type]
        case logical.Project():
            kept_items = tuple(item for item in node.assignments if item.column.id in needed) or node.assignments[:1]
            below = set(columns_of(*(item.expression for item in kept_items)))
            return logical.Project(_trim(node.input, below), kept_items)  # type: ignore[arg-type]
        case logical.Aggregate():
            calls = tuple(call for call in node.calls if call.column.id in needed)
            if not calls and not node.keys:
                calls = node.calls[:1]
            arguments = {call.argument.id for call in calls if call.argument is not None}
            below = {column.id for column in node.keys} | arguments
            return logical.Aggregate(_trim(node.input, below), node.keys, calls)  # type: ignore[arg-type]
        case logical.Sort():
            order = {key.column for key in node.collation}
            return replace(node, input=_trim(node.input, needed | order))  # type: ignore[arg-type]
        case logical.Limit():
            order = {key.column for key in node.collation}
            return replace(node, input=_trim(node.input, needed | order))  # type: ignore[arg-type]
        case logical.Modify():
            return replace(node, input=_trim(node.input, {column.id for column in node.input.columns}))  # type: ignore[arg-type]
        case logical.Root():
            return trim_columns(node)
        case _:
            assert_never(node)
