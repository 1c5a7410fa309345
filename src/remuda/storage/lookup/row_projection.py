"""Row projections: which columns of stored rows a caller reads, and what is made of them.

A caller that reads rows again and again makes its projection once. The functions that read a segment are then generated
for it (`generated_readers`), so that nothing is left to be decided for each row, and a row is made once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row = tuple[Any, ...]

MOST_PROJECTIONS = 4096


class RowProjection:
    """Names the columns that a caller reads, and what is made of them.

    `columns` by their numbers in the definition. Without `make` rows are tuples of stored values; with it their
    values are in Python form, and `make` gets the tuple of them.

    Lookups are kept by their projections, which are compared by identity, as that costs no time: see `row_projection`.
    """

    __slots__ = ("columns", "make")

    def __init__(self, columns: tuple[int, ...], make: Callable[[Row], Any] | None) -> None:
        self.columns = columns
        self.make = make


class ColumnRows:
    """Holds many rows as the columns they were read in; iterating makes the rows, a caller may take the columns."""

    __slots__ = ("_make", "columns")

    def __init__(self, make: Callable[[Row], Any], *columns: list[Any]) -> None:
        self._make = make
        self.columns = columns

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, zip(*self.columns, strict=True))


@lru_cache(maxsize=MOST_PROJECTIONS)
def row_projection(columns: tuple[int, ...], make: Callable[[Row], Any] | None = None) -> RowProjection:
    """Return the projection of these columns, the same object each time: what was generated for it is found again."""
    return RowProjection(columns, make)
