"""Small physical trees, right as they are, to be taken apart or broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remuda.catalog import DEFAULT_SCHEMA, ColumnDefinition, IndexDefinition, IndexType, MapDefinition
from remuda.expr import TRUE, Call, Column, Literal
from remuda.plan import physical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.physical import Direction, Phase
from remuda.plan.traits import PARTITIONED, ROOT, Convention, Distribution, DistributionKind, SortKey, Traits
from remuda.types import BIGINT, DOUBLE

ID, AMOUNT = Column(0, "id", BIGINT, nullable=False), Column(1, "amount", DOUBLE)
INDEX = IndexDefinition("index", "by_amount", ("amount",), IndexType.SORTED)
MAP = MapDefinition(
    "map",
    DEFAULT_SCHEMA,
    "orders",
    (ColumnDefinition("id", BIGINT, nullable=False), ColumnDefinition("amount", DOUBLE)),
    ("id",),
    ("id",),
    partitions=271,
    indexes=(INDEX,),
)
BY_AMOUNT = (SortKey(AMOUNT.id),)
ON_MEMBERS = Traits(Convention.LOCAL, PARTITIONED)
BY_ID = Traits(Convention.LOCAL, Distribution(DistributionKind.PARTITIONED, (ID.id,)))
ON_SPARK = Traits(Convention.SPARK, PARTITIONED)
AT_ROOT = Traits(Convention.LOCAL, ROOT)
TEN = Literal(10, BIGINT)
COUNTED = AggregateCall(Column(7, "count", BIGINT), "count")
STATE = Column(8, "count.count", BIGINT)


def scan(traits: Traits = ON_MEMBERS) -> physical.MapScan:
    return physical.MapScan(MAP, (ID, AMOUNT), None, None, traits)


def ordered_scan() -> physical.IndexScan:
    traits = replace(ON_MEMBERS, collation=BY_AMOUNT)
    return physical.IndexScan(MAP, INDEX, (ID, AMOUNT), (), None, Direction.ASCENDING, None, traits)


def exchange(source: Any, traits: Traits = AT_ROOT) -> physical.RootExchange:
    return physical.RootExchange(source, traits)


def local(source: Any, rule: physical.PartialRule | None = None) -> physical.LocalExchange:
    return physical.LocalExchange(source, 1_000, replace(source.traits, collation=()), rule)


def root(source: Any, traits: Traits = AT_ROOT) -> physical.Root:
    columns = source.columns
    return physical.Root(source, columns, tuple(column.name for column in columns), traits)


def keep_all(source: Any, traits: Traits) -> physical.Filter:
    return physical.Filter(source, TRUE, traits)


def positive(source: Any, column: Column, traits: Traits) -> physical.Filter:
    return physical.Filter(source, Call(">", (column, Literal(0.0, DOUBLE)), TRUE.type), traits)


def count(source: Any, phase: Phase, traits: Traits, keys: tuple[Column, ...] = ()) -> physical.HashAggregate:
    states = () if phase is Phase.COMPLETE else ((STATE,),)
    return physical.HashAggregate(source, keys, (COUNTED,), states, phase, traits)


def ordered(traits: Traits) -> Traits:
    return replace(traits, collation=BY_AMOUNT)
