"""What the planner may know about the values in a map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """`minimum` and `maximum` are in stored form; None where no value is known.

    `histogram` has the ends of ranges with about equally many rows each, ascending, the first and the last being the
    least and the greatest value that is not NULL; it is empty where nothing is known.
    """

    distinct: int | None = None
    null_share: float = 0.0
    minimum: Any = None
    maximum: Any = None
    histogram: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class MapStatistics:
    rows: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
