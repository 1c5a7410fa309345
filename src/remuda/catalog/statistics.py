"""What the planner may know about the values in a map."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.types.normalized_key import comparable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.catalog.histogram import Histogram


@dataclass(frozen=True)
class ColumnStatistics:
    """What is known of a column; shares are shares of all rows, those in which the column is NULL included.

    `minimum` and `maximum` are in stored form; None where no value is known.
    """

    distinct: int | None = None
    null_share: float = 0.0
    minimum: Any = None
    maximum: Any = None
    histogram: Histogram | None = None
    """Of the values that are neither NULL nor among the most common ones; None where nothing is known of them."""
    common: tuple[tuple[Any, float], ...] = ()
    """The most common values with their shares, the greatest first."""

    @cached_property
    def shares(self) -> dict[tuple[int, Any], float]:
        """The shares of the most common values by what they are compared by."""
        return {comparable(value): share for value, share in self.common}

    @cached_property
    def rest(self) -> float:
        """The share of the rows whose value is not NULL and not among the most common ones."""
        return max(0.0, 1.0 - self.null_share - sum(share for _, share in self.common))

    @property
    def rest_distinct(self) -> int | None:
        """How many values there are beside the most common ones."""
        return None if self.distinct is None else max(0, self.distinct - len(self.common))

    @property
    def rare(self) -> float | None:
        """The share of one value that is not among the most common ones; None where the values are not counted."""
        if self.distinct is None:
            return None
        return self.rest / max(1, self.distinct - len(self.common))

    @property
    def is_known(self) -> bool:
        """Whether ranges of values can be told from the most common values and the histogram."""
        return self.histogram is not None or bool(self.common)


class ColumnRelations:
    """What is known of columns together: nothing here, a sample's answers where there are rows."""

    def combinations(self, columns: tuple[str, ...]) -> float | None:  # noqa: ARG002
        """Return of how many combinations of values, equally frequent, rows have one; None where that is not known."""
        return None

    def dependent(self, columns: tuple[str, ...], by: tuple[str, ...]) -> float | None:  # noqa: ARG002
        """Return how many combinations the values of all have; None where the columns do not depend on each other."""
        return None

    def ascends(self, column: str, key: str) -> bool:  # noqa: ARG002
        """Return whether the column's values ascend with those of the key, as years do with numbered days."""
        return False


@dataclass(frozen=True, slots=True)
class MapStatistics:
    rows: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    relations: ColumnRelations = field(default_factory=ColumnRelations)
    filter_shares: dict[object, float] = field(default_factory=dict, compare=False, repr=False)
    """The shares of the rows that pass the filters of the query that is planned: each is asked for several times."""
