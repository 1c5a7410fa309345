"""Which Arrow types may be loaded into a column, and what Arrow's cast loses in doing so without a word."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from remuda.types import Kind


def can_hold(kind: Kind, given: pa.DataType) -> bool:
    """Whether values of an Arrow type are loaded into a column. Arrow's cast would take a moment for the number that
    it is inside, and the other way round, and every number that is not zero for true."""
    read = bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))
    match kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return not pa.types.is_duration(given)
        case Kind.TIME:
            return read or bool(pa.types.is_time(given))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return read or bool(pa.types.is_date(given) or pa.types.is_timestamp(given))
        case Kind.BOOLEAN:
            return read or bool(pa.types.is_boolean(given) or pa.types.is_integer(given))
        case _:
            return not pa.types.is_temporal(given)


def what_is_lost(kind: Kind, array: pa.Array, result: pa.Array) -> pa.Array | None:
    """The rows that Arrow's cast has changed without a word: a time that a DATE has no place for, a number that is too
    large for a REAL."""
    if kind is Kind.DATE and pa.types.is_timestamp(array.type):
        return pc.not_equal(result.cast(pa.timestamp(array.type.unit)), array.cast(pa.timestamp(array.type.unit)))
    if kind is Kind.REAL and (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        return pc.and_(pc.is_inf(result), pc.is_finite(array.cast(pa.float64())))
    return None
