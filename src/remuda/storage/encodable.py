"""Strings that have no UTF-8 form: Python allows half of a surrogate pair alone, no other system does.

Such a string can neither be stored nor be equal to anything stored. Writes are checked before anything happens; reads
find out when the string is hashed or compared, and say which column was meant.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from remuda.errors import SqlError, encoding_error, shown
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition


def text_columns(definition: MapDefinition) -> tuple[int, ...]:
    """Return the numbers of the columns that may hold such a string."""
    return tuple(number for number, column in enumerate(definition.columns) if column.type.kind is Kind.VARCHAR)


def is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_unencodable(definition: MapDefinition, column: int, value: str) -> None:
    if not is_encodable(value):
        raise unencodable(definition, definition.columns[column].name, value)


@contextmanager
def naming_columns(definition: MapDefinition, names: Sequence[str]) -> Iterator[None]:
    """Name these columns in the error of a read by a text that cannot be encoded."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise unencodable(definition, ", ".join(names), error.object) from error


def unencodable(definition: MapDefinition, column: str, value: object) -> SqlError:
    return encoding_error(f"{definition.name}.{column} cannot hold {shown(value)}: it is not valid Unicode text")
