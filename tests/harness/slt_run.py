"""Runs the records of an `.slt` file on a database and says exactly what was wrong and where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.harness.slt import Load, Query, Record, Statement
from tests.harness.slt_values import render_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.harness.databases import Database


class SltFailure(AssertionError):  # noqa: N818 - it is a failure of what is tested, not an error of the test
    """A record whose outcome is not the expected one."""

    def __init__(self, record: Record, problem: str) -> None:
        text = record.query if isinstance(record, Load) else record.sql
        given = "" if isinstance(record, Load) or not record.parameters else f"\nparameters {list(record.parameters)}"
        super().__init__(f"line {record.line}: {problem}\n{text}{given}")


def run(records: Iterable[Record], database: Database, *, check_messages: bool = True) -> None:
    """Without `check_messages` an expected error may have any text: other engines word theirs in other ways."""
    by_label: dict[str, list[str]] = {}
    for record in records:
        if not record.guard.admits(database.names):
            continue
        match record:
            case Load():
                database.load(record.map, record.query)
            case Statement(error=None):
                _run_statement(record, database)
            case Statement():
                _run_failing(record, database, check_messages=check_messages)
            case Query():
                _run_query(record, database, by_label)


def answers(records: Iterable[Record], database: Database) -> dict[int, list[str]]:
    """What the database says to each query, by the line of the query: what `--rewrite` writes."""
    rows: dict[int, list[str]] = {}
    for record in records:
        if not record.guard.admits(database.names):
            continue
        if isinstance(record, Query):
            rows[record.line] = _rendered(record, database)
        else:
            run([record], database, check_messages=False)
    return rows


def _run_statement(record: Statement, database: Database) -> None:
    try:
        count = database.execute(record.sql, record.parameters)
    except Exception as error:
        raise SltFailure(record, f"failed: {error}") from error
    if record.count is not None and count != record.count:
        raise SltFailure(record, f"changed {count} rows, not {record.count}")


def _run_failing(record: Statement, database: Database, *, check_messages: bool) -> None:
    assert record.error is not None
    try:
        # Read to the end: some mistakes are in the data and come up with the rows.
        database.query(record.sql, record.parameters)
    except Exception as error:
        if check_messages and not re.search(record.error, str(error)):
            raise SltFailure(record, f"failed, but not with /{record.error}/: {error}") from error
        return
    raise SltFailure(record, f"succeeded, though /{record.error}/ was expected")


def _run_query(record: Query, database: Database, by_label: dict[str, list[str]]) -> None:
    actual = _rendered(record, database)
    expected = sorted(record.expected) if record.order == "rowsort" else list(record.expected)
    if actual != expected:
        raise SltFailure(record, "\n".join(["expected", *_shown(expected), "but got", *_shown(actual)]))
    if record.label is not None and by_label.setdefault(record.label, actual) != actual:
        raise SltFailure(record, f"differs from the other results labelled {record.label}")


def _rendered(record: Query, database: Database) -> list[str]:
    try:
        rows = render_rows(record.types, database.query(record.sql, record.parameters))
    except Exception as error:
        raise SltFailure(record, f"failed: {error}") from error
    return sorted(rows) if record.order == "rowsort" else rows


def _shown(rows: list[str]) -> list[str]:
    return [f"  {row}" for row in rows[:20]] + ([f"  ... {len(rows)} rows in all"] if len(rows) > 20 else [])
