"""The plan checker: refuses a physical plan whose operators' needs are not met by their inputs.

It is the last word before a plan runs, and in tests after every rule. What it finds is a bug of the planner, never a
user's mistake.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remuda.errors import ErrorCode, SqlError
from remuda.expr import Column, Expression, columns_of
from remuda.plan import logical, physical
from remuda.plan.traits import Collation, Convention, DistributionKind, SortKey, collation_satisfies
from remuda.plan.walk import inputs, walk


def check_logical(tree: logical.LogicalNode) -> None:
    """Every column used comes from the input, with its type."""
    for node in walk(tree):
        available = {column.id: column for child in inputs(node) for column in child.columns}
        if isinstance(node, logical.Scan):
            _require(
                all(node.map.find_column(column.name) for column in node.columns),
                "a scan reads columns of its map",
                node,
            )
            continue
        if isinstance(node, logical.Values):
            _require(all(len(row) == len(node.columns) for row in node.rows), "rows are as wide as their columns", node)
            continue
        for column in columns_of(*_expressions(node)).values():
            _require(available.get(column.id) == column, f"column {column.name} comes from the input", node)


def check_physical(tree: physical.Root, *, members: int) -> None:
    """Columns, distribution, collation and convention of every input fit what its consumer needs."""
    for node in walk(tree):
        for child in inputs(node):
            available = {column.id for column in child.columns}
            needed = set(columns_of(*_expressions(node))) | {key.column for key in _order(node)}
            _require(needed <= available, "every column used comes from the input", node)
            _check_convention(node, child)
            _check_distribution(node, child, members)
            _check_collation(node, child)
    _require(tree.traits.convention is Convention.LOCAL, "the result is in this process", tree)


def _check_convention(node: Any, child: Any) -> None:
    if not isinstance(node, physical.RootExchange):
        _require(node.traits.convention is child.traits.convention, "only an exchange changes the backend", node)


def _check_distribution(node: Any, child: Any, members: int) -> None:
    kind, own = child.traits.distribution.kind, node.traits.distribution.kind
    partitioned = kind is DistributionKind.PARTITIONED
    match node:
        case physical.RootExchange():
            # What every member has would arrive once from each.
            _require(partitioned, "an exchange brings together rows that are each on one member", node)
            return
        case physical.Root() | physical.Modify() | physical.Limit() | physical.TopN() | physical.Sort():
            wants_root = own is DistributionKind.ROOT
        case physical.HashAggregate(phase=physical.Phase.PARTIAL):
            wants_root = False
        case physical.HashAggregate():
            wants_root = not _is_grouped_in_place(node, child)
        case _:
            wants_root = False
    if wants_root:
        alone = partitioned and members == 1 and child.traits.convention is Convention.LOCAL
        at_root = kind in {DistributionKind.ROOT, DistributionKind.REPLICATED} or alone
        _require(at_root, "the rows are on the initiator", node)
    else:
        _require(kind is own, "only an exchange moves rows", node)


def _is_grouped_in_place(node: physical.HashAggregate, child: Any) -> bool:
    partitioned_by = child.traits.distribution.columns
    return bool(partitioned_by) and set(partitioned_by) <= {column.id for column in node.keys}


def _check_collation(node: Any, child: Any) -> None:
    if isinstance(node, physical.Sort | physical.TopN | physical.HashAggregate | physical.Modify):
        return
    promised: Collation | None = node.traits.collation
    if isinstance(node, physical.Project):
        promised = _below_project(node)
    _require(
        promised is not None and collation_satisfies(child.traits.collation, promised),
        "the input has the order that is promised",
        node,
    )


def _below_project(node: physical.Project) -> Collation | None:
    """The order that a projection promises, in columns of its input; None where it is by something it computes."""
    sources = {item.column.id: item.expression for item in node.assignments}
    keys: list[SortKey] = []
    for key in node.traits.collation:
        source = sources.get(key.column)
        if not isinstance(source, Column):
            return None
        keys.append(replace(key, column=source.id))
    return tuple(keys)


def _expressions(node: Any) -> list[Expression]:
    match node:
        case logical.Filter() | physical.Filter():
            return [node.condition]
        case logical.Project() | physical.Project():
            return [assignment.expression for assignment in node.assignments]
        case logical.Aggregate() | physical.HashAggregate():
            return _aggregate_columns(node)
        case logical.Root() | physical.Root():
            return list(node.columns)
        case _:
            return []


def _order(node: Any) -> Collation:
    """The order that an operator makes."""
    return node.collation if isinstance(node, physical.Sort | physical.TopN) else ()


def _aggregate_columns(node: logical.Aggregate | physical.HashAggregate) -> list[Expression]:
    keys: list[Expression] = list(node.keys)
    if isinstance(node, physical.HashAggregate) and node.phase is physical.Phase.FINAL:
        states: list[Column] = [column for state in node.states for column in state]
        return [*keys, *states]
    return [*keys, *(call.argument for call in node.calls if call.argument is not None)]


def _require(holds: bool, need: str, node: Any) -> None:
    if not holds:
        raise SqlError(ErrorCode.GENERIC, f"the plan is wrong at {type(node).__name__}: {need}")
