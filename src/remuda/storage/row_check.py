"""What a row must be before it is written: keys and required columns present, strings that can be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import ConstraintError, constraint_error, length_error, null_error
from remuda.storage.encodable import refuse_unencodable, text_columns
from remuda.storage.state.map_version import key_maker
from remuda.types.arrow_arrays import is_dictionary
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.errors import SqlError
    from remuda.storage.lookup.row_projection import Row

_SHOWN = 80
"""Characters of a text in a message."""


def too_long(definition: MapDefinition, column: ColumnDefinition, value: str) -> SqlError:
    column_name = f"{definition.name}.{column.name} (VARCHAR({column.length}))"
    shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    return length_error(f"{column_name} cannot hold {shown}: it has {len(value)} characters")


def _checking_lengths(definition: MapDefinition, key_of: Callable[[Row], Any]) -> Callable[[Row], Any]:
    """Add the check of text lengths to `key_of`.

    `key_of`, which first compares the texts with the lengths of their columns; maps without any lose no time.
    """
    limited = [(number, each.length) for number, each in enumerate(definition.columns) if each.length is not None]
    if not limited:
        return key_of

    def checked(row: Row) -> Any:
        for number, length in limited:
            value = row[number]
            if value is not None and len(value) > length:
                raise too_long(definition, definition.columns[number], value)
        return key_of(row)

    return checked


class RowCheck:
    """Checks rows before they are written, and gives their keys.

    For one map; its columns never change.
    """

    __slots__ = ("_definition", "_key_of", "_required", "_texts")

    def __init__(self, definition: MapDefinition) -> None:
        self._definition = definition
        self._key_of = _checking_lengths(definition, key_maker(definition))
        self._texts = text_columns(definition)
        self._required = tuple(
            number
            for number, column in enumerate(definition.columns)
            if not column.nullable or column.name in definition.key
        )

    def keys_of(self, rows: Sequence[Row]) -> list[Any]:
        """Return the keys of the rows, each of which may be written."""
        try:
            return [self.key_of(row) for row in rows]
        except ConstraintError as error:
            error.row = next(
                ordinal for ordinal, row in enumerate(rows) if any(row[number] is None for number in self._required)
            )
            raise

    def key_of(self, row: Row) -> Any:
        """Return the key of the row, which may be written."""
        for number in self._texts:
            value = row[number]
            if value is not None and not value.isascii():
                refuse_unencodable(self._definition, number, value)
        for number in self._required:
            if row[number] is None:
                raise self._missing(number)
        return self._key_of(row)

    def check_columns(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Refuse what `key_of` refuses, of many rows at once. Arrow's texts are valid Unicode."""
        for number in self._required:
            if columns[number].null_count:
                raise self._missing(number)
        for number, column in enumerate(self._definition.columns):
            if column.length is None:
                continue
            text = columns[number]
            texts = text.cast(text.type.value_type) if is_dictionary(text) else text
            row = pc.index(pc.greater(pc.utf8_length(texts), column.length), True).as_py()
            if row >= 0:
                raise too_long(self._definition, column, texts[row].as_py())

    def _missing(self, number: int) -> SqlError:
        definition = self._definition
        column = definition.columns[number]
        what = "the key" if column.name in definition.key else "the column"
        return constraint_error(null_error, f"{what} {definition.name}.{column.name} must not be NULL", (column.name,))
