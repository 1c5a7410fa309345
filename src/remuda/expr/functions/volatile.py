"""Volatile functions: random() and gen_random_uuid(), which give another value each time they are asked.

Rules may assume that an expression has one value for a row, however often it is evaluated; of these that is not true.
So the binder computes each call in a projection of its own, below the operator that uses it, and whatever would
evaluate that projection's expression in a second place has to ask `is_volatile` first. Their one argument is the number
of the call in the statement: two calls are never the same expression.
"""

from __future__ import annotations

import os
import random
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.expr.function import Function, fixed
from remuda.types import BIGINT, DOUBLE, VARCHAR

if TYPE_CHECKING:
    from remuda.expr.function import Datum

_UUID_BYTES = 16


def _random_numbers(rows: int) -> Datum:
    # A generator of its own for each batch: one that is kept would be the same in every process forked from this one.
    return pa.array(np.random.default_rng().random(rows))


def _random_number(_: int) -> float:
    return random.SystemRandom().random()


def _identifiers(rows: int) -> Datum:
    random_bytes = os.urandom(_UUID_BYTES * rows)
    return pa.array(
        [_identifier_of(random_bytes[at : at + _UUID_BYTES]) for at in range(0, len(random_bytes), _UUID_BYTES)],
        pa.string(),
    )


def _identifier(_: int) -> str:
    return _identifier_of(os.urandom(_UUID_BYTES))


def _identifier_of(random_bytes: bytes) -> str:
    return str(uuid.UUID(bytes=random_bytes, version=4))


def _volatile(name: str, result: Any, batch: Any, row: Any) -> Function:
    """Define a volatile function; `batch` takes the number of rows, `row` the number of the call."""
    return Function(name, fixed([BIGINT], result), lambda _: batch, lambda _: row, volatile=True)


FUNCTIONS = (
    _volatile("random", DOUBLE, _random_numbers, _random_number),
    _volatile("gen_random_uuid", VARCHAR, _identifiers, _identifier),
)
VOLATILE = frozenset(function.name for function in FUNCTIONS)
