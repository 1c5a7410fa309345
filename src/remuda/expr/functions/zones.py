"""`x AT TIME ZONE zone`, also `timezone(zone, x)`: between an instant and what the clocks of a zone show.

A time that clocks show twice, when they are set back, is the later instant; one that they never show, when they are set
forward, is taken by the offset before: 02:30 is then 03:30. PostgreSQL and DuckDB do the same.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from remuda.errors import option_error
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Datum, Overload, Signature, fixed, overloaded
from remuda.types import TIMESTAMP, TIMESTAMP_TZ, VARCHAR, to_python
from remuda.types.arrow_compute import pc
from remuda.types.calendar import FIRST_INSTANT, LAST_INSTANT, overflow

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from remuda.types import SqlType

_MICROSECOND = timedelta(microseconds=1)
_EDGE = 2 * 86_400_000_000
"""Near the ends of the calendar Python computes no local time."""
_LISTED = 2_114_380_800_000_000
"""Until 2037 a zone's changes are listed one by one; Arrow does not know the rule by which they go on."""


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise option_error(f"unknown time zone: {name}") from None


def _inside(value: int) -> int:
    """Return the nearest time of which Python knows the offset: no zone changes its clocks so near to the ends."""
    return min(max(value, FIRST_INSTANT + _EDGE), LAST_INSTANT - _EDGE)


def _checked(value: int, result: SqlType) -> int:
    if not FIRST_INSTANT <= value <= LAST_INSTANT:
        raise overflow(result)
    return value


def _shown(zone: str, instant: int) -> int:
    """Return the local time of a zone at an instant."""
    moment: datetime = to_python(TIMESTAMP_TZ, _inside(instant)).astimezone(_zone(zone))
    offset = moment.utcoffset()
    assert offset is not None, "a zone has an offset"
    return _checked(instant + offset // _MICROSECOND, TIMESTAMP)


def _meant(zone: str, local: int) -> int:
    """Return the instant at which the zone's clocks show a time.

    Of the two offsets around a change the smaller is right: it gives the later of two instants, and it is the one
    before the clocks are set forward.
    """
    moment: datetime = to_python(TIMESTAMP, _inside(local)).replace(tzinfo=_zone(zone))
    offsets = [offset for fold in (0, 1) if (offset := moment.replace(fold=fold).utcoffset()) is not None]
    return _checked(local - min(offsets) // _MICROSECOND, TIMESTAMP_TZ)


def _by_arrow(
    signature: Signature, row: Callable[[str, int], int], convert: Callable[[str, pa.Array], pa.Array]
) -> Callable[[Datum, Datum], Datum]:
    """Arrow for a column in one zone, unless it finds a time that is never shown or that is far from the present."""
    one_by_one = by_rows(row, signature)

    def evaluate(zone: Datum, value: Datum) -> Datum:
        if isinstance(zone, pa.Scalar) and zone.is_valid and isinstance(value, pa.Array):
            ends = pc.min_max(pc.cast(value, pa.int64())).as_py()
            if ends["min"] is not None and ends["min"] >= FIRST_INSTANT + _EDGE and ends["max"] < _LISTED:
                _zone(zone.as_py())
                with suppress(pa.ArrowInvalid):
                    return convert(zone.as_py(), value)
        return one_by_one(zone, value)

    return evaluate


def _shown_batch(zone: str, value: pa.Array) -> pa.Array:
    return pc.local_timestamp(pc.cast(value, pa.timestamp("us", zone)))


def _meant_batch(zone: str, value: pa.Array) -> pa.Array:
    known = pc.assume_timezone(value, zone, ambiguous="latest", nonexistent="raise")
    return pc.cast(known, TIMESTAMP_TZ.arrow)


FUNCTIONS = (
    overloaded(
        "timezone",
        Overload(
            fixed([VARCHAR, TIMESTAMP], TIMESTAMP_TZ),
            lambda signature: _by_arrow(signature, _meant, _meant_batch),
            lambda _: _meant,
        ),
        Overload(
            fixed([VARCHAR, TIMESTAMP_TZ], TIMESTAMP),
            lambda signature: _by_arrow(signature, _shown, _shown_batch),
            lambda _: _shown,
        ),
        can_fail=True,
        hints=(VARCHAR, TIMESTAMP_TZ),
    ),
)
