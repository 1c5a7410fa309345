"""Finding an index of a map by its identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition


def index_definition(definition: MapDefinition, index_id: str) -> IndexDefinition:
    for index in definition.indexes:
        if index.id == index_id:
            return index
    raise SqlError(ErrorCode.INDEX_INVALID, f"an index of {definition.name} is gone")
