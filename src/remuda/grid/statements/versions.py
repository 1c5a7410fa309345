"""Versions of tables and their files: SHOW VERSIONS, RESTORE TABLE, OPTIMIZE, VACUUM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError
from remuda.grid.statements.ddl import find_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda import sql
    from remuda.grid.query_run import Call
    from remuda.sql.parse.statements import Name


def version_rows(call: Call, name: Name | None) -> Iterator[tuple[Any, ...]]:
    """Yield the versions from the oldest on; of one table, those that changed it."""
    table = None if name is None else find_map(call.session, name).name
    versions = call.session.store.history.descriptions()
    for each in versions:
        if table is None or table in each.changed:
            newest = each.number == versions[-1].number
            yield each.number, each.committed, newest, ", ".join(each.changed) or None


def restore(call: Call, statement: sql.Restore) -> None:
    """Give a table the rows that it had in a version."""
    definition = find_map(call.session, statement.name)
    try:
        call.session.store.restore_map(definition, statement.version)
    except SqlError as error:
        raise error.restated(span=error.span or statement.span) from error


def optimize(call: Call, statement: sql.Optimize) -> None:
    """Merge the segments of each partition group of a table into one, in Spark's tasks where there is a session."""
    target = call.session.store.map(find_map(call.session, statement.name))
    spark = call.session.engine.spark
    if spark is None:
        target.optimize()
        return
    from remuda.spark.load.optimize_job import optimize_in_tasks

    optimize_in_tasks(target, spark)


def vacuum(call: Call, statement: sql.Vacuum) -> None:
    """Give up versions whose retention is over, and remove all files that no version needs."""
    if statement.name is not None:
        find_map(call.session, statement.name)
    call.session.store.vacuum()
