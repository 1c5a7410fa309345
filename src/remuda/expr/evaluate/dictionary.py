"""String columns are often dictionaries: their distinct values once, and a code for each row.

A function of such a column and of constants is evaluated over the few distinct values and spread over the codes, which
is many times cheaper.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import SqlError
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr.function import Datum


def as_array(datum: Datum, rows: int) -> pa.Array:
    """Return a column; a value that stands for the whole column is written out."""
    return pa.repeat(datum, rows) if isinstance(datum, pa.Scalar) else datum


def decode(datum: Datum) -> Datum:
    return datum.dictionary_decode() if isinstance(datum, pa.DictionaryArray) else datum


def apply_to_dictionaries(kernel: Callable[..., Datum], values: list[Datum], *, strict: bool) -> Datum:
    arrays = [position for position, value in enumerate(values) if isinstance(value, pa.Array)]
    if len(arrays) == 1 and strict:
        column = values[arrays[0]]
        distinct, codes = column.dictionary, column.indices
        if len(distinct) <= len(codes):
            over_distinct = [*values[: arrays[0]], distinct, *values[arrays[0] + 1 :]]
            with suppress(SqlError, pa.ArrowInvalid):
                # A value that no row has may be the one that fails: then the rows themselves are asked.
                return _spread(as_array(kernel(*over_distinct), len(distinct)), codes)
    return kernel(*(decode(value) for value in values))


def _spread(results: pa.Array, codes: pa.Array) -> pa.Array:
    """Return the result of each row from the results of the distinct values; NULL where the code is NULL."""
    if pa.types.is_boolean(results.type) and not results.null_count:
        matching = pc.indices_nonzero(results)
        if len(matching) == 1:
            return pc.equal(codes, pa.scalar(matching[0].as_py(), codes.type))
    return results.take(codes)
