"""XXHASH64 and PMOD, exactly Spark's: `pmod(xxhash64(key), partitions)` is the partition of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.expr.evaluate.dictionary import as_array
from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.arithmetic import FUNCTIONS as ARITHMETIC
from remuda.types import BIGINT, Kind, SqlType, common_type
from remuda.types.arrow_compute import pc
from remuda.types.column_hash import hash_columns
from remuda.types.partition_hash import hash_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OPERATORS = {function.name: function for function in ARITHMETIC}


def _resolve_hash(given: Sequence[SqlType]) -> Signature | None:
    """Everything that can be in a column; NULL, whatever its type, leaves the hash as it is."""
    if not given or any(type_.is_interval for type_ in given):
        return None
    return Signature(tuple(BIGINT if type_.kind is Kind.NULL else type_ for type_ in given), BIGINT)


def _hash_row(signature: Signature) -> Callable[..., int]:
    return lambda *values: hash_values(values, signature.arguments)


def _hash_batch(signature: Signature) -> Callable[..., Datum]:
    def hashed(*values: Datum) -> Datum:
        rows = next((len(value) for value in values if isinstance(value, pa.Array)), None)
        arrays = [as_array(value, 1 if rows is None else rows) for value in values]
        hashes = pa.array(hash_columns(arrays, signature.arguments))
        return hashes[0] if rows is None else hashes

    return hashed


def _resolve_modulus(given: Sequence[SqlType]) -> Signature | None:
    result = common_type(*given) if len(given) == 2 else None
    return Signature((result, result), result) if result is not None and result.is_integer else None


def _modulus_row(signature: Signature) -> Callable[[Any, Any], Any]:
    remainder = _OPERATORS["%"].row(signature)

    def modulus(left: int, right: int) -> Any:
        rest = remainder(left, right)
        return rest if rest >= 0 else remainder(rest + right, right)

    return modulus


def _modulus_batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    """Compute `pmod`. A negative remainder plus a positive divisor cannot overflow."""
    remainder = _OPERATORS["%"].batch(signature)
    arrow = signature.result.arrow

    def modulus(left: Datum, right: Datum) -> Datum:
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            return modulus(pa.repeat(left, 1), right)[0]
        rest = remainder(left, right)
        moved = np.asarray(pc.fill_null(rest, 0))
        step = np.asarray(pc.fill_null(right, 1) if isinstance(right, pa.Array) else right.as_py() or 1)
        moved = np.where((moved < 0) & (step > 0), moved + np.where(step > 0, step, 0), moved)
        return pa.array(moved, arrow, mask=np.asarray(pc.is_null(rest)))

    return modulus


FUNCTIONS = (
    Function("xxhash64", _resolve_hash, _hash_batch, _hash_row, strict=False),
    Function("pmod", _resolve_modulus, _modulus_batch, _modulus_row, can_fail=True),
)
