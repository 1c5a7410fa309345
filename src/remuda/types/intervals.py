"""INTERVALs as text. There are two kinds, as in the SQL standard, because no number of days is a month: one counts
months, the other microseconds. Text that has both is refused."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from remuda.errors import moment_error, overflow_error, shown
from remuda.types.sql_type import INTERVAL_MONTHS, INTERVAL_TIME, Kind

if TYPE_CHECKING:
    from remuda.errors import SqlError
    from remuda.types.sql_type import SqlType

SECOND = 1_000_000
"""Microseconds."""
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND

_MONTHS = {"year": 12, "y": 12, "yr": 12, "month": 1, "mon": 1, "quarter": 3, "decade": 120, "century": 1200}
_MICROSECONDS = {
    "week": 7 * DAY,
    "w": 7 * DAY,
    "day": DAY,
    "d": DAY,
    "hour": HOUR,
    "h": HOUR,
    "hr": HOUR,
    "minute": MINUTE,
    "min": MINUTE,
    "m": MINUTE,
    "second": SECOND,
    "s": SECOND,
    "sec": SECOND,
    "millisecond": 1000,
    "ms": 1000,
    "microsecond": 1,
    "us": 1,
}
_PART = re.compile(
    r"""(?P<sign>[+-]?)\s*(?:
        (?P<years>\d+)-(?P<months>\d+)
      | (?P<hours>\d+):(?P<minutes>\d\d?)(?::(?P<seconds>\d\d?(?:\.\d*)?))?
      | (?P<number>\d+\.?\d*|\.\d+)\s*(?P<unit>[a-zA-Z]+)?
    )\s*""",
    re.VERBOSE | re.ASCII,
)


def parse_interval(text: str) -> tuple[SqlType, int]:
    """Return the kind of interval and its months or microseconds.

    >>> parse_interval("1 year 2 months")[1], parse_interval("1-2")[1], parse_interval("1 day 00:00:01")[1] - DAY
    (14, 14, 1000000)
    """
    months, microseconds = 0, Decimal(0)
    counts_months = counts_time = False
    at, stripped = 0, text.strip()
    while at < len(stripped):
        part = _PART.match(stripped, at)
        if part is None:
            raise _not_an_interval(text)
        at = part.end()
        sign = -1 if part["sign"] == "-" else 1
        if part["years"] is not None:
            months += sign * (int(part["years"]) * 12 + int(part["months"]))
            counts_months = True
        elif part["hours"] is not None:
            seconds = Decimal(part["seconds"] or 0)
            microseconds += sign * (int(part["hours"]) * HOUR + int(part["minutes"]) * MINUTE + seconds * SECOND)
            counts_time = True
        else:
            number = sign * Decimal(part["number"])
            # In '1 02:03:04' the number before the clock is of days.
            name = _unit(part["unit"] or ("day" if ":" in stripped[at:] else ""))
            if name in _MONTHS:
                if number * _MONTHS[name] != int(number * _MONTHS[name]):
                    raise moment_error(f"{shown(text)}: a part of a month has no length")
                months, counts_months = months + int(number * _MONTHS[name]), True
            elif name in _MICROSECONDS:
                microseconds, counts_time = microseconds + number * _MICROSECONDS[name], True
            else:
                raise _not_an_interval(text)
    if counts_months == counts_time:
        raise (
            moment_error(f"{shown(text)}: an INTERVAL has months or days, not both")
            if counts_time
            else _not_an_interval(text)
        )
    type_, value = (INTERVAL_MONTHS, months) if counts_months else (INTERVAL_TIME, round(microseconds))
    if not -(2**63) <= value < 2**63:
        raise overflow_error(f"{shown(text)} overflows {type_}")
    return type_, value


def _unit(written: str) -> str:
    name = written.lower()
    if name in _MONTHS or name in _MICROSECONDS:
        return name
    return {"centuries": "century"}.get(name, name.removesuffix("s"))


def _not_an_interval(text: str) -> SqlError:
    return moment_error(
        f"{shown(text)} is not an INTERVAL",
        suggestion="An INTERVAL is written INTERVAL '3' DAY, or INTERVAL '1 day 2 hours'.",
    )


def interval_text(type_: SqlType, stored: int) -> str:
    """Return an interval as a literal of SQL.

    >>> interval_text(INTERVAL_MONTHS, -14), interval_text(INTERVAL_TIME, DAY + 2 * HOUR + 1)
    ("INTERVAL '-1-2' YEAR TO MONTH", "INTERVAL '1 02:00:00.000001' DAY TO SECOND")
    """
    sign, size = ("-" if stored < 0 else ""), abs(stored)
    if type_.kind is Kind.INTERVAL_MONTHS:
        return f"INTERVAL '{sign}{size // 12}-{size % 12}' YEAR TO MONTH"
    days, rest = divmod(size, DAY)
    return f"INTERVAL '{sign}{days} {clock_text(rest, sign)}' DAY TO SECOND"


def interval_words(type_: SqlType, stored: int) -> str:
    """Return an interval as CAST to VARCHAR writes it; `parse_interval` reads it back.

    >>> interval_words(INTERVAL_MONTHS, -14), interval_words(INTERVAL_TIME, DAY + 2 * HOUR + 1)
    ('-1 year -2 months', '1 day 02:00:00.000001')
    """
    sign, size = ("-" if stored < 0 else ""), abs(stored)
    if type_.kind is Kind.INTERVAL_MONTHS:
        parts = [_counted(sign, size // 12, "year"), _counted(sign, size % 12, "month")]
        return " ".join(part for part in parts if part) or "0 months"
    days, rest = divmod(size, DAY)
    parts = [_counted(sign, days, "day"), clock_text(rest, sign) if rest or not days else ""]
    return " ".join(part for part in parts if part)


def _counted(sign: str, number: int, unit: str) -> str:
    return f"{sign}{number} {unit}{'s' if number > 1 else ''}" if number else ""


def clock_text(microseconds: int, sign: str = "") -> str:
    """Return the text of a time of day.

    >>> clock_text(3_661_500_000)
    '01:01:01.5'
    """
    seconds, fraction = divmod(microseconds, SECOND)
    shown = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{fraction:06}".rstrip("0") if fraction else shown
