"""Dates and times as people write them: ISO 8601, but a month, a day or an hour may have one digit."""

from __future__ import annotations

import datetime as dt
import re

_DATE = re.compile(r"^(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?!\d)(?::(\d{1,2})(?!\d))?", re.ASCII)


def date_of_text(text: str) -> dt.date:
    """Read a date.

    >>> date_of_text(" 2024-1-5"), date_of_text("20240105")
    (datetime.date(2024, 1, 5), datetime.date(2024, 1, 5))
    """
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        return dt.date.fromisoformat(_in_full(text))


def time_of_text(text: str) -> dt.time:
    """Read a time of day.

    >>> time_of_text("9:05:7.25")
    datetime.time(9, 5, 7, 250000)
    """
    try:
        return dt.time.fromisoformat(text.strip())
    except ValueError:
        return dt.time.fromisoformat(_in_full(text))


def datetime_of_text(text: str) -> dt.datetime:
    """Read a date and a time of day.

    >>> datetime_of_text("2024-1-5 9:30")
    datetime.datetime(2024, 1, 5, 9, 30)
    """
    try:
        return dt.datetime.fromisoformat(text.strip())
    except ValueError:
        return dt.datetime.fromisoformat(_in_full(text))


def _in_full(text: str) -> str:
    """Pad the date at the beginning, and the first time of day, to two digits wherever there is one."""
    dated = _DATE.sub(lambda found: f"{found[1]}-{found[2]:0>2}-{found[3]:0>2}", text.strip(), count=1)
    return _CLOCK.sub(lambda found: ":".join(f"{part:0>2}" for part in found.groups() if part), dated, count=1)
