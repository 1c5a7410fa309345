"""COPY between maps, queries and files, and CREATE TABLE AS, which is a copy from a query into a new map."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda import sql
from remuda.catalog import ColumnDefinition
from remuda.errors import (
    LESS_MEMORY,
    SqlError,
    column_twice,
    memory_error,
    option_error,
    output_error,
    type_error,
)
from remuda.expr.cast.cast import cast_batch
from remuda.grid.files.file_writers import WRITERS
from remuda.grid.files.inputs import FORMATS, TEXT_FORMATS, gathered, open_source, with_keys
from remuda.grid.query_run import QueryRun
from remuda.grid.statements.ddl import find_map, is_there, map_definition, schema_of
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.expr.cancellation import CancellationToken
    from remuda.grid.query_run import Call
    from remuda.grid.result import Result
    from remuda.storage import MapStore


def copy_from(call: Call, statement: sql.CopyFrom) -> int:
    """Load a file, or a folder of files, all of its rows or none."""
    target = call.session.store.map(find_map(call.session, statement.name))
    try:
        columns = target.definition.columns
        source = open_source(Path(statement.path), columns, kind=statement.format, csv=statement.csv)
    except SqlError as error:
        error.span = error.span or statement.span
        raise
    tables = _committed_by(call.token, with_keys(target.definition, source.tables))
    with source.naming_files():
        return target.load_tables(tables, statement.mode)  # type: ignore[arg-type]


def _committed_by(token: CancellationToken, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """A load that takes these tables has done all but commit when there are no more."""
    yield from tables
    token.begin_commit()


def copy_to(call: Call, statement: sql.CopyTo) -> int:
    """Write a query's rows into a file as they come; a file that is only half written is removed."""
    path = Path(statement.path)
    kind = statement.format or FORMATS.get(path.suffix)
    if kind is None:
        known = ", ".join(FORMATS)
        raise option_error(f"the format of {path} is unknown: name it {known}, or give FORMAT", span=statement.span)
    result = _run(call, statement)
    # Its own: a statement whose time is over may still be writing when the next one begins.
    part = path.with_name(f"{path.name}.{token_hex(4)}.part")
    try:
        batches, schema = _in_text(result) if kind in TEXT_FORMATS else (result.record_batches(), _schema(result))
        rows = WRITERS[kind](part, batches, schema, statement.csv or sql.CsvOptions())
        call.token.begin_commit()
        part.replace(path)
    except OSError as error:
        raise output_error(f"{path} cannot be written: {error.strerror}", span=statement.span) from error
    except pa.ArrowException as error:
        raise output_error(f"{path} cannot be written: {str(error)[:200]}", span=statement.span) from error
    finally:
        with suppress(OSError):
            part.unlink()
        result.close()
    return rows


def _in_text(result: Result) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    """The rows for a file of text, in which an INTERVAL is written in words: '1 day'."""
    schema = _schema(result)
    words = {
        place: cast_batch(column.type, VARCHAR)
        for place, column in enumerate(result.columns)
        if column.type.is_interval
    }
    for place in words:
        schema = schema.set(place, pa.field(schema.names[place], pa.string()))

    def rewritten() -> Iterator[pa.RecordBatch]:
        for batch in result.record_batches():
            arrays = [words[place](array) if place in words else array for place, array in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return (rewritten() if words else result.record_batches()), schema


def _run(call: Call, statement: sql.CopyTo | sql.CreateMapAs) -> Result:
    """Run the query within the statement, with the values and the token of the whole."""
    return QueryRun(replace(call, text=statement.text), query=statement.query).run()


def _schema(result: Result) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type.arrow) for column in result.columns])


def _within_limit(batches: Iterator[pa.RecordBatch], limit: int | None, in_memory: bool) -> Iterator[pa.RecordBatch]:
    """Count the rows of a new map, where it is held in memory, against the statement's limit."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if limit is not None and in_memory and size > limit:
            raise memory_error(
                f"the new table needs more memory than the limit of {limit:,} bytes",
                suggestion=LESS_MEMORY,
            )
        yield batch


def create_map_as(call: Call, statement: sql.CreateMapAs) -> int:
    """Make a map of the query's columns with its rows: both at once for everybody else, or neither."""
    session = call.session
    store, schema = session.store, schema_of(statement.name)
    allowed = statement.if_not_exists or statement.or_replace
    if is_there(store, statement.name, schema, allowed=allowed) and not statement.or_replace:
        return 0
    bound = sql.bind(statement.query, store.catalog, session.search_path)
    columns: list[ColumnDefinition] = []
    for name, column in zip(bound.tree.names, bound.tree.columns, strict=True):
        if any(name.casefold() == other.name.casefold() for other in columns):
            raise column_twice(f"the table would have two columns {name}", span=statement.query.span)
        if column.type.is_interval:
            raise type_error(f"{name} is an INTERVAL, which no table holds", span=statement.query.span)
        columns.append(ColumnDefinition(name, column.type))
    definition = map_definition(
        sql.CreateMap(
            statement.name,
            tuple(columns),
            statement.key,
            statement.partitioned_by,
            statement.replicated,
            statement.if_not_exists,
        ),
        schema,
        store.partitions,
    )
    with _run(call, statement) as result:
        rows = 0

        def fill(target: MapStore) -> None:
            nonlocal rows
            batches = _within_limit(result.record_batches(), session.settings.memory_limit, store.path is None)
            tables = gathered(batches, _schema(result))
            rows = target.load_tables(_committed_by(call.token, with_keys(definition, tables)), "append")

        try:
            store.create_map(definition, fill, replaces=statement.or_replace)
        except SqlError:
            # Another one may have made a table of that name meanwhile.
            if not statement.or_replace and is_there(store, statement.name, schema, allowed=statement.if_not_exists):
                return 0
            raise
        return rows
