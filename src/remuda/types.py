"""SQL types as values, and the one place that maps them to Arrow, to Spark and to Python.

A value has two forms. The *Python form* is what users give and get: `datetime.date`, `datetime.datetime`, `Decimal`.
The *stored form* is what segments, logs, indexes and hashes work with; it differs only for DATE (days since 1970),
TIME, TIMESTAMP and TIMESTAMP WITH TIME ZONE (microseconds), which are plain integers there.

This module knows no expressions, no catalog and no data.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError, data_error, parsing_error

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(Enum):
    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    REAL = "REAL"
    DOUBLE = "DOUBLE"
    VARCHAR = "VARCHAR"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_TZ = "TIMESTAMP WITH TIME ZONE"

    # Enum members are singletons; hashing by identity makes them cheap dictionary keys.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SqlType:
    """One SQL type. `precision` and `scale` are set for DECIMAL alone.

    >>> str(decimal(10, 2)), decimal(10, 2).arrow
    ('DECIMAL(10, 2)', Decimal128Type(decimal128(10, 2)))
    """

    kind: Kind
    precision: int = 0
    scale: int = 0

    @property
    def arrow(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale) if self.kind is Kind.DECIMAL else _ARROW[self.kind]

    @property
    def spark(self) -> str:
        """The type's name in a Spark schema string."""
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else _SPARK[self.kind]

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_RANGES

    @property
    def is_exact(self) -> bool:
        return self.kind is Kind.DECIMAL or self.kind in INTEGER_RANGES

    @property
    def is_floating(self) -> bool:
        return self.kind is Kind.REAL or self.kind is Kind.DOUBLE

    @property
    def is_numeric(self) -> bool:
        return self.is_exact or self.is_floating

    @property
    def is_temporal(self) -> bool:
        return self.kind in _TEMPORAL

    @property
    def byte_width(self) -> int:
        """Bytes a value takes on average: what cost estimates multiply rows with."""
        return _BYTE_WIDTHS.get(self.kind, 8)

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})" if self.kind is Kind.DECIMAL else self.kind.value


NULL = SqlType(Kind.NULL)
BOOLEAN = SqlType(Kind.BOOLEAN)
TINYINT = SqlType(Kind.TINYINT)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
REAL = SqlType(Kind.REAL)
DOUBLE = SqlType(Kind.DOUBLE)
VARCHAR = SqlType(Kind.VARCHAR)
VARBINARY = SqlType(Kind.VARBINARY)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMP_TZ = SqlType(Kind.TIMESTAMP_TZ)

MAXIMUM_PRECISION = 38


def decimal(precision: int, scale: int) -> SqlType:
    """The DECIMAL type; refuses what 38 digits cannot hold."""
    if not (1 <= precision <= MAXIMUM_PRECISION and 0 <= scale <= precision):
        raise parsing_error(
            f"DECIMAL({precision}, {scale}) is not a type: up to {MAXIMUM_PRECISION} digits are possible"
        )
    return SqlType(Kind.DECIMAL, precision, scale)


INTEGER_RANGES: dict[Kind, tuple[int, int]] = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
_INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 20}
_TEMPORAL = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})
_WIDENING = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_BYTE_WIDTHS = {
    Kind.BOOLEAN: 1,
    Kind.TINYINT: 1,
    Kind.SMALLINT: 2,
    Kind.INTEGER: 4,
    Kind.REAL: 4,
    Kind.DATE: 4,
    Kind.DECIMAL: 16,
    Kind.VARCHAR: 16,
    Kind.VARBINARY: 32,
}

_ARROW: dict[Kind, pa.DataType] = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.VARCHAR: pa.string(),
    Kind.VARBINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMP_TZ: pa.timestamp("us", tz="UTC"),
}

_SPARK: dict[Kind, str] = {
    Kind.NULL: "void",
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "tinyint",
    Kind.SMALLINT: "smallint",
    Kind.INTEGER: "int",
    Kind.BIGINT: "bigint",
    Kind.REAL: "float",
    Kind.DOUBLE: "double",
    Kind.VARCHAR: "string",
    Kind.VARBINARY: "binary",
    Kind.DATE: "date",
    Kind.TIME: "time(6)",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMP_TZ: "timestamp",
}

_EXACT_FROM_ARROW: dict[pa.DataType, SqlType] = {
    **{arrow: SqlType(kind) for kind, arrow in _ARROW.items()},
    pa.large_string(): VARCHAR,
    pa.string_view(): VARCHAR,
    pa.large_binary(): VARBINARY,
    pa.date64(): DATE,
    pa.uint8(): SMALLINT,
    pa.uint16(): INTEGER,
    pa.uint32(): BIGINT,
}


def from_arrow(arrow: pa.DataType) -> SqlType:
    """The SQL type that holds every value of an Arrow type.

    >>> str(from_arrow(pa.dictionary(pa.int32(), pa.string()))), str(from_arrow(pa.timestamp("ns", tz="CET")))
    ('VARCHAR', 'TIMESTAMP WITH TIME ZONE')
    """
    if pa.types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    exact = _EXACT_FROM_ARROW.get(arrow)
    if exact is not None:
        return exact
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP if arrow.tz is None else TIMESTAMP_TZ
    if pa.types.is_time(arrow):
        return TIME
    if pa.types.is_decimal(arrow) and arrow.precision <= MAXIMUM_PRECISION:
        return decimal(arrow.precision, arrow.scale)
    raise data_error(f"the Arrow type {arrow} has no SQL type")


def common_type(left: SqlType, right: SqlType) -> SqlType | None:
    """The type to which both sides of a comparison, a CASE or a set operation are brought; None where there is none.

    >>> str(common_type(INTEGER, DOUBLE)), str(common_type(decimal(10, 2), BIGINT)), common_type(VARCHAR, INTEGER)
    ('DOUBLE', 'DECIMAL(22, 2)', None)
    """
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda side: _WIDENING.index(side.kind))
    if left.is_numeric and right.is_numeric:
        if left.is_floating or right.is_floating:
            return REAL if left.kind is right.kind is Kind.REAL else DOUBLE
        (left_digits, left_scale), (right_digits, right_scale) = _digits(left), _digits(right)
        scale = max(left_scale, right_scale)
        whole = max(left_digits - left_scale, right_digits - right_scale)
        return SqlType(Kind.DECIMAL, min(whole + scale, MAXIMUM_PRECISION), scale)
    if {left.kind, right.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if {left.kind, right.kind} in ({Kind.DATE, Kind.TIMESTAMP_TZ}, {Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}):
        return TIMESTAMP_TZ
    return None


def _digits(exact: SqlType) -> tuple[int, int]:
    if exact.kind is Kind.DECIMAL:
        return exact.precision, exact.scale
    return _INTEGER_DIGITS[exact.kind], 0


EPOCH = dt.datetime(1970, 1, 1)
EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)


def to_stored(target: SqlType, value: Any) -> Any:
    """A value given in its Python form, as stored in a column of type `target`.

    What would lose value is refused: 100000 is no SMALLINT, 1.5 is no integer.

    >>> to_stored(DATE, dt.date(1970, 1, 3)), to_stored(BIGINT, 7), to_stored(DOUBLE, 7)
    (2, 7, 7.0)
    """
    if value is None:
        return None
    try:
        return _TO_STORED[target.kind](target, value)
    except SqlError:
        raise
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise _cannot_store(target, value) from error


def stored_converter(target: SqlType) -> Callable[[Any], Any]:
    """`to_stored` for one type, as a function of the value alone."""
    if target.is_integer:
        low, high = INTEGER_RANGES[target.kind]

        def integer(value: Any) -> Any:
            if type(value) is int and low <= value <= high:
                return value
            return to_stored(target, value)

        return integer
    exact = _STORED_AS_IS.get(target.kind)
    if exact is not None:
        return lambda value: value if type(value) is exact else to_stored(target, value)
    return lambda value: to_stored(target, value)


def python_converter(source: SqlType) -> Callable[[Any], Any] | None:
    """The function from a stored, non-NULL value to its Python form; None where the two are the same."""
    return _TO_PYTHON.get(source.kind)


def to_python(source: SqlType, stored: Any) -> Any:
    """
    >>> to_python(TIMESTAMP, 1_000_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1)
    """
    convert = _TO_PYTHON.get(source.kind)
    return stored if stored is None or convert is None else convert(stored)


def type_of_value(value: Any) -> SqlType:
    """The SQL type of a Python value: how an untyped parameter gets its type."""
    for python_type, sql_type in _PYTHON_TYPES:
        if isinstance(value, python_type):
            return sql_type(value) if callable(sql_type) else sql_type
    raise data_error(f"a value of Python type {type(value).__name__} cannot be used in SQL")


def _decimal_type_of(value: Decimal) -> SqlType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise data_error(f"{value} is not a DECIMAL")
    scale = max(0, -exponent)
    return decimal(max(len(digits) + max(0, exponent), scale, 1), scale)


def _datetime_type_of(value: dt.datetime) -> SqlType:
    return TIMESTAMP if value.tzinfo is None else TIMESTAMP_TZ


def _integer_type_of(value: int) -> SqlType:
    low, high = INTEGER_RANGES[Kind.BIGINT]
    return BIGINT if low <= value <= high else decimal(max(1, len(str(abs(value)))), 0)


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
    (bytes, VARBINARY),
)


def _cannot_store(target: SqlType, value: Any, hint: str | None = None) -> SqlError:
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    return data_error(f"{shown} ({type(value).__name__}) is not a value of type {target}", suggestion=hint)


def _store_nothing(target: SqlType, value: Any) -> Any:
    raise _cannot_store(target, value)


def _store_boolean(target: SqlType, value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's bool is not Python's
        return bool(value)
    raise _cannot_store(target, value)


def _store_integer(target: SqlType, value: Any) -> int:
    if isinstance(value, bool):
        raise _cannot_store(target, value)
    if isinstance(value, float | Decimal) and value != int(value):
        raise _cannot_store(target, value, f"Use CAST(... AS {target}) to round it.")
    if isinstance(value, str | bytes):
        raise _cannot_store(target, value, f"Use CAST(... AS {target}) to convert it.")
    whole = int(value)
    low, high = INTEGER_RANGES[target.kind]
    if not low <= whole <= high:
        raise data_error(f"{whole} overflows {target}: it holds {low} to {high}")
    return whole


def _store_decimal(target: SqlType, value: Any) -> Decimal:
    if isinstance(value, bool | str | bytes):
        raise _cannot_store(target, value)
    with localcontext(prec=MAXIMUM_PRECISION + 1):
        exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)  # numpy's repr has a name
        if not exact.is_finite():
            raise _cannot_store(target, value)
        rounded = exact.quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP)
    if len(rounded.as_tuple().digits) > target.precision:
        raise data_error(f"{value} overflows {target}")
    return rounded


def _store_real(target: SqlType, value: Any) -> float:
    number = _store_double(target, value)
    if math.isinf(number) or math.isnan(number):
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError as error:
        raise data_error(f"{value} overflows {target}") from error


def _store_double(target: SqlType, value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise _cannot_store(target, value)
    return float(value)


def _store_string(target: SqlType, value: Any) -> str:
    if not isinstance(value, str):
        raise _cannot_store(target, value)
    return str(value)


def _store_bytes(target: SqlType, value: Any) -> bytes:
    if isinstance(value, str | int):
        raise _cannot_store(target, value)
    return bytes(value)


def _store_date(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        value = dt.date.fromisoformat(value.strip())
    if isinstance(value, dt.datetime):
        if value.time() != dt.time(0):
            raise _cannot_store(target, value, "Use CAST(... AS DATE) to drop the time.")
        value = value.date()
    if not isinstance(value, dt.date):
        raise _cannot_store(target, value)
    return value.toordinal() - _EPOCH_DAY


def _store_time(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        value = dt.time.fromisoformat(value.strip())
    if not isinstance(value, dt.time):
        raise _cannot_store(target, value)
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _store_timestamp(target: SqlType, value: Any) -> int:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value.strip())
    if isinstance(value, dt.datetime):
        # A value with a zone goes into a column without one as the same instant in UTC.
        return (value - (EPOCH if value.tzinfo is None else EPOCH_UTC)) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_DAY) * 86_400_000_000
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
}

_STORED_AS_IS: dict[Kind, type] = {Kind.BOOLEAN: bool, Kind.DOUBLE: float, Kind.VARCHAR: str, Kind.VARBINARY: bytes}


def _timestamp_to_python(stored: int) -> dt.datetime:
    return EPOCH + dt.timedelta(0, 0, stored)


def _instant_to_python(stored: int) -> dt.datetime:
    return EPOCH_UTC + dt.timedelta(0, 0, stored)


def _date_to_python(stored: int) -> dt.date:
    return dt.date.fromordinal(stored + _EPOCH_DAY)


def _time_to_python(stored: int) -> dt.time:
    return (EPOCH + dt.timedelta(0, 0, stored)).time()


_TO_PYTHON: dict[Kind, Callable[[Any], Any]] = {
    Kind.DATE: _date_to_python,
    Kind.TIME: _time_to_python,
    Kind.TIMESTAMP: _timestamp_to_python,
    Kind.TIMESTAMP_TZ: _instant_to_python,
}
