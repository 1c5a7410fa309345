"""CSV and JSON files, whose values have no types of their own: they are read as the columns of the map want them.

Arrow guesses types from a file's first rows. A guess is good enough where a cast to the column's type undoes it, but
text that looks like a number (`007`) or a date would be changed by it, and a DECIMAL of many digits rounded.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import data_error
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.catalog import ColumnDefinition
    from remuda.sql import CsvOptions

_CSV_TYPES = {
    Kind.VARCHAR: pa.string(),
    Kind.DECIMAL: pa.string(),
    Kind.REAL: pa.float64(),
    Kind.DOUBLE: pa.float64(),
    Kind.VARBINARY: pa.string(),
    Kind.TIME: pa.string(),
}
"""What is not left to a guess. Text is cast to a DECIMAL without loss."""

_FROM_TEXT: dict[Kind, Callable[[str], Any]] = {
    Kind.VARBINARY: bytes.fromhex,
    Kind.TIME: dt.time.fromisoformat,
}
"""What Arrow has no cast for."""


def open_csv(path: Path, options: CsvOptions | None, columns: Sequence[ColumnDefinition]) -> Any:
    """The dataset of CSV files. Without a header the columns are those of the map, in their order.

    An empty value is NULL unless it is quoted; where the options name another text for NULL, that text is.
    """
    import pyarrow.dataset as ds
    from pyarrow import csv

    header = options is None or options.header
    null = "" if options is None or options.null is None else options.null

    def dataset(types: dict[str, pa.DataType]) -> Any:
        file_format = ds.CsvFileFormat(
            parse_options=csv.ParseOptions(
                delimiter="," if options is None else options.delimiter, newlines_in_values=True
            ),
            read_options=csv.ReadOptions(column_names=None if header else [column.name for column in columns]),
            convert_options=csv.ConvertOptions(
                column_types=types, null_values=[null], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
        return ds.dataset(path, format=file_format)

    wanted = {column.name.casefold(): _CSV_TYPES.get(column.type.kind) for column in columns}
    types = {name: wanted.get(name.casefold()) for name in dataset({}).schema.names}
    return dataset({name: type_ for name, type_ in types.items() if type_ is not None})


def open_json(path: Path, columns: Sequence[ColumnDefinition]) -> Any:
    """The dataset of files with an object a line. Text that looks like a moment stays text where the column is text."""
    import pyarrow.dataset as ds

    guessed = ds.dataset(path, format="json")
    texts = {column.name.casefold() for column in columns if column.type.kind is Kind.VARCHAR}
    schema = guessed.schema
    for place, field in enumerate(schema):
        if field.name.casefold() in texts and pa.types.is_timestamp(field.type):
            schema = schema.set(place, pa.field(field.name, pa.string()))
    return guessed if schema == guessed.schema else ds.dataset(path, format="json", schema=schema)


def from_text(batch: pa.RecordBatch, columns: Sequence[ColumnDefinition]) -> pa.RecordBatch:
    """The batch with bytes and times in the place of the text that stands for them in a file."""
    convert = {
        column.name.casefold(): _FROM_TEXT[column.type.kind] for column in columns if column.type.kind in _FROM_TEXT
    }
    for place, field in enumerate(batch.schema):
        if field.name.casefold() in convert and pa.types.is_string(field.type):
            values = [_converted(convert[field.name.casefold()], text, field.name) for text in batch[place].to_pylist()]
            batch = batch.set_column(place, field.name, pa.array(values))
    return batch


def _converted(convert: Callable[[str], Any], text: str | None, name: str) -> Any:
    try:
        return None if text is None else convert(text)
    except ValueError as error:
        raise data_error(f"{text!r} is no value of the column {name}: {error}") from error
