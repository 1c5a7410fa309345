"""Enforcers: operators that give rows a trait which they lack, an order or a distribution.

| required    | below, as a rule                | enforcer          |
| order       | the same without the order      | Sort              |
| ROOT        | PARTITIONED, of any backend     | RootExchange      |
| REPLICATED  | PARTITIONED                     | BroadcastExchange |
| PARTITIONED by columns | PARTITIONED          | HashExchange      |

With one member rows are where they are needed, and there is no exchange. Spark's tasks are members of their own: rows
that are there can be brought to the coordinator, but not back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass, replace
from remuda.optimizer import cost
from remuda.plan import physical
from remuda.plan.traits import PARTITIONED, ROOT, Convention, DistributionKind, Traits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.plan.physical import PhysicalNode


@dataclass(frozen=True, slots=True)
class Enforcer:
    """`below` is required of the same group; `build` puts the operator on top of it."""

    below: Traits
    build: Callable[[PhysicalNode], PhysicalNode]
    shares_work: bool = False
    """Whether the members do what is below at the same time."""
    least: float = 0.0
    """What the operator costs at least: of one that costs much nothing is looked at before there is a bound."""


def enforcers(required: Traits, conventions: tuple[Convention, ...], members: int) -> Iterator[Enforcer]:
    if required.collation:
        yield Enforcer(replace(required, collation=()), lambda source: _sort(source, required))
    several = members > 1 or required.convention is not Convention.LOCAL
    spread = Traits(required.convention, PARTITIONED)
    match required.distribution.kind:
        case DistributionKind.ROOT if required.convention is Convention.LOCAL:
            for convention in conventions:
                if convention is not Convention.LOCAL or members > 1:
                    below = Traits(convention, PARTITIONED, required.collation)
                    least = cost.SPARK_JOB if convention is Convention.SPARK else 0.0
                    yield Enforcer(below, lambda source: _to_root(source, required), shares_work=True, least=least)
        case DistributionKind.REPLICATED if several and not required.collation:
            yield Enforcer(spread, lambda source: physical.BroadcastExchange(source, required), shares_work=True)
        case DistributionKind.PARTITIONED if several and required.distribution.columns and not required.collation:
            yield Enforcer(spread, lambda source: _by_hash(source, required))


def _sort(source: Any, required: Traits) -> physical.Sort:
    return physical.Sort(source, required.collation, replace(source.traits, collation=required.collation))


def _to_root(source: Any, required: Traits) -> physical.RootExchange:
    collation = source.traits.collation if required.collation else ()
    return physical.RootExchange(source, Traits(Convention.LOCAL, ROOT, collation))


def _by_hash(source: Any, required: Traits) -> physical.HashExchange:
    by_id = {column.id: column for column in source.columns}
    keys = tuple(by_id[id_] for id_ in required.distribution.columns)
    return physical.HashExchange(source, keys, required)
