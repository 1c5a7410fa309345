"""Moments written and read by a format: STRFTIME and STRPTIME, TO_CHAR.

Names of days and months are English, whatever the machine is set to.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from remuda.errors import moment_error, option_error, shown
from remuda.expr.evaluate.by_rows import by_rows, plain_function
from remuda.expr.function import Function, Signature
from remuda.expr.functions.calendar_values import DAYS, MONTHS
from remuda.types import TIMESTAMP, VARCHAR, Kind, to_python, to_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType

_DIRECTIVES: dict[str, Callable[[dt.datetime], str]] = {
    "a": lambda moment: DAYS[moment.weekday()][:3],
    "A": lambda moment: DAYS[moment.weekday()],
    "b": lambda moment: MONTHS[moment.month - 1][:3],
    "B": lambda moment: MONTHS[moment.month - 1],
    "w": lambda moment: str(moment.isoweekday() % 7),
    "u": lambda moment: str(moment.isoweekday()),
    "d": lambda moment: f"{moment.day:02}",
    "m": lambda moment: f"{moment.month:02}",
    "y": lambda moment: f"{moment.year % 100:02}",
    "Y": lambda moment: f"{moment.year:04}",
    "G": lambda moment: f"{moment.isocalendar().year:04}",
    "V": lambda moment: f"{moment.isocalendar().week:02}",
    "H": lambda moment: f"{moment.hour:02}",
    "I": lambda moment: f"{(moment.hour - 1) % 12 + 1:02}",
    "p": lambda moment: "AM" if moment.hour < 12 else "PM",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
    "f": lambda moment: f"{moment.microsecond:06}",
    "g": lambda moment: f"{moment.microsecond // 1000:03}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
}
"""What stands after `%` in STRFTIME; `%-d` leaves the zeros at the beginning out."""

_PATTERNS: dict[str, Callable[[dt.datetime], str]] = {
    "YYYY": _DIRECTIVES["Y"],
    "YY": _DIRECTIVES["y"],
    "IYYY": _DIRECTIVES["G"],
    "IW": _DIRECTIVES["V"],
    "MONTH": lambda moment: MONTHS[moment.month - 1].upper().ljust(9),
    "Month": lambda moment: MONTHS[moment.month - 1].ljust(9),
    "month": lambda moment: MONTHS[moment.month - 1].lower().ljust(9),
    "MON": lambda moment: MONTHS[moment.month - 1][:3].upper(),
    "Mon": _DIRECTIVES["b"],
    "mon": lambda moment: MONTHS[moment.month - 1][:3].lower(),
    "MM": _DIRECTIVES["m"],
    "DAY": lambda moment: DAYS[moment.weekday()].upper().ljust(9),
    "Day": lambda moment: DAYS[moment.weekday()].ljust(9),
    "day": lambda moment: DAYS[moment.weekday()].lower().ljust(9),
    "DY": lambda moment: DAYS[moment.weekday()][:3].upper(),
    "Dy": _DIRECTIVES["a"],
    "dy": lambda moment: DAYS[moment.weekday()][:3].lower(),
    "DDD": _DIRECTIVES["j"],
    "DD": _DIRECTIVES["d"],
    "D": lambda moment: str(moment.isoweekday() % 7 + 1),
    "ID": _DIRECTIVES["u"],
    "Q": lambda moment: str((moment.month + 2) // 3),
    "HH24": _DIRECTIVES["H"],
    "HH12": _DIRECTIVES["I"],
    "HH": _DIRECTIVES["I"],
    "MI": _DIRECTIVES["M"],
    "SS": _DIRECTIVES["S"],
    "MS": _DIRECTIVES["g"],
    "US": _DIRECTIVES["f"],
    "AM": _DIRECTIVES["p"],
    "PM": _DIRECTIVES["p"],
    "am": lambda moment: _DIRECTIVES["p"](moment).lower(),
    "pm": lambda moment: _DIRECTIVES["p"](moment).lower(),
}
"""The patterns of PostgreSQL's TO_CHAR; `FM` before one leaves zeros and spaces out."""
_LONGEST_FIRST = sorted(_PATTERNS, key=len, reverse=True)
_PATTERN = re.compile(rf'"([^"]*)"|(FM)?({"|".join(_LONGEST_FIRST)})')

_READ = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d\d)",
    "m": r"(?P<m>\d\d?)",
    "d": r"(?P<d>\d\d?)",
    "H": r"(?P<H>\d\d?)",
    "I": r"(?P<I>\d\d?)",
    "M": r"(?P<M>\d\d?)",
    "S": r"(?P<S>\d\d?)",
    "f": r"(?P<f>\d{1,6})",
    "p": r"(?P<p>[AaPp][Mm])",
    "b": rf"(?P<b>{'|'.join(month[:3] for month in MONTHS)})",
    "B": rf"(?P<B>{'|'.join(MONTHS)})",
    "a": rf"(?:{'|'.join(day[:3] for day in DAYS)})",
    "A": rf"(?:{'|'.join(DAYS)})",
}


def _literally(text: str) -> Callable[[dt.datetime], str]:
    return lambda _: text


def _shortened(part: Callable[[dt.datetime], str]) -> Callable[[dt.datetime], str]:
    return lambda moment: part(moment).strip().lstrip("0") or "0"


LONGEST_FORMAT = 10_000
"""Characters of a format: each of its parts is called for every value."""


def _refuse_long(form: str) -> None:
    if len(form) > LONGEST_FORMAT:
        raise option_error(f"a format of {len(form):,} characters is too long: {LONGEST_FORMAT:,} are possible")


@lru_cache(maxsize=256)
def _strftime_parts(form: str) -> tuple[Callable[[dt.datetime], str], ...]:
    _refuse_long(form)
    parts: list[Callable[[dt.datetime], str]] = []
    for text, short, directive in re.findall(r"([^%]+)|%(-?)(.?)", form, re.DOTALL):
        if text:
            parts.append(_literally(text))
        elif directive == "%":
            parts.append(_literally("%"))
        elif directive in _DIRECTIVES:
            parts.append(_shortened(_DIRECTIVES[directive]) if short else _DIRECTIVES[directive])
        else:
            raise option_error(f"unknown in a format: %{directive}")
    return tuple(parts)


@lru_cache(maxsize=256)
def _to_char_parts(form: str) -> tuple[Callable[[dt.datetime], str], ...]:
    _refuse_long(form)
    parts: list[Callable[[dt.datetime], str]] = []
    at = 0
    for found in _PATTERN.finditer(form):
        parts.append(_literally(form[at : found.start()]))
        if found[3] is None:
            parts.append(_literally(found[1]))
        else:
            parts.append(_shortened(_PATTERNS[found[3]]) if found[2] else _PATTERNS[found[3]])
        at = found.end()
    return (*parts, _literally(form[at:]))


def _written(
    compile_format: Callable[[str], tuple[Callable[[dt.datetime], str], ...]],
) -> Callable[[int, str], str]:
    def write(stored: int, form: str) -> str:
        moment: dt.datetime = to_python(TIMESTAMP, stored)
        return "".join([part(moment) for part in compile_format(form)])

    return write


@lru_cache(maxsize=256)
def _strptime_pattern(form: str) -> re.Pattern[str]:
    _refuse_long(form)
    parts: list[str] = []
    seen: set[str] = set()
    for text, directive in re.findall(r"([^%]+)|%-?(.?)", form, re.DOTALL):
        if text or directive == "%":
            parts.append(re.escape(text or "%"))
        elif directive in _READ and directive not in seen:
            parts.append(_READ[directive])
            seen.add(directive)
        else:
            raise option_error(f"unknown in a format to read by: %{directive}")
    return re.compile("".join(parts), re.ASCII)


def _read(text: str, form: str) -> int:
    found = _strptime_pattern(form).fullmatch(text.strip())
    problem = moment_error(f"{shown(text)} is not of the form {shown(form)}")
    if found is None:
        raise problem
    given: dict[str, str] = {name: value for name, value in found.groupdict().items() if value is not None}
    try:
        return int(to_stored(TIMESTAMP, dt.datetime(*_fields(given))))
    except ValueError:
        raise problem from None


def _fields(given: dict[str, str]) -> tuple[int, int, int, int, int, int, int]:
    """Read the fields; a missing field is that of the beginning of 1900, as in other systems."""
    year = int(given.get("Y", "1900"))
    if "y" in given:
        year = int(given["y"]) + (2000 if int(given["y"]) < 69 else 1900)
    names = [month[:3] for month in MONTHS]
    named = given.get("B", given.get("b"))
    month = int(given.get("m", "1")) if named is None else names.index(named[:3]) + 1
    hour = int(given.get("H", "0"))
    if "I" in given:
        if not 1 <= int(given["I"]) <= 12:
            raise ValueError
        hour = int(given["I"]) % 12 + (12 if given.get("p", "AM").upper() == "PM" else 0)
    fraction = int(given.get("f", "0").ljust(6, "0"))
    return year, month, int(given.get("d", "1")), hour, int(given.get("M", "0")), int(given.get("S", "0")), fraction


def _resolve(given: Sequence[SqlType]) -> Signature | None:
    """Resolve a moment and a format."""
    dated = len(given) == 2 and given[0].kind in {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}
    return Signature((TIMESTAMP, VARCHAR), VARCHAR) if dated and given[1].kind is Kind.VARCHAR else None


def _writer(name: str, row: Callable[[int, str], str]) -> Function:
    def batch(signature: Signature) -> Any:
        return by_rows(row, signature)

    return Function(name, _resolve, batch, lambda _: row, can_fail=True, hints=(TIMESTAMP, VARCHAR))


FUNCTIONS = (
    _writer("strftime", _written(_strftime_parts)),
    _writer("to_char", _written(_to_char_parts)),
    plain_function("strptime", [VARCHAR, VARCHAR], TIMESTAMP, _read, can_fail=True),
)
