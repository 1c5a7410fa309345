"""The set of all definitions at one moment, as a value: a change makes a new catalog with the next version."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from remuda.catalog.definitions import IndexDefinition, MapDefinition, ViewDefinition

DEFAULT_SCHEMA = "public"

SearchPath = tuple[str, ...]
"""The schemas in which an unqualified name is looked for, in order."""


class History(Protocol):
    """The committed versions of a store."""

    def at(self, moment: int | datetime, /) -> Catalog:
        """Return the catalog of a version by its number, or of the one that was the newest at a moment."""


@dataclass(frozen=True, slots=True)
class Catalog:
    version: int = 0
    maps: Mapping[tuple[str, str], MapDefinition] = field(default_factory=dict)
    """By schema and name, both folded."""
    views: Mapping[tuple[str, str], ViewDefinition] = field(default_factory=dict)
    """Likewise; a view and a map never share a name."""
    history: History | None = field(default=None, compare=False)
    """Gives the catalogs of versions; None where there are none, as in a version itself."""

    def find_map(self, name: str, search_path: SearchPath) -> MapDefinition | None:
        folded = name.casefold()
        for schema in search_path:
            found = self.maps.get((schema.casefold(), folded))
            if found is not None:
                return found
        return None

    def find_view(self, name: str, search_path: SearchPath) -> ViewDefinition | None:
        """Find the view of a name. A map of that name in a schema that comes first goes before it."""
        folded = name.casefold()
        for schema in search_path:
            key = schema.casefold(), folded
            if key in self.maps:
                return None
            if key in self.views:
                return self.views[key]
        return None

    def find_index(self, name: str, search_path: SearchPath) -> tuple[MapDefinition, IndexDefinition] | None:
        """Index names are unique within a schema, so that DROP INDEX needs no map name."""
        schemas = {schema.casefold() for schema in search_path}
        for definition in self.maps.values():
            index = definition.find_index(name) if definition.schema.casefold() in schemas else None
            if index is not None:
                return definition, index
        return None

    def with_map(self, definition: MapDefinition) -> Catalog:
        """Adds the definition, or puts it in the place of the one with the same name."""
        return replace(self, version=self.version + 1, maps={**self.maps, _key(definition): definition})

    def without_map(self, definition: MapDefinition) -> Catalog:
        rest = {key: other for key, other in self.maps.items() if key != _key(definition)}
        return replace(self, version=self.version + 1, maps=rest)

    def with_view(self, view: ViewDefinition) -> Catalog:
        """Adds the view, or puts it in the place of the one with the same name."""
        return replace(self, version=self.version + 1, views={**self.views, _key(view): view})

    def without_view(self, view: ViewDefinition) -> Catalog:
        rest = {key: other for key, other in self.views.items() if key != _key(view)}
        return replace(self, version=self.version + 1, views=rest)

    def holds(self, definition: MapDefinition) -> bool:
        """Tell whether the definition is still the current one, indexes and all."""
        return self.maps.get(_key(definition)) == definition

    def holds_view(self, view: ViewDefinition) -> bool:
        return self.views.get(_key(view)) == view


def _key(definition: MapDefinition | ViewDefinition) -> tuple[str, str]:
    return definition.schema.casefold(), definition.name.casefold()
