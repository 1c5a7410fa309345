"""Results as data frames of pandas and Polars.

pandas gets types that hold every value exactly and that can be plotted. Its own conversion of an Arrow table makes
Python objects of DATE, TIME and DECIMAL, and floating-point numbers of integers that stand beside NULLs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

INT64 = range(-(2**63), 2**63)


def pandas_frame(table: pa.Table) -> Any:
    """Convert an Arrow table to a pandas data frame, column by column, as names may be there twice."""
    import pandas as pd

    series = {number: _series(column) for number, column in enumerate(table.columns)}
    frame = pd.DataFrame(series, index=pd.RangeIndex(table.num_rows), copy=False)
    frame.columns = pd.Index(table.column_names)
    return frame


def _series(column: pa.ChunkedArray) -> Any:
    """Convert a column.

    BIGINT and its kin become `int64`, with NULLs pandas' `Int64`. A DECIMAL without digits behind the point, as
    SUM(BIGINT) is, becomes the same where all values fit. DATE becomes `datetime64`. Other DECIMALs and TIME stay in
    Arrow's types.
    """
    if pa.types.is_decimal(column.type) and column.type.scale == 0 and _fits_int64(column):
        column = column.cast(pa.int64())
    return column.to_pandas(types_mapper=_dtype_of(column), date_as_object=False)


def _fits_int64(column: pa.ChunkedArray) -> bool:
    bounds = pc.min_max(column)
    return all(value is None or int(value) in INT64 for value in bounds.as_py().values())


def _dtype_of(column: pa.ChunkedArray) -> Callable[[pa.DataType], Any]:
    import pandas as pd

    def dtype(arrow: pa.DataType) -> Any:
        if pa.types.is_decimal(arrow) or pa.types.is_time(arrow):
            return pd.ArrowDtype(arrow)
        if column.null_count and pa.types.is_integer(arrow):
            return pd.api.types.pandas_dtype(f"Int{arrow.bit_width}")
        if column.null_count and pa.types.is_boolean(arrow):
            return pd.BooleanDtype()
        return None

    return dtype


def polars_frame(table: pa.Table) -> Any:
    """Convert an Arrow table to a Polars data frame, whose columns must have different names."""
    import polars as pl

    return pl.from_arrow(table)
