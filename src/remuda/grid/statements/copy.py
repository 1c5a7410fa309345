"""COPY between maps, queries and files, and CREATE TABLE AS, which is a copy from a query into a new map."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda import sql
from remuda.catalog import ColumnDefinition
from remuda.errors import (
    LESS_MEMORY,
    SqlError,
    UntypedParametersError,
    column_twice,
    memory_error,
    output_error,
    type_error,
)
from remuda.expr.cast.cast import cast_batch
from remuda.grid.files.inputs import open_source
from remuda.grid.files.load_source import gathered
from remuda.grid.files.loading import with_keys
from remuda.grid.parameters import arrange
from remuda.grid.query_run import QueryRun
from remuda.grid.statements.copy_target import CopyTarget, check_format, copy_target, remove
from remuda.grid.statements.ddl import find_map, is_there, map_definition, schema_of
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.expr.cancellation import CancellationToken
    from remuda.grid.query_run import Call
    from remuda.grid.result import Result
    from remuda.storage import MapStore


def copy_from(call: Call, statement: sql.CopyFrom) -> int:
    """Load a file, or a folder of files, all of its rows or none."""
    target = call.session.store.map(_target_map(call, statement))
    with _placed(statement):
        check_format(statement)
        columns = target.definition.columns
        source = open_source(statement.path, columns, kind=statement.format, csv=statement.csv)
    tables = _committed_by(call.token, with_keys(target.definition, source.tables))
    with source.naming_files():
        return target.load_tables(tables, statement.mode)  # type: ignore[arg-type]


def _target_map(call: Call, statement: sql.CopyFrom) -> MapDefinition:
    """Return the map that is filled; where there is none, say what creates it from a file."""
    try:
        return find_map(call.session, statement.name)
    except SqlError as error:
        name = statement.name.text
        error.suggestion = error.suggestion or (
            f"Create it first: CREATE TABLE {name} (..., PRIMARY KEY (...)), "
            f"or from the file, in Python: grid.load({name!r}, {statement.path!r}, key=...)."
        )
        raise


def _committed_by(token: CancellationToken, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables of a load; once they are exhausted, everything but its commit is done."""
    yield from tables
    token.begin_commit()


def copy_to(call: Call, statement: sql.CopyTo) -> int:
    """Write a query's rows into a file, or into the files of a folder, as they come; remove what is half written."""
    with _placed(statement):
        target = copy_target(statement)
    result = _run(call, statement)
    # Its own: a statement whose time is over may still be writing when the next one begins.
    part = target.path.with_name(f"{target.path.name}.{token_hex(4)}.part")
    try:
        with _placed(statement):
            rows = _write(result, target, part)
            call.token.begin_commit()
            target.put_in_place(part)
    except OSError as error:
        raise output_error(f"{target.path} cannot be written: {error.strerror}", span=statement.span) from error
    except pa.ArrowException as error:
        raise output_error(f"{target.path} cannot be written: {str(error)[:200]}", span=statement.span) from error
    finally:
        remove(part)
        result.close()
    return rows


@contextmanager
def _placed(statement: sql.CopyTo | sql.CopyFrom) -> Iterator[None]:
    """Give errors without a place that of the path."""
    try:
        yield
    except SqlError as error:
        error.span = error.span or statement.span
        raise


def _write(result: Result, target: CopyTarget, part: Path) -> int:
    batches, schema = _in_text(result) if target.format.is_text else (result.record_batches(), _schema(result))
    texts = {column.name: cast_batch(column.type, VARCHAR) for column in result.columns}
    writer = target.open(part, schema, texts)
    rows = 0
    try:
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    finally:
        writer.close()
    return rows


def _in_text(result: Result) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    """Convert the rows for a file of text, in which an INTERVAL is written in words: '1 day'."""
    schema = _schema(result)
    words = {
        ordinal: cast_batch(column.type, VARCHAR)
        for ordinal, column in enumerate(result.columns)
        if column.type.is_interval
    }
    for ordinal in words:
        schema = schema.set(ordinal, pa.field(schema.names[ordinal], pa.string()))

    def rewritten() -> Iterator[pa.RecordBatch]:
        for batch in result.record_batches():
            arrays = list(batch.columns)
            for ordinal, write in words.items():
                arrays[ordinal] = write(arrays[ordinal])
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


def _bound(call: Call, query: sql.Query) -> sql.BoundQuery:
    """Bind the query of a table; parameters whose types only their values tell stand there as literals."""
    catalog, path = call.session.store.catalog, call.session.search_path
    try:
        return sql.bind(query, catalog, path)
    except UntypedParametersError as error:
        given = arrange(query.parameters.names, len(query.parameters), call.positional, call.named)
        return sql.bind(query, catalog, path, {number: given[number] for number in error.numbers})


def create_map_as(call: Call, statement: sql.CreateMapAs) -> int:
    """Make a map of the query's columns with its rows: both at once for everybody else, or neither."""
    session = call.session
    store, schema = session.store, schema_of(statement.name)
    allowed = statement.if_not_exists or statement.or_replace
    if is_there(store, statement.name, schema, allowed=allowed) and not statement.or_replace:
        return 0
    bound = _bound(call, statement.query)
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
            options=statement.options,
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
