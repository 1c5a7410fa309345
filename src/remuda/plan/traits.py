"""The physical properties that an operator delivers and that its consumer may require.

Each trait is a small value with an "any", a `satisfies` that is a partial order, and a short print form.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


class Convention(Enum):
    """Which backend runs the operator."""

    LOCAL = "LOCAL"
    SPARK = "SPARK"

    __hash__ = object.__hash__


class DistributionKind(Enum):
    ANY = "ANY"
    ROOT = "ROOT"
    PARTITIONED = "PARTITIONED"
    REPLICATED = "REPLICATED"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Distribution:
    """Where the rows are.

    ROOT: on the coordinator. PARTITIONED: each row on exactly one member; `columns`, where not empty, are the ids of
    columns on whose equal values rows are together, in the order of the partition hash. REPLICATED: all rows on
    every member, the coordinator included.
    """

    kind: DistributionKind
    columns: tuple[int, ...] = ()

    def satisfies(self, required: Distribution) -> bool:
        """Test whether a distribution satisfies another.

        >>> REPLICATED.satisfies(ROOT), Distribution(DistributionKind.PARTITIONED, (1,)).satisfies(PARTITIONED)
        (True, True)
        """
        if required.kind is DistributionKind.ANY or self == required:
            return True
        if required.kind is DistributionKind.ROOT:
            return self.kind is DistributionKind.REPLICATED
        return self.kind is required.kind and not required.columns

    def __str__(self) -> str:
        return self.kind.value


ANY_DISTRIBUTION = Distribution(DistributionKind.ANY)
ROOT = Distribution(DistributionKind.ROOT)
PARTITIONED = Distribution(DistributionKind.PARTITIONED)
REPLICATED = Distribution(DistributionKind.REPLICATED)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of an order. NULL is the lowest value unless the query says otherwise."""

    column: int
    descending: bool = False
    nulls_first: bool = True


Collation = tuple[SortKey, ...]
"""The order of rows; the empty one is "any"."""


def collation_satisfies(delivered: Collation, required: Collation) -> bool:
    """Test whether an order satisfies another: each order satisfies its own prefixes.

    >>> collation_satisfies((SortKey(1), SortKey(2)), (SortKey(1),)), collation_satisfies((), (SortKey(1),))
    (True, False)
    """
    return delivered[: len(required)] == required


@dataclass(frozen=True, slots=True)
class Traits:
    convention: Convention = Convention.LOCAL
    distribution: Distribution = ANY_DISTRIBUTION
    collation: Collation = ()

    def satisfies(self, required: Traits) -> bool:
        return (
            self.convention is required.convention
            and self.distribution.satisfies(required.distribution)
            and collation_satisfies(self.collation, required.collation)
        )

    def in_order(self, collation: Collation) -> Traits:
        """Return the same with this order: the same object where it has none and none is wanted, as mostly."""
        return self if collation == self.collation else Traits(self.convention, self.distribution, collation)

    def describe(self, columns: Sequence[str] = ()) -> str:
        """Print where rows are, `columns` being the names that decide it, and which backend makes them.

        >>> Traits(Convention.SPARK, PARTITIONED).describe(["a", "b"])
        '[PARTITIONED by a, b, SPARK]'
        """
        by = f" by {', '.join(columns)}" if columns else ""
        return f"[{self.distribution}{by}{', SPARK' if self.convention is Convention.SPARK else ''}]"

    def __str__(self) -> str:
        return self.describe()
