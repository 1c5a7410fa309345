"""Window functions: calls over the rows around a row."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.expr import Column, Expression


class FrameUnit(Enum):
    ROWS = "ROWS"
    RANGE = "RANGE"
    GROUPS = "GROUPS"

    __hash__ = object.__hash__


class FrameEnd(Enum):
    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"

    __hash__ = object.__hash__


class FrameExclusion(Enum):
    NO_OTHERS = "NO OTHERS"
    CURRENT_ROW = "CURRENT ROW"
    GROUP = "GROUP"
    TIES = "TIES"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows of its partition a call sees from a row. Offsets, where an end has one, are constants."""

    unit: FrameUnit = FrameUnit.RANGE
    start: FrameEnd = FrameEnd.UNBOUNDED_PRECEDING
    end: FrameEnd = FrameEnd.CURRENT_ROW
    start_offset: Expression | None = None
    end_offset: Expression | None = None
    exclusion: FrameExclusion = FrameExclusion.NO_OTHERS


DEFAULT_FRAME = Frame()
"""From the start of the partition to the last row that ties with this one; without an order that is all of it."""


@dataclass(frozen=True, slots=True)
class WindowCall:
    """`function(arguments) OVER (...)`; partition, order and so the window itself are the node's.

    Arguments are columns of the input, or constants (the offset of LAG, the number of NTILE).
    """

    column: Column
    function: str
    arguments: tuple[Expression, ...] = ()
    frame: Frame = DEFAULT_FRAME
    ignores_nulls: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    """Where it is written, as of an aggregate."""
