"""The statistics of a segment as its group file holds them: bytes of which a column is decoded when it is needed.

A folder of ten thousand segments opens without decoding any, and a plan decodes the columns that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.errors import damage_error
from remuda.storage.segment.summary.column_summary import ColumnSummary
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from pathlib import Path

    from remuda.catalog import MapDefinition


class _Summary(msgspec.Struct, frozen=True, array_like=True):
    """A column's summary; a DECIMAL is text."""

    rows: int
    nulls: int
    distinct: int
    minimum: Any
    maximum: Any
    histogram: tuple[Any, ...]
    common: tuple[tuple[Any, int], ...]
    up_to: tuple[float, ...]


class SavedSummaries(Mapping[str, ColumnSummary]):
    """The summaries of a segment by column. Pickles as its bytes.

    `types` has the columns of the map; `origin` is the file that the bytes come from, for errors.
    """

    __slots__ = ("_decoded", "_found", "origin", "raw", "types")

    def __init__(self, raw: bytes, types: Mapping[str, SqlType], origin: Path | str = "") -> None:
        self.raw = raw
        self.types = types
        self.origin = origin
        self._found: dict[str, msgspec.Raw] | None = None
        self._decoded: dict[str, ColumnSummary] = {}

    def __reduce__(self) -> tuple[type[SavedSummaries], tuple[Any, ...]]:
        return SavedSummaries, (self.raw, dict(self.types), str(self.origin))

    def __eq__(self, other: object) -> bool:
        return self.raw == other.raw if isinstance(other, SavedSummaries) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.raw)

    def __getitem__(self, name: str) -> ColumnSummary:
        found = self._decoded.get(name)
        if found is None:
            if name not in self.types:
                raise KeyError(name)
            found = self._decoded[name] = self._decode(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def _decode(self, name: str) -> ColumnSummary:
        """Decode the summary of a column. The checksum of its file does not tell whether it makes sense."""
        try:
            if self._found is None:
                self._found = msgspec.msgpack.decode(self.raw, type=dict[str, msgspec.Raw])
            saved = msgspec.msgpack.decode(self._found[name], type=_Summary)
            return _restored(saved, self.types[name])
        except (msgspec.DecodeError, ArithmeticError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise damage_error(f"the statistics of the column {name} make no sense: {error}", self.origin) from error


def save_summaries(definition: MapDefinition, summaries: Mapping[str, ColumnSummary]) -> SavedSummaries:
    """Encode the summaries of a segment's columns."""
    types = types_of(definition)
    saved = {name: _saved(each, types[name]) for name, each in summaries.items()}
    return SavedSummaries(msgspec.msgpack.encode(saved), types)


def types_of(definition: MapDefinition) -> dict[str, SqlType]:
    """Return the types of the columns by their names."""
    return {column.name: column.type for column in definition.columns}


def _saved(summary: ColumnSummary, sql_type: SqlType) -> _Summary:
    return _Summary(
        summary.rows,
        summary.nulls,
        summary.distinct,
        _encoded(sql_type, summary.minimum),
        _encoded(sql_type, summary.maximum),
        tuple(_encoded(sql_type, end) for end in summary.histogram),
        tuple((_encoded(sql_type, value), count) for value, count in summary.common),
        tuple(float(share) for share in summary.up_to),
    )


def _restored(saved: _Summary, sql_type: SqlType) -> ColumnSummary:
    return ColumnSummary(
        saved.rows,
        saved.nulls,
        saved.distinct,
        _value_of(sql_type, saved.minimum),
        _value_of(sql_type, saved.maximum),
        tuple(_value_of(sql_type, end) for end in saved.histogram),
        tuple((_value_of(sql_type, value), count) for value, count in saved.common),
        saved.up_to,
    )


def _encoded(sql_type: SqlType, value: Any) -> Any:
    if value is None:
        return None
    if sql_type.kind is Kind.DECIMAL:
        return str(value)
    return float(value) if sql_type.is_floating else value


def _value_of(sql_type: SqlType, value: Any) -> Any:
    """Return a value in stored form; raise where it is not of the column's type."""
    if value is None:
        return None
    if type(value) is not _SAVED_AS.get(sql_type.kind, int):
        raise TypeError(f"{value!r:.100} is no {sql_type}")
    return Decimal(str(value)) if sql_type.kind is Kind.DECIMAL else value


_SAVED_AS: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.DECIMAL: str,
    Kind.REAL: float,
    Kind.DOUBLE: float,
    Kind.VARCHAR: str,
    Kind.VARBINARY: bytes,
}
"""How a value is saved; all other kinds are stored as integers."""
