"""The hash of key values: Spark's `xxhash64` with seed 42, so that Spark and Remuda agree on partition ids for ever.

The partition of a row is `pmod(xxhash64(partitioning columns), partitions)`. Columns are chained: the hash of one is
the seed of the next, and NULL leaves the seed as it is. This module hashes one key; `column_hash` hashes whole columns.
"""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from math import isnan
from typing import TYPE_CHECKING, Any

from xxhash import xxh64_intdigest

from remuda.types.sql_type import LONG_DIGITS, Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SEED = 42
"""The seed of Spark's `xxhash64` function."""

NAN_FLOAT_BYTES = (0x7FC00000).to_bytes(4, "little")
NAN_DOUBLE_BYTES = (0x7FF8000000000000).to_bytes(8, "little")
"""Java's `floatToIntBits` and `doubleToLongBits` know one NaN only."""

NANOSECONDS = 1000
"""Spark keeps TIME in nanoseconds, Remuda in microseconds: the hash is of the former."""

SIGN = 1 << 63
WRAP = 1 << 64
"""A hash with the sign bit is that much less as a signed number."""

_EXACT = Context(prec=100)

_pack_integer = struct.Struct("<i").pack
_pack_long = struct.Struct("<q").pack
_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


def partition_of(signed_hash: int, partitions: int) -> int:
    """Compute Spark's `pmod`: Python's `%` already takes the sign of the divisor."""
    return signed_hash % partitions


def hash_values(values: Sequence[Any], types: Sequence[SqlType]) -> int:
    """Return the signed 64-bit hash of values in stored form, chained in order; NULLs allowed."""
    seed = SEED
    for value, sql_type in zip(values, types, strict=True):
        if value is not None:
            seed = xxh64_intdigest(hashed_bytes(sql_type)(value), seed)
    return to_signed(seed)


def to_signed(unsigned_hash: int) -> int:
    return unsigned_hash - WRAP if unsigned_hash & SIGN else unsigned_hash


def scalar_hasher(types: Sequence[SqlType]) -> Callable[[Any], int]:
    """Compile `hash_values` for one non-NULL key: the value itself for one type, a tuple for several."""
    unsigned = unsigned_hasher(types)

    def hash_key(key: Any) -> int:
        hashed = unsigned(key)
        return hashed - WRAP if hashed & SIGN else hashed

    return hash_key


def unsigned_hasher(types: Sequence[SqlType]) -> Callable[[Any], int]:
    """Return the same 64 bits as an unsigned number, from which the slots of hash tables are taken."""
    encoders = tuple(hashed_bytes(sql_type) for sql_type in types)
    if len(encoders) > 1:

        def hash_tuple(key: Any) -> int:
            seed = SEED
            for encode, value in zip(encoders, key, strict=True):
                seed = xxh64_intdigest(encode(value), seed)
            return seed

        return hash_tuple
    match types[0].kind:
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return lambda key: xxh64_intdigest(_pack_long(key), SEED)
        case Kind.VARCHAR:
            return lambda key: xxh64_intdigest(key.encode(), SEED)
        case _:
            (encode,) = encoders
            return lambda key: xxh64_intdigest(encode(key), SEED)


def hashed_bytes(sql_type: SqlType) -> Callable[[Any], bytes]:
    """Return the function from a stored, non-NULL value to the bytes that are hashed for it."""
    match sql_type.kind:
        case Kind.BOOLEAN | Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.DATE:
            return _pack_integer
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return _pack_long
        case Kind.TIME:
            return lambda value: _pack_long(value * NANOSECONDS)
        case Kind.REAL:
            # Adding 0.0 makes -0.0 a plain zero and changes nothing else.
            return lambda value: NAN_FLOAT_BYTES if isnan(value) else _pack_float(value + 0.0)
        case Kind.DOUBLE:
            return lambda value: NAN_DOUBLE_BYTES if isnan(value) else _pack_double(value + 0.0)
        case Kind.VARCHAR:
            return str.encode
        case Kind.VARBINARY:
            return bytes
        case Kind.DECIMAL if sql_type.precision <= LONG_DIGITS:
            return lambda value: _pack_long(unscaled(value, sql_type.scale))
        case Kind.DECIMAL:
            return lambda value: big_integer_bytes(unscaled(value, sql_type.scale))
        case _:
            raise AssertionError(f"{sql_type} is not the type of a column")


def unscaled(value: Decimal, scale: int) -> int:
    """Return the unscaled integer of a DECIMAL.

    >>> unscaled(Decimal("1.5"), 2)
    150
    """
    return int(_EXACT.scaleb(value, scale))


def big_integer_bytes(value: int) -> bytes:
    """Encode like Java's `BigInteger.toByteArray`: two's complement, big endian, as short as the sign bit allows.

    >>> big_integer_bytes(127), big_integer_bytes(128), big_integer_bytes(-128)
    (b'\\x7f', b'\\x00\\x80', b'\\x80')
    """
    bits = (value if value >= 0 else ~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)
