"""Sizes of the texts that functions make, known before the texts are made.

A short statement can ask for more text than there is memory: `replace(repeat('x', 60000000), 'x', repeat('y', 1000))`.
One text has at most `LONGEST` characters, in both evaluations. The texts that a function makes of a batch have at most
the statement's memory limit, and never more bytes than an Arrow array of text holds.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import LESS_MEMORY, memory_error, size_error
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.expr.function import Datum

LONGEST = 1 << 26
"""Characters of a text that a function makes at most."""

ARRAY_BYTES = (1 << 31) - 2
"""Bytes of all texts of an Arrow array."""


ALWAYS_ALLOWED = 16 << 20
"""Bytes of the texts of a batch that are made whatever the limit: they pass by, and are not held."""


class _Room(local):
    limit: int | None = None


_room = _Room()


@contextmanager
def memory_limited(limit: int | None) -> Iterator[None]:
    """Within it functions on this thread make no more than `limit` bytes of text at once; None limits nothing."""
    before, _room.limit = _room.limit, limit
    try:
        yield
    finally:
        _room.limit = before


def room_for_texts() -> int:
    """Bytes that a function may make of a batch."""
    return ARRAY_BYTES if _room.limit is None else min(ARRAY_BYTES, max(_room.limit, ALWAYS_ALLOWED))


def refuse_size(size: int) -> None:
    """Raise where texts of so many bytes shall not be made."""
    if size > room_for_texts():
        if size > ARRAY_BYTES:
            raise memory_error(
                "a batch has more text than an array can hold", suggestion="Ask for fewer rows, or for shorter texts."
            )
        raise memory_error(
            f"texts of {size:,} bytes need more memory than the limit of {room_for_texts():,} bytes",
            suggestion=LESS_MEMORY,
        )


def refuse_length(length: int) -> None:
    """Raise where one text of so many characters shall not be made."""
    if length > LONGEST:
        raise size_error(f"a text of {length} characters is too long to make")


def rows_of_datums(*data: Datum) -> int:
    return next((len(datum) for datum in data if not isinstance(datum, pa.Scalar)), 1)


def bytes_of_texts(datum: Datum, rows: int) -> int:
    """Return a lower bound of the bytes of the texts; one text for all rows counts for each of them."""
    if isinstance(datum, pa.Scalar):
        value: Any = datum.as_py()
        return 0 if value is None else rows * len(value.encode() if isinstance(value, str) else value)
    return int(datum.nbytes)


def exact_bytes(datum: Datum) -> int:
    lengths = pc.binary_length(datum)
    return int((lengths if isinstance(datum, pa.Scalar) else pc.sum(lengths, min_count=0)).as_py() or 0)


def refuse_longest(result: Datum) -> Datum:
    """Return the texts that were made; raise where one of them is too long."""
    if isinstance(result, pa.Scalar):
        value = result.as_py()
        refuse_length(0 if value is None else len(value))
    elif result.nbytes > LONGEST:
        refuse_length(pc.max(pc.utf8_length(result)).as_py() or 0)
    return result
