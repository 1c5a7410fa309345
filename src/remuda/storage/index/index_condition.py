"""What an index is asked: concrete values in stored form.

The planner binds a filter to an index symbolically; with the parameters at hand it becomes one or several `Lookup`s.
They are made for every execution, so they are structs of msgspec: a frozen dataclass takes eight times as long to make.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec


class _Unbounded(Enum):
    UNBOUNDED = "UNBOUNDED"

    def __repr__(self) -> str:
        return "UNBOUNDED"


UNBOUNDED: Final = _Unbounded.UNBOUNDED
"""The end of a range that is open. None cannot say it: None is NULL."""


class Range(msgspec.Struct, frozen=True):
    """Values between two ends. A range never matches NULL, not even one without ends; NaN is above all numbers."""

    low: Any = UNBOUNDED
    low_inclusive: bool = True
    high: Any = UNBOUNDED
    high_inclusive: bool = True


class Lookup(msgspec.Struct, frozen=True):
    """Equalities for the leading index columns (None is IS NULL), then at most one range, on the column that follows.

    `Lookup()` is every entry, in index order, NULLs first. A HASH index takes equalities for all its columns.
    """

    prefix: tuple[Any, ...] = ()
    range: Range | None = None
