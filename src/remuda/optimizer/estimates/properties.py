"""What is known of the rows of a group: how many they are, the values of their columns, keys, places and orders.

Columns are known by their ids, so that equally named columns of two maps, or of one map scanned twice, stay apart.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import TYPE_CHECKING

from remuda.catalog import ColumnRelations, ColumnStatistics
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from remuda.expr import Column


OFTEN = 100.0
"""Where each value comes so many times, none is left out with a part of the rows."""
WORTH_ASKING = 2.0
"""So many times fewer values must be possible, that a sample is asked."""
Partitioning = tuple[int, ...]
"""Ids of columns on whose equal values rows are together without any exchange, in the order of the partition hash."""


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """No two rows have the same values in these columns, of which there are `values` combinations in all."""

    columns: frozenset[int]
    values: float
    grouped: bool = False
    """Whether they are the groups of an aggregate, and not all rows of a map."""
    extremes: frozenset[int] = frozenset()
    """The results of MIN and MAX: of the rows that a group is of, one has its extreme."""
    picked: bool = False
    """Whether another relation has picked few of its values, of which the plan does not know which they are."""

    def renamed(self, new: Mapping[int, int]) -> UniqueKey:
        """Return the same of columns under other ids, which all of the key have."""
        extremes = frozenset(new[id_] for id_ in self.extremes if id_ in new)
        return replace(self, columns=frozenset(new[id_] for id_ in self.columns), extremes=extremes)


@dataclass(frozen=True, slots=True)
class Origin:
    """Columns of one scan, which had `values` rows: their values have no more combinations.

    `told_by` has them, and those of the maps that the rows refer to by their keys, with the name of the column of the
    scan that tells their values: a customer's name is told by the customer of a sale.
    """

    columns: frozenset[int]
    values: float
    told_by: Mapping[int, str] = field(default_factory=dict)
    key: frozenset[str] = frozenset()
    relations: ColumnRelations = field(default_factory=ColumnRelations)
    reductions: tuple[tuple[frozenset[str], float], ...] = ()
    """The columns by whose values rows were left out, and the share that is left."""

    def renamed(self, new: Mapping[int, int]) -> Origin:
        """Return the same of columns under other ids, without those that have none."""
        told_by = {new[id_]: name for id_, name in self.told_by.items() if id_ in new}
        return replace(self, columns=frozenset(new[id_] for id_ in self.columns if id_ in new), told_by=told_by)

    def left(self, columns: frozenset[int], least: float, possible: float, rows: float) -> float:
        """Return how many of `least` to `possible` combinations of values are left in so many rows.

        A shop's ticket has ten lines, of one customer and one day. Of the lines of one month out of sixty a sixtieth of
        all pairs of customers and days is left, a tenth of what the lines would show if each had a customer of its own.
        A sample tells how many pairs there are. It is asked where that may change much.
        """
        most = min(possible, rows)
        share = math.prod(share for _, share in self.reductions)
        if rows > OFTEN * possible or most <= WORTH_ASKING * shown_among(least, share * least):
            return most
        if not self.told_by.keys() >= columns:
            return most
        by = frozenset[str]().union(*(names for names, _ in self.reductions))
        names = {self.told_by[id_] for id_ in columns} - by
        if not names or names | by >= self.key:
            return most
        found = self.relations.dependent(tuple(sorted(names)), tuple(sorted(by)))
        return min(most, max(1.0, shown_among(possible, found * share))) if found else most


@dataclass(frozen=True, slots=True)
class Properties:
    rows: float
    columns: Mapping[int, ColumnStatistics] = field(default_factory=dict)
    """Of the map that a column comes from, as far as its filter leaves them; a join's rows may have fewer values."""
    keys: tuple[UniqueKey, ...] = ()
    partitionings: tuple[Partitioning, ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()
    """By which columns, in turn, rows can come in order without a sort: those of SORTED indexes."""
    replicated: bool = False
    """Whether every member has all of the rows without an exchange: constants, and maps that are replicated."""
    origins: tuple[Origin, ...] = ()

    def known(self, column: Column) -> ColumnStatistics | None:
        return self.columns.get(column.id)

    def distinct(self, column: int) -> float | None:
        """Return the number of distinct values of a column in these rows."""
        known = self.columns.get(column)
        if known is None or known.distinct is None:
            return None
        return max(1.0, min(float(known.distinct), self.rows))

    def distinct_left(self, column: int, least: float = 1.0) -> float | None:
        """Return the same by what a sample shows, which is not asked where there are no more than `least` anyway."""
        found = self.distinct(column)
        if found is None or found <= least:
            return found
        return max(1.0, min(found, self.left(frozenset([column]), float(self.columns[column].distinct or 1))))

    def left(self, columns: frozenset[int], possible: float) -> float:
        """Return how many of the possible combinations of values are left in these rows."""
        reduced = [each for each in self.origins if each.reductions]
        if not reduced:
            return min(possible, self.rows)
        least = max(map(self._values, columns), default=1.0)
        return min(each.left(columns, least, possible, self.rows) for each in reduced)

    def distinct_or_guess(self, column: int) -> float:
        known = self.distinct_left(column)
        return max(1.0, math.sqrt(self.rows)) if known is None else known

    def combinations(self, columns: frozenset[int]) -> float:
        """Return how many combinations of values these columns have, whether they are among these rows or not.

        Columns of one map have no more than the map has rows: names, addresses and birthdays of 5,000 customers 5,000.
        """
        left, product = columns, 1.0
        for origin in self.origins:
            own = left & origin.columns
            if own:
                left -= own
                counts = [self._values(id_) for id_ in own]
                product *= counts[0] if len(counts) == 1 else shown_among(math.prod(counts), origin.values)
        return product * math.prod(self._values(id_) for id_ in left)

    def _values(self, column: int) -> float:
        known = self.columns.get(column)
        if known is None or known.distinct is None:
            return max(1.0, math.sqrt(self.rows))
        return max(1.0, float(known.distinct))

    def renamed(self, new_id: Callable[[int], int]) -> Properties:
        """Return the same in terms of other columns."""
        return replace(
            self,
            columns={new_id(id_): known for id_, known in self.columns.items()},
            keys=tuple(key.renamed({id_: new_id(id_) for id_ in key.columns | key.extremes}) for key in self.keys),
            origins=tuple(each.renamed({id_: new_id(id_) for id_ in each.told_by}) for each in self.origins),
            partitionings=tuple(tuple(map(new_id, each)) for each in self.partitionings),
            orders=tuple(tuple(map(new_id, each)) for each in self.orders),
        )

    def unique_within(self, columns: set[int] | frozenset[int]) -> UniqueKey | None:
        return next((key for key in self.keys if key.columns <= columns), None)


def shown_among(values: float, rows: float) -> float:
    """Return how many of so many equally frequent values are among rows that are picked at random."""
    return min(values * -math.expm1(-rows / values), rows) if values > 0 else values
