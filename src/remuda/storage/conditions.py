"""What an index is asked: concrete values in stored form.

The planner binds a filter to an index symbolically; with the parameters at hand it becomes one or several `Lookup`s.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class _Unbounded(Enum):
    UNBOUNDED = "UNBOUNDED"

    def __repr__(self) -> str:
        return "UNBOUNDED"


UNBOUNDED: Final = _Unbounded.UNBOUNDED
"""The end of a range that is open. None cannot say it: None is NULL."""


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two ends. A range never matches NULL, not even one without ends; NaN is above all numbers."""

    low: Any = UNBOUNDED
    low_inclusive: bool = True
    high: Any = UNBOUNDED
    high_inclusive: bool = True


@dataclass(frozen=True, slots=True)
class Lookup:
    """Equalities for the leading index columns (None is IS NULL), then at most one range, on the column that follows.

    `Lookup()` is every entry, in index order, NULLs first. A HASH index takes equalities for all its columns.
    """

    prefix: tuple[Any, ...] = ()
    range: Range | None = None
