"""SQL types as values, and the one place that maps them to Arrow, to Spark and to Python.

A value has two forms. The *Python form* is what users give and get: `datetime.date`, `datetime.datetime`, `Decimal`.
The *stored form* is what segments, logs, indexes and hashes work with; it differs only for DATE (days since 1970),
TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE and INTERVAL DAY TO SECOND (microseconds), which are plain integers there. An
INTERVAL YEAR TO MONTH, for which Python has no type, is a number of months in both.

This package knows no expressions, no catalog and no data.
"""

from remuda.types.intervals import clock_text, interval_text, interval_words, parse_interval
from remuda.types.moment_text import datetime_of_text
from remuda.types.python_columns import NUMPY_UNITS, convert_each, python_column_converter
from remuda.types.sql_type import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_RANGES,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    JSON,
    LONG_DIGITS,
    MAXIMUM_PRECISION,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARBINARY,
    VARCHAR,
    Kind,
    SqlType,
    common_type,
    decimal,
    exact_digits,
    from_arrow,
)
from remuda.types.stored_values import (
    EPOCH,
    EPOCH_UTC,
    python_converter,
    stored_as_is,
    stored_converter,
    to_python,
    to_stored,
    type_of_value,
    written_form,
)

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "EPOCH",
    "EPOCH_UTC",
    "INTEGER",
    "INTEGER_RANGES",
    "INTERVAL_MONTHS",
    "INTERVAL_TIME",
    "JSON",
    "LONG_DIGITS",
    "MAXIMUM_PRECISION",
    "NULL",
    "NUMPY_UNITS",
    "REAL",
    "SMALLINT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_TZ",
    "TINYINT",
    "VARBINARY",
    "VARCHAR",
    "Kind",
    "SqlType",
    "clock_text",
    "common_type",
    "convert_each",
    "datetime_of_text",
    "decimal",
    "exact_digits",
    "from_arrow",
    "interval_text",
    "interval_words",
    "parse_interval",
    "python_column_converter",
    "python_converter",
    "stored_as_is",
    "stored_converter",
    "to_python",
    "to_stored",
    "type_of_value",
    "written_form",
]
