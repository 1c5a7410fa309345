"""The types themselves: SQL types as values, their Arrow and Spark types, and the type that two of them share."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import number_too_long, value_error


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
    INTERVAL_MONTHS = "INTERVAL YEAR TO MONTH"
    INTERVAL_TIME = "INTERVAL DAY TO SECOND"

    # Enum members are singletons; hashing by identity makes them cheap dictionary keys.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SqlType:
    """One SQL type. `precision` and `scale` are set for DECIMAL alone.

    `json` marks text that is known to be JSON. Its kind is VARCHAR, so that what stores, orders and hashes text does
    the same with it; only what makes such a value has to know more.

    >>> str(decimal(10, 2)), decimal(10, 2).arrow
    ('DECIMAL(10, 2)', Decimal128Type(decimal128(10, 2)))
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    json: bool = False

    @classmethod
    def named(cls, name: str, precision: int = 0, scale: int = 0) -> SqlType:
        """Invert `name`."""
        return JSON if name == JSON.name else cls(Kind(name), precision, scale)

    @property
    def name(self) -> str:
        """Without precision and scale."""
        return "JSON" if self.json else self.kind.value

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
    def is_interval(self) -> bool:
        return self.kind is Kind.INTERVAL_MONTHS or self.kind is Kind.INTERVAL_TIME

    @property
    def byte_width(self) -> int:
        """Bytes a value takes on average: what cost estimates multiply rows with."""
        return _BYTE_WIDTHS.get(self.kind, 8)

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})" if self.kind is Kind.DECIMAL else self.name


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
JSON = SqlType(Kind.VARCHAR, json=True)
INTERVAL_MONTHS = SqlType(Kind.INTERVAL_MONTHS)
INTERVAL_TIME = SqlType(Kind.INTERVAL_TIME)

MAXIMUM_PRECISION = 38
LONG_DIGITS = 18
"""Digits that a 64-bit integer holds whatever they are. Spark hashes a DECIMAL of up to so many as a long."""


def decimal(precision: int, scale: int) -> SqlType:
    """Return the DECIMAL type; refuses what 38 digits cannot hold."""
    if not (1 <= precision <= MAXIMUM_PRECISION and 0 <= scale <= precision):
        raise number_too_long(
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
_TEMPORAL = frozenset(
    {Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ, Kind.INTERVAL_MONTHS, Kind.INTERVAL_TIME}
)
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
    Kind.INTERVAL_MONTHS: pa.int64(),  # Arrow's own type of months can neither be compared nor computed with
    Kind.INTERVAL_TIME: pa.duration("us"),
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
    Kind.INTERVAL_MONTHS: "interval year to month",
    Kind.INTERVAL_TIME: "interval day to second",
}

_EXACT_FROM_ARROW: dict[pa.DataType, SqlType] = {
    **{arrow: SqlType(kind) for kind, arrow in _ARROW.items() if kind is not Kind.INTERVAL_MONTHS},
    pa.large_string(): VARCHAR,
    pa.string_view(): VARCHAR,
    pa.large_binary(): VARBINARY,
    pa.date64(): DATE,
    pa.uint8(): SMALLINT,
    pa.uint16(): INTEGER,
    pa.uint32(): BIGINT,
}


def from_arrow(arrow: pa.DataType) -> SqlType:
    """Return the SQL type that holds every value of an Arrow type.

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
    if pa.types.is_duration(arrow):
        return INTERVAL_TIME
    if pa.types.is_decimal(arrow) and arrow.precision <= MAXIMUM_PRECISION:
        return decimal(arrow.precision, arrow.scale)
    raise value_error(f"the Arrow type {arrow} has no SQL type")


def common_type(left: SqlType, right: SqlType) -> SqlType | None:
    """Return the common type of both sides of a comparison, a CASE or a set operation, or None.

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
        (left_digits, left_scale), (right_digits, right_scale) = exact_digits(left), exact_digits(right)
        scale = max(left_scale, right_scale)
        whole = max(left_digits - left_scale, right_digits - right_scale)
        return SqlType(Kind.DECIMAL, min(whole + scale, MAXIMUM_PRECISION), scale)
    if left.kind is right.kind is Kind.VARCHAR:
        return VARCHAR
    if {left.kind, right.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if {left.kind, right.kind} in ({Kind.DATE, Kind.TIMESTAMP_TZ}, {Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}):
        return TIMESTAMP_TZ
    return None


def is_widening(narrow: SqlType, wide: SqlType) -> bool:
    """Test whether every value of the one type is a value of the other, and different ones stay different.

    >>> is_widening(INTEGER, BIGINT), is_widening(INTEGER, DOUBLE), is_widening(BIGINT, DOUBLE)
    (True, True, False)
    """
    if narrow.is_integer and wide.is_integer:
        return narrow.byte_width <= wide.byte_width
    if narrow.is_integer and wide.kind is Kind.DOUBLE:
        return narrow.kind is not Kind.BIGINT
    if narrow.is_integer and wide.kind is Kind.DECIMAL:
        return wide.precision - wide.scale >= len(str(INTEGER_RANGES[narrow.kind][1]))
    if narrow.kind is Kind.DECIMAL and wide.kind is Kind.DECIMAL:
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
    return narrow.kind is Kind.REAL and wide.kind is Kind.DOUBLE


def exact_digits(exact: SqlType) -> tuple[int, int]:
    """Precision and scale of the DECIMAL that holds every value of an exact type.

    >>> exact_digits(INTEGER), exact_digits(decimal(10, 2))
    ((10, 0), (10, 2))
    """
    if exact.kind is Kind.DECIMAL:
        return exact.precision, exact.scale
    return _INTEGER_DIGITS[exact.kind], 0
