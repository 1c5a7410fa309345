"""Normalise rules for trees with a Union at the root, and for a projection over one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Column
from remuda.plan import logical
from remuda.plan.logical import Assignment

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode, Relation


def merge_unions(node: LogicalNode) -> LogicalNode | None:
    """Union(Union(a, b), c) → Union(a, b, c). Not over a distinct UNION below: an Aggregate stands between."""
    if not isinstance(node, logical.Union) or not any(isinstance(part, logical.Union) for part in node.inputs):
        return None
    inputs: list[Relation] = []
    sources: list[tuple[Column, ...]] = []
    for part, source in zip(node.inputs, node.sources, strict=True):
        if not isinstance(part, logical.Union):
            inputs.append(part)
            sources.append(source)
            continue
        ordinals = [part.columns.index(column) for column in source]
        inputs.extend(part.inputs)
        sources.extend(tuple(below[ordinal] for ordinal in ordinals) for below in part.sources)
    return logical.Union(tuple(inputs), node.columns, tuple(sources))


def merge_renaming_into_union(node: LogicalNode) -> LogicalNode | None:
    """Project(Union(a, b), d := c) → Union(a, b) that calls its columns so. Only where nothing is computed."""
    if not (isinstance(node, logical.Project) and isinstance(node.input, logical.Union) and node.assignments):
        return None
    union = node.input
    ordinals: list[int] = []
    for item in node.assignments:
        if not isinstance(item.expression, Column):
            return None
        ordinals.append(union.columns.index(item.expression))
    sources = tuple(tuple(source[ordinal] for ordinal in ordinals) for source in union.sources)
    return logical.Union(union.inputs, node.columns, sources)


def merge_renaming_below_union(node: LogicalNode) -> LogicalNode | None:
    """Union(Project(x, b := a), ...) → Union(x, ...) that reads `a`. Only where nothing is computed."""
    if not isinstance(node, logical.Union):
        return None
    inputs: list[Relation] = []
    sources: list[tuple[Column, ...]] = []
    for part, source in zip(node.inputs, node.sources, strict=True):
        below = part
        names = source
        if isinstance(part, logical.Project):
            meanings = {item.column.id: item.expression for item in part.assignments}
            renamed = [meaning for column in source if isinstance(meaning := meanings[column.id], Column)]
            if len(renamed) == len(source):
                below, names = part.input, tuple(renamed)
        inputs.append(below)
        sources.append(names)
    if all(one is other for one, other in zip(inputs, node.inputs, strict=True)):
        return None
    return logical.Union(tuple(inputs), node.columns, tuple(sources))


def remove_union_of_one(node: LogicalNode) -> LogicalNode | None:
    """Union(a) → Project(a, the union's names)."""
    if not isinstance(node, logical.Union) or len(node.inputs) != 1:
        return None
    pairs = zip(node.columns, node.sources[0], strict=True)
    return logical.Project(node.inputs[0], tuple(Assignment(column, source) for column, source in pairs))


def remove_empty_input(node: LogicalNode) -> LogicalNode | None:
    """Union(a, no rows, b) → Union(a, b)."""
    if not isinstance(node, logical.Union):
        return None
    kept = [
        (part, source)
        for part, source in zip(node.inputs, node.sources, strict=True)
        if not (isinstance(part, logical.Values) and not part.rows)
    ]
    if len(kept) == len(node.inputs):
        return None
    if not kept:
        return logical.Values(node.columns, ())
    return logical.Union(tuple(part for part, _ in kept), node.columns, tuple(source for _, source in kept))
