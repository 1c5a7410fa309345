"""Type names as users write them, in definitions and in casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda import types
from remuda.errors import Span, SqlError, nearest, not_supported, number_too_long, parsing_error, unknown_object
from remuda.sql.parse import other_names

if TYPE_CHECKING:
    from remuda.sql.parse.cursor import Cursor
    from remuda.types import SqlType

TYPE_NAMES: dict[str, SqlType] = {
    "BOOLEAN": types.BOOLEAN,
    "BOOL": types.BOOLEAN,
    "TINYINT": types.TINYINT,
    "SMALLINT": types.SMALLINT,
    "INTEGER": types.INTEGER,
    "INT": types.INTEGER,
    "BIGINT": types.BIGINT,
    "LONG": types.BIGINT,
    "REAL": types.REAL,
    "FLOAT": types.DOUBLE,
    "DOUBLE": types.DOUBLE,
    "DOUBLE PRECISION": types.DOUBLE,
    "VARCHAR": types.VARCHAR,
    "TEXT": types.VARCHAR,
    "STRING": types.VARCHAR,
    "CHARACTER VARYING": types.VARCHAR,
    "CHAR VARYING": types.VARCHAR,
    "NVARCHAR": types.VARCHAR,
    "CHAR": types.VARCHAR,
    "CHARACTER": types.VARCHAR,
    "NCHAR": types.VARCHAR,
    "VARBINARY": types.VARBINARY,
    "BYTEA": types.VARBINARY,
    "BLOB": types.VARBINARY,
    "DATE": types.DATE,
    "TIME": types.TIME,
    "TIMESTAMP": types.TIMESTAMP,
    "TIMESTAMPTZ": types.TIMESTAMP_TZ,
    "DATETIME": types.TIMESTAMP,
    "JSON": types.JSON,
    "INT2": types.SMALLINT,
    "INT4": types.INTEGER,
    "INT8": types.BIGINT,
    "FLOAT4": types.REAL,
    "FLOAT8": types.DOUBLE,
}
DEFAULT_DECIMAL = (38, 10)
OF_ONE_CHARACTER = frozenset({"CHAR", "CHARACTER", "NCHAR"})
"""Types of texts that have one character where no length is written."""
_DECIMALS = frozenset({"DECIMAL", "NUMERIC", "DEC"})


def parse_type(cursor: Cursor) -> tuple[SqlType, int | None]:
    """Parse the type of a column, `DECIMAL(10, 2)`, `TIMESTAMP WITH TIME ZONE`, and the length of `VARCHAR(20)`."""
    span = cursor.span
    if cursor.current is not None and not cursor.current.text[:1].isalpha():
        raise cursor.unexpected("a type")
    written = " ".join(cursor.take("a type").text.upper().split())
    if written == "INTERVAL":
        raise not_supported("INTERVAL is a type of expressions, not of columns", span=span)
    if written == "DOUBLE":
        cursor.accept("PRECISION")
    arguments: list[int] = []
    if cursor.accept("("):
        arguments.append(cursor.integer())
        while cursor.accept(","):
            arguments.append(cursor.integer())
        cursor.expect(")")
    type_ = type_named(written, arguments, span)
    if written == "TIMESTAMP" and cursor.accept("WITH", "TIME", "ZONE"):
        return types.TIMESTAMP_TZ, None
    if written in {"TIMESTAMP", "TIME"}:
        cursor.accept("WITHOUT", "TIME", "ZONE")
    if cursor.at("["):
        raise array_type(f"{written}[]", span)
    return type_, length_of(written, arguments) if type_ == types.VARCHAR else None


def array_type(written: str, span: Span | None) -> SqlError:
    return not_supported(f"an array, {written}, is not supported", span=span, suggestion=other_names.TYPES["ARRAY"])


def length_of(written: str, arguments: list[int]) -> int | None:
    """Return the greatest number of characters of a type of texts, or None."""
    return arguments[0] if arguments else (1 if written in OF_ONE_CHARACTER else None)


def type_named(written: str, arguments: list[int], span: Span | None) -> SqlType:
    if written in _DECIMALS:
        if len(arguments) > 2:
            raise parsing_error(f"{written} takes a precision and a scale", span=span)
        precision, scale = (*arguments, 0)[:2] if arguments else DEFAULT_DECIMAL
        try:
            return types.decimal(precision, scale)
        except SqlError as error:
            raise number_too_long(error.message, span=span) from None
    known = TYPE_NAMES.get(written)
    if known is None and written.endswith("[]"):
        raise array_type(written, span)
    if known is None:
        hint = other_names.TYPES.get(written) or nearest(written, TYPE_NAMES)
        raise unknown_object(f"unknown type: {written}", span=span, suggestion=hint)
    if known == types.VARCHAR and arguments and (len(arguments) > 1 or arguments[0] < 1):
        raise parsing_error(f"the length of {written} is one number, from 1", span=span)
    if arguments and not (known == types.VARCHAR or (known.is_temporal and arguments == [6])):
        what = "always has a precision of 6" if known.is_temporal else "takes no arguments"
        raise parsing_error(f"{written} {what}", span=span)
    return known
