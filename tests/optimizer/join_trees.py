"""Join trees for tests of the optimizer, written without SQL: maps by name, and the columns that they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from remuda.catalog import (
    DEFAULT_SCHEMA,
    ColumnDefinition,
    ColumnStatistics,
    IndexDefinition,
    MapDefinition,
    MapStatistics,
)
from remuda.expr import Column, Expression, call, conjunction
from remuda.optimizer import Optimized, OptimizerSettings, optimize
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.traits import Convention
from remuda.types import BIGINT


@dataclass(slots=True)
class Shop:
    """Makes scans of maps whose columns are all BIGINT, with the statistics that the test wants."""

    statistics: dict[str, MapStatistics] = field(default_factory=dict)
    next_column: int = 0

    def scan(
        self,
        name: str,
        rows: int,
        columns: dict[str, int],
        *,
        key: str | tuple[str, ...] = "id",
        partitioned_by: tuple[str, ...] = (),
        indexes: tuple[IndexDefinition, ...] = (),
        replicated: bool = False,
    ) -> logical.Scan:
        """`columns` has the number of distinct values of each; the key's is the number of rows."""
        keys = (key,) if isinstance(key, str) else key
        names = list(dict.fromkeys([*keys, *columns]))
        definition = MapDefinition(
            f"id of {name}",
            DEFAULT_SCHEMA,
            name,
            tuple(ColumnDefinition(each, BIGINT, nullable=each not in keys) for each in names),
            keys,
            partitioned_by or keys,
            partitions=271,
            indexes=indexes,
            replicated=replicated,
        )
        known = {each: ColumnStatistics(distinct=columns.get(each, rows)) for each in names}
        self.statistics[definition.id] = MapStatistics(rows, known)
        return logical.Scan(definition, tuple(self.column(each) for each in names))

    def column(self, name: str) -> Column:
        self.next_column += 1
        return Column(self.next_column - 1, name, BIGINT)

    def plan(
        self,
        tree: Any,
        *,
        members: int = 1,
        conventions: tuple[Convention, ...] = (Convention.LOCAL,),
        disabled: frozenset[str] = frozenset(),
    ) -> Optimized:
        root = logical.Root(tree, tree.columns, tuple(column.name for column in tree.columns))
        settings = OptimizerSettings(members, conventions, disabled, checked=True)
        return optimize(root, self.next_column, lambda definition: self.statistics[definition.id], settings)


def column(relation: Any, name: str) -> Column:
    return next(each for each in relation.columns if each.name == name)


def equal(left: Column, right: Column) -> Expression:
    return call("=", left, right)


def join(left: Any, right: Any, *conditions: Expression, kind: JoinKind = JoinKind.INNER) -> logical.Join:
    return logical.Join(kind, left, right, conjunction(conditions))
