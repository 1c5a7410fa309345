"""What becomes of stored rows on their way out: which columns, in which form, made into what.

Whoever asks for rows again and again says it once. The functions that read a segment are then written out for it
(`row_code`), so that nothing is left to be decided for each row, and a row is made once, as what it is wanted as.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row = tuple[Any, ...]

MOST_FORMS = 4096


class RowProjection:
    """`columns` by their numbers in the definition. Without `make` rows are tuples of stored values; with it their
    values are in Python form, and `make` gets the tuple of them.

    Forms are what finders are kept by, so they are compared by identity, which costs no time: see `row_projection`.
    """

    __slots__ = ("columns", "make")

    def __init__(self, columns: tuple[int, ...], make: Callable[[Row], Any] | None) -> None:
        self.columns = columns
        self.make = make


class ColumnRows:
    """Many rows as the columns they were read in: made one by one as they are gone through, unless somebody wants the
    columns."""

    __slots__ = ("_make", "columns")

    def __init__(self, make: Callable[[Row], Any], *columns: list[Any]) -> None:
        self._make = make
        self.columns = columns

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, zip(*self.columns, strict=True))


@lru_cache(maxsize=MOST_FORMS)
def row_projection(columns: tuple[int, ...], make: Callable[[Row], Any] | None = None) -> RowProjection:
    """The form of these columns, the same one each time: what was made for it is found again."""
    return RowProjection(columns, make)
