"""`grid.changes`: the changes of a map between two versions, as Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import option_error
from remuda.storage.version_changes import change_fields, refuse_change_names

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.storage import Store


def change_reader(store: Store, definition: MapDefinition, since: int, until: int | None) -> pa.RecordBatchReader:
    """Return the rows that changed after a version, up to another, with what happened to each."""
    for name, value in (("since", since), ("until", until)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise option_error(f"{name} is the number of a version, not {value!r}")
    refuse_change_names(definition)
    changes = store.history.changes(definition, since, until)
    columns = [pa.field(each.name, each.type.arrow, each.nullable) for each in definition.visible_columns]
    schema = pa.schema([*columns, *change_fields()])
    return pa.RecordBatchReader.from_batches(schema, changes.read_feed(schema))
