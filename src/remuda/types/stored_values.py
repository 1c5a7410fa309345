"""Values: from what users give and get to what is stored, and back; the type of a value that has none yet."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.errors import SqlError, moment_error, overflow_error, shown, text_error, value_error
from remuda.types.intervals import parse_interval
from remuda.types.moment_text import date_of_text, datetime_of_text, time_of_text
from remuda.types.sql_type import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_RANGES,
    INTERVAL_TIME,
    MAXIMUM_PRECISION,
    NULL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    VARBINARY,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = dt.datetime(1970, 1, 1)
EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_SHOWN_LENGTH = 80
_MISSING = frozenset({"NaTType", "NAType"})
"""The types of what pandas has for NULL, by name, as pandas is not imported."""


def to_stored(target: SqlType, value: Any) -> Any:
    """Return the stored form of a Python value, for a column of type `target`.

    What would lose value is refused: 100000 is no SMALLINT, 1.5 is no integer. None and pandas' NaT and NA are NULL.

    >>> to_stored(DATE, dt.date(1970, 1, 3)), to_stored(BIGINT, 7), to_stored(DOUBLE, 7)
    (2, 7, 7.0)
    """
    if value is None:
        return None
    try:
        return _TO_STORED[target.kind](target, value)
    except SqlError:
        if type(value).__name__ in _MISSING:
            return None
        raise
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        if type(value).__name__ in _MISSING:
            return None
        raise _cannot_store(target, value) from error


def stored_converter(target: SqlType) -> Callable[[Any], Any]:
    """Compile `to_stored` for one type, as a function of the value alone."""
    if target.is_integer:
        low, high = INTEGER_RANGES[target.kind]

        def integer(value: Any) -> Any:
            if type(value) is int and low <= value <= high:
                return value
            return to_stored(target, value)

        return integer
    if target == VARCHAR:
        return lambda value: value if type(value) is str and value.isascii() else to_stored(VARCHAR, value)
    if target.kind is Kind.TIMESTAMP:
        return _naive_timestamp
    exact = _STORED_AS_IS.get(target.kind)
    if exact is not None:
        return lambda value: value if type(value) is exact else to_stored(target, value)
    return lambda value: to_stored(target, value)


def stored_as_is(target: SqlType, value: str) -> str | None:
    """Return an expression that tests whether the value with this name is stored exactly as it stands.

    The name may be an expression too. None where a type has no such test that takes less time than `stored_converter`.

    >>> stored_as_is(DOUBLE, "given[0]")
    'type(given[0]) is float'
    """
    if target.is_integer:
        low, high = INTEGER_RANGES[target.kind]
        return f"type({value}) is int and {low} <= {value} <= {high}"
    if target == VARCHAR:
        return f"type({value}) is str and {value}.isascii()"
    exact = _STORED_AS_IS.get(target.kind)
    return None if exact is None else f"type({value}) is {exact.__name__}"


def python_converter(source: SqlType) -> Callable[[Any], Any] | None:
    """Return the function from a stored, non-NULL value to its Python form; None where the two are the same."""
    return _TO_PYTHON.get(source.kind)


def to_python(source: SqlType, stored: Any) -> Any:
    """Convert a stored value to Python.

    >>> to_python(TIMESTAMP, 1_000_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1)
    """
    convert = _TO_PYTHON.get(source.kind)
    return stored if stored is None or convert is None else convert(stored)


def type_of_value(value: Any) -> SqlType:
    """Return the SQL type of a Python value: how an untyped parameter gets its type."""
    for python_type, sql_type in _PYTHON_TYPES:
        if isinstance(value, python_type):
            return sql_type(value) if callable(sql_type) else sql_type
    hint = "A list is given for IN (?), = ANY(?) or <> ALL(?)." if is_list(value) else None
    raise value_error(f"a value of Python type {type(value).__name__} cannot be used in SQL", suggestion=hint)


def _decimal_type_of(value: Decimal) -> SqlType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise text_error(f"{value} is not a DECIMAL")
    scale = max(0, -exponent)
    return decimal(max(len(digits) + max(0, exponent), scale, 1), scale)


def _datetime_type_of(value: dt.datetime) -> SqlType:
    return TIMESTAMP if value.tzinfo is None else TIMESTAMP_TZ


def _integer_type_of(value: int) -> SqlType:
    low, high = INTEGER_RANGES[Kind.BIGINT]
    if low <= value <= high:
        return BIGINT
    if abs(value) >= 10**MAXIMUM_PRECISION:
        raise overflow_error(f"{_shown(value)} has more than the {MAXIMUM_PRECISION} digits of a DECIMAL")
    return decimal(len(str(abs(value))), 0)


_PYTHON_TYPES: tuple[tuple[type, SqlType | Callable[[Any], SqlType]], ...] = (
    (type(None), NULL),
    (bool, BOOLEAN),
    (int, _integer_type_of),
    (float, DOUBLE),
    (str, VARCHAR),
    (Decimal, _decimal_type_of),
    (dt.datetime, _datetime_type_of),
    (dt.date, DATE),
    (dt.time, TIME),
    (dt.timedelta, INTERVAL_TIME),
    (bytes, VARBINARY),
)


def is_list(value: object) -> bool:
    """Test whether a value of a parameter stands for several: a list, tuple, set, or one-dimensional array."""
    return isinstance(value, list | tuple | set | frozenset) or getattr(value, "ndim", 0) == 1


_WRITTEN_FORMS = {
    Kind.DATE: "'2024-01-31'",
    Kind.TIME: "'12:30:59'",
    Kind.TIMESTAMP: "'2024-01-31 12:30:59'",
    Kind.TIMESTAMP_TZ: "'2024-01-31 12:30:59+02:00'",
}


def written_form(type_: SqlType) -> str | None:
    """Return a sentence that shows how values of a type are written; None for types whose text needs no example.

    >>> written_form(DATE)
    "A DATE is written '2024-01-31'."
    """
    form = _WRITTEN_FORMS.get(type_.kind)
    return None if form is None else f"A {type_} is written {form}."


def _cannot_store(target: SqlType, value: Any, hint: str | None = None) -> SqlError:
    if isinstance(value, str) and target.is_temporal:
        return moment_error(f"{_shown(value)} is not a value of type {target}", suggestion=hint or written_form(target))
    return value_error(f"{_shown(value)} ({type(value).__name__}) is not a value of type {target}", suggestion=hint)


def _shown(value: Any) -> str:
    """Return the text of a value in a message: its beginning, where it is long."""
    try:
        text = str(value) if isinstance(value, Decimal) else repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…"


def _store_nothing(target: SqlType, value: Any) -> Any:
    raise _cannot_store(target, value)


def _store_boolean(target: SqlType, value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's bool is not Python's
        return bool(value)
    raise _cannot_store(target, value)


def _store_integer(target: SqlType, value: Any) -> int:
    if isinstance(value, bool):
        raise _cannot_store(target, value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() > MAXIMUM_PRECISION:
        raise overflow_error(f"{_shown(value)} overflows {target}")  # its digits are not written out first
    if isinstance(value, float | Decimal) and value != int(value):
        raise _cannot_store(target, value, f"Round it first: round(x) in Python, CAST(... AS {target}) in SQL.")
    if isinstance(value, str | bytes):
        raise _cannot_store(target, value, "Give a number, not text.")
    whole = int(value)
    low, high = INTEGER_RANGES[target.kind]
    if not low <= whole <= high:
        raise overflow_error(f"{_shown(whole)} overflows {target}: it holds {low} to {high}")
    return whole


def _store_decimal(target: SqlType, value: Any) -> Decimal:
    if isinstance(value, bool | str | bytes):
        raise _cannot_store(target, value, "Give a number, not text." if isinstance(value, str) else None)
    with localcontext(prec=MAXIMUM_PRECISION + 1):
        exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)  # numpy's repr has a name
        if not exact.is_finite():
            raise _cannot_store(target, value)
        rounded = exact.quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP)
    if len(rounded.as_tuple().digits) > target.precision:
        raise overflow_error(f"{_shown(value)} overflows {target}")
    return rounded


def _store_real(target: SqlType, value: Any) -> float:
    number = _store_double(target, value)
    if math.isinf(number) or math.isnan(number):
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError as error:
        raise overflow_error(f"{value} overflows {target}") from error


def _store_double(target: SqlType, value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise _cannot_store(target, value, "Give a number, not text." if isinstance(value, str) else None)
    return float(value)


def _store_string(target: SqlType, value: Any) -> str | None:
    if target.json:
        return _store_json(value)
    if not isinstance(value, str):
        raise _cannot_store(target, value)
    if not value.isascii():
        value.encode()  # Python allows half of a surrogate pair alone, no other system does
    return str(value)


def _store_json(value: Any) -> str | None:
    """Text stays as it is written; other values that JSON has are written out. A missing value is NULL, not `null`."""
    if type(value).__name__ in _MISSING:
        return None
    try:
        if isinstance(value, str):
            msgspec.json.decode(value)
            return str(value)
        return _JSON.encode(value).decode()
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError, RecursionError) as error:
        raise text_error(f"{shown(value)} is not JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Convert values that the encoder has no form for: the scalars and arrays of numpy, and pandas' moments."""
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} has no form in it")


_JSON = msgspec.json.Encoder(enc_hook=_plain, decimal_format="number")


def _store_bytes(target: SqlType, value: Any) -> bytes:
    if isinstance(value, str | int) or is_list(value):  # of a list of numbers Python would make bytes
        raise _cannot_store(target, value)
    return bytes(value)


def _store_date(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        value = date_of_text(value)
    if isinstance(value, dt.datetime):
        if value.time() != dt.time(0):
            raise _cannot_store(target, value, "Use CAST(... AS DATE) to drop the time.")
        value = value.date()
    if not isinstance(value, dt.date):
        raise _cannot_store(target, value)
    return value.toordinal() - _EPOCH_DAY


def _store_time(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        if ":" not in value:  # '12' and '123456' are more likely something else
            raise _cannot_store(target, value)
        value = time_of_text(value)
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        raise _cannot_store(target, value)
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _store_timestamp(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        value = datetime_of_text(value)
    if isinstance(value, dt.datetime):
        if value != value:  # pandas' NaT calls itself a datetime
            raise _cannot_store(target, value)
        # A value with a zone goes into a column without one as the same instant in UTC, of the years 1 to 9999.
        return (value - EPOCH if value.tzinfo is None else value.astimezone(dt.UTC) - EPOCH_UTC) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_DAY) * 86_400_000_000
    raise _cannot_store(target, value)


def _naive_timestamp(value: Any) -> Any:
    if type(value) is dt.datetime and value.tzinfo is None:
        return (value - EPOCH) // _MICROSECOND
    return to_stored(TIMESTAMP, value)


def _store_interval(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        found, stored = parse_interval(value)
        if found != target:
            raise _cannot_store(target, value)
        return stored
    if target.kind is Kind.INTERVAL_MONTHS and type(value) is int:
        return value
    if target.kind is Kind.INTERVAL_TIME and isinstance(value, dt.timedelta):
        return value // _MICROSECOND
    raise _cannot_store(target, value)


_TO_STORED: dict[Kind, Callable[[SqlType, Any], Any]] = {
    Kind.NULL: _store_nothing,
    Kind.BOOLEAN: _store_boolean,
    Kind.TINYINT: _store_integer,
    Kind.SMALLINT: _store_integer,
    Kind.INTEGER: _store_integer,
    Kind.BIGINT: _store_integer,
    Kind.DECIMAL: _store_decimal,
    Kind.REAL: _store_real,
    Kind.DOUBLE: _store_double,
    Kind.VARCHAR: _store_string,
    Kind.VARBINARY: _store_bytes,
    Kind.DATE: _store_date,
    Kind.TIME: _store_time,
    Kind.TIMESTAMP: _store_timestamp,
    Kind.TIMESTAMP_TZ: _store_timestamp,
    Kind.INTERVAL_MONTHS: _store_interval,
    Kind.INTERVAL_TIME: _store_interval,
}

_STORED_AS_IS: dict[Kind, type] = {Kind.BOOLEAN: bool, Kind.DOUBLE: float, Kind.VARBINARY: bytes}


def _timestamp_to_python(stored: int) -> dt.datetime:
    return EPOCH + stored * _MICROSECOND  # a quarter faster than with a `timedelta` made of the number


def _instant_to_python(stored: int) -> dt.datetime:
    return EPOCH_UTC + dt.timedelta(0, 0, stored)


def _interval_to_python(stored: int) -> dt.timedelta:
    return dt.timedelta(0, 0, stored)


def _date_to_python(stored: int) -> dt.date:
    return dt.date.fromordinal(stored + _EPOCH_DAY)


def _time_to_python(stored: int) -> dt.time:
    return (EPOCH + dt.timedelta(0, 0, stored)).time()


_TO_PYTHON: dict[Kind, Callable[[Any], Any]] = {
    Kind.DATE: _date_to_python,
    Kind.TIME: _time_to_python,
    Kind.TIMESTAMP: _timestamp_to_python,
    Kind.TIMESTAMP_TZ: _instant_to_python,
    Kind.INTERVAL_TIME: _interval_to_python,
}
