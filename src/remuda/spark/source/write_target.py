"""The map that a data frame is written to: found, or described so that the commit of the write creates it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.catalog import DEFAULT_SCHEMA, Catalog
from remuda.errors import StorageError, missing_column, nearest, not_found, option_error, wrong_object
from remuda.spark.load.change_job import row_fields
from remuda.spark.load.matching import frame_schema
from remuda.spark.source.pinned_read import is_sole_writer, open_reader
from remuda.storage import Store
from remuda.storage.folder.delivery import FolderInbox
from remuda.storage.load.new_map import MapRequest
from remuda.storage.remote.remote_delivery import RemoteInbox
from remuda.storage.wal.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.storage.load.change_format import ChangeFormat

MISSING = ("error", "null")
_NO_STORE = "58P01"


def find_or_define(
    options: Mapping[str, str], schema: StructType, form: ChangeFormat | None = None
) -> tuple[FolderInbox | RemoteInbox, MapDefinition, tuple[int, ...] | None]:
    """Return the inbox of the store, the map, and where its partition groups are cut; None where it is to be created.

    A store that is absent is made, where the key says that its map may be made too.
    """
    request = MapRequest.checked(
        options.get("key"), options.get("indexes"), options.get("json"), options.get("partitions")
    )
    columns = None if request.key is None else frame_schema(row_fields(form, None, schema))
    store = _open(options, request, columns)
    try:
        inbox = FolderInbox(str(store.path)) if store.remote is None else RemoteInbox(store.remote)
        name = options["map"]
        found = _find(store, name)
        if found is not None:
            request.refuse_other(found)
            return inbox, found, tuple(store.map(found).state.cuts)
        if request.key is None:
            hint = nearest(name, [each.name for each in store.catalog.maps.values()])
            raise not_found(f"unknown table: {name}", suggestion=hint or 'Create it: .option("key", "...").')
        schema_name, _, short = name.rpartition(".")
        assert columns is not None, "there is a key"
        definition = request.define(short, columns, store.partitions, store.catalog)
        return inbox, replace(definition, schema=schema_name or DEFAULT_SCHEMA), None
    finally:
        store.close()


def _find(store: Store, name: str) -> MapDefinition | None:
    schema, _, short = name.rpartition(".")
    path = (schema or DEFAULT_SCHEMA,)
    if store.catalog.find_view(short, path) is not None:
        raise wrong_object(f"{name} is a view: rows are written into tables")
    return store.catalog.find_map(short, path)


def refuse_missing(definition: MapDefinition, fields: Container[str], options: Mapping[str, str]) -> None:
    """Raise where the data lacks columns of the map, unless the option `missing` says that they are NULL."""
    given = options.get("missing", "error")
    if given not in MISSING:
        raise option_error(f"missing must be one of {', '.join(MISSING)}, not {given!r}")
    lacking = [each.name for each in definition.columns if not each.hidden and each.name not in fields]
    if lacking and given == "error":
        raise missing_column(
            f"the DataFrame lacks columns of {definition.name}: {', '.join(lacking)}",
            suggestion='option("missing", "null") writes NULL for them.',
        )


def _open(options: Mapping[str, str], request: MapRequest, columns: pa.Schema | None) -> Store:
    try:
        return open_reader(options)
    except StorageError as error:
        if columns is None or error.sqlstate != _NO_STORE:
            raise
    request.define(options["map"], columns, 1, Catalog())  # A map that cannot be made makes no store.
    _make_store(options)
    return open_reader(options)


def _make_store(options: Mapping[str, str]) -> None:
    path = options["path"]
    if "://" not in path:
        Store.open(Path(path).expanduser().absolute()).close()
        return
    from remuda.storage.remote.remote_location import open_address

    found = open_address(path, cache=options.get("cache"), sole_writer=is_sole_writer(options))
    if isinstance(found, Path):
        Store.open(found).close()
    else:
        Store.open(durability=Durability.NONE, remote=found).close()
