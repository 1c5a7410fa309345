"""Rows that are there as Python values, as Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def arrow_batch(rows: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of rows, whose values are in stored or in Python form: Arrow takes both."""
    return arrow_columns(list(zip(*rows, strict=True)) or [()] * len(schema), schema)


def arrow_columns(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of columns of values."""
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
