"""`WITH (option = value, ...)` of CREATE TABLE: how the table is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.catalog.definitions import MOST_PARTITIONS
from remuda.errors import SqlError, bad_definition, nearest, parsing_error, unknown_object
from remuda.sql.parse.statements import TableOptions
from remuda.types import INTERVAL_TIME
from remuda.types.intervals import parse_interval

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from remuda.errors import Span
    from remuda.sql.parse.cursor import Cursor


def parse_table_options(cursor: Cursor) -> TableOptions:
    """Read `(option = value, ...)`, which stands behind WITH. An option that is not given keeps its default."""
    cursor.expect("(")
    values: dict[str, Any] = {}
    while True:
        span = cursor.span
        option = cursor.name("an option of a table").text.casefold()
        if option not in _OPTIONS:
            hint = nearest(option, list(_OPTIONS)) or f"The options of a table are {', '.join(_OPTIONS)}."
            raise unknown_object(f"unknown option of a table: {option}", span=span, suggestion=hint)
        if option in values:
            raise parsing_error(f"{option} is given twice", span=span)
        cursor.expect("=")
        values[option] = _OPTIONS[option](cursor, cursor.span)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return TableOptions(**values)


def _partitions(cursor: Cursor, span: Span) -> int:
    partitions = -cursor.integer() if cursor.accept("-") else cursor.integer()
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise bad_definition(f"a table has from 1 to {MOST_PARTITIONS} partitions, not {partitions}", span=span)
    return partitions


def _retention(cursor: Cursor, span: Span) -> int:
    """Read how long versions are kept, an interval in quotes, in seconds."""
    text = cursor.string("an interval, as '1 day'")
    try:
        type_, value = parse_interval(text)
    except SqlError as error:
        raise error.restated(span=span) from error
    if type_ != INTERVAL_TIME or not 0 <= value <= MOST_RETENTION * 1_000_000:
        raise bad_definition("versions are kept for '0 seconds' to '10000 days'", span=span)
    return value // 1_000_000


def _compression(cursor: Cursor, span: Span) -> str:
    """Read how files on object stores are compressed."""
    codec = cursor.string("'zstd', 'lz4' or 'none'").casefold()
    if codec not in COMPRESSIONS:
        raise bad_definition(f"a table is compressed by 'zstd' or 'lz4', or 'none', not by {codec!r}", span=span)
    return codec


MOST_RETENTION = 10_000 * 24 * 3600
"""Seconds."""
COMPRESSIONS = ("zstd", "lz4", "none")
_OPTIONS: dict[str, Callable[[Cursor, Span], Any]] = {
    "partitions": _partitions,
    "retention": _retention,
    "compression": _compression,
}
"""Reads the value of each option; the names are those of the fields of `TableOptions`."""
