"""The format of the `.slt` files: SQL and what it must answer, in the dialect of sqllogictest.

    statement ok                        the statement runs
    CREATE TABLE t (k BIGINT, PRIMARY KEY (k))

    statement count 2                   ... and changes so many rows
    INSERT INTO t VALUES (1), (2)

    statement error duplicate key       ... or fails with a message that matches
    INSERT INTO t VALUES (1)

    parameters [1]                      values for the ? of the record that follows, as JSON
    query I rowsort sum-label           types of the columns, whether rows are compared in order, a label
    SELECT k FROM t WHERE k = ?
    ----
    1

    load t                              rows made by DuckDB, loaded in bulk
    SELECT i AS k FROM range(3, 100) AS r(i)

Types: B boolean, D date, I integer, P timestamp, R real or decimal, T text. `skipif name` and `onlyif name` before a
record name an engine or a configuration. Queries with one label have one result. `#` begins a comment line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SEPARATOR = "----"
TYPES = frozenset("BDIPRT")


class SltFileError(ValueError):
    """A file that cannot be read, with the line."""


@dataclass(frozen=True, slots=True)
class Guard:
    """When a record runs: not on the skipped names, and where `only` is not empty, only on one of those."""

    skip: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()

    def admits(self, names: frozenset[str]) -> bool:
        return not self.skip & names and (not self.only or bool(self.only & names))


@dataclass(frozen=True, slots=True)
class Statement:
    line: int
    sql: str
    parameters: tuple[Any, ...] = ()
    guard: Guard = Guard()
    count: int | None = None
    error: str | None = None
    """A regular expression; None where the statement succeeds."""


@dataclass(frozen=True, slots=True)
class Query:
    line: int
    sql: str
    types: str
    expected: tuple[str, ...]
    parameters: tuple[Any, ...] = ()
    guard: Guard = Guard()
    order: Literal["nosort", "rowsort"] = "nosort"
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    line: int
    map: str
    query: str
    guard: Guard = Guard()


Record = Statement | Query | Load


def parse(text: str) -> tuple[Record, ...]:
    lines = text.split("\n")
    records: list[Record] = []
    skip: set[str] = set()
    only: set[str] = set()
    parameters: tuple[Any, ...] = ()
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        at += 1
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        match word:
            case "skipif":
                skip.add(rest.strip())
            case "onlyif":
                only.add(rest.strip())
            case "parameters":
                parameters = tuple(json.loads(rest))
            case "statement" | "query" | "load":
                first = at
                while at < len(lines) and lines[at].strip():
                    at += 1
                guard = Guard(frozenset(skip), frozenset(only))
                records.append(_record(first, word, rest.strip(), lines[first:at], parameters, guard))
                skip, only, parameters = set(), set(), ()
            case _:
                raise SltFileError(f"line {at}: not a record: {line}")
    return tuple(records)


def rewrite(text: str, rows: Mapping[int, Sequence[str]]) -> str:
    """The text with new expected rows, by the line of their query; all else stays as it is."""
    lines = text.split("\n")
    for record in reversed(parse(text)):
        if isinstance(record, Query) and record.line in rows:
            start = record.line + len(record.sql.split("\n")) + 1
            lines[start : start + len(record.expected)] = rows[record.line]
    return "\n".join(lines)


def _record(line: int, word: str, rest: str, body: list[str], parameters: tuple[Any, ...], guard: Guard) -> Record:
    if not body:
        raise SltFileError(f"line {line}: nothing follows")
    match word:
        case "statement":
            return _statement(line, rest, "\n".join(body), parameters, guard)
        case "load":
            return Load(line, rest, "\n".join(body), guard)
        case _:
            return _query(line, rest.split(), body, parameters, guard)


def _statement(line: int, rest: str, sql: str, parameters: tuple[Any, ...], guard: Guard) -> Statement:
    outcome, _, detail = rest.partition(" ")
    match outcome:
        case "ok" if not detail:
            return Statement(line, sql, parameters, guard)
        case "count" if detail.isdigit():
            return Statement(line, sql, parameters, guard, count=int(detail))
        case "error" if detail:
            re.compile(detail)
            return Statement(line, sql, parameters, guard, error=detail)
        case _:
            raise SltFileError(f"line {line}: statement ok, count <number> or error <regular expression>, not {rest}")


def _query(line: int, options: list[str], body: list[str], parameters: tuple[Any, ...], guard: Guard) -> Query:
    types, order, *label = options if len(options) > 1 else [*options, "nosort"]
    if not types or set(types) - TYPES or order not in {"nosort", "rowsort"} or len(label) > 1:
        raise SltFileError(f"line {line}: query <types> [nosort|rowsort [label]], not {' '.join(options)}")
    if SEPARATOR not in body:
        raise SltFileError(f"line {line}: no {SEPARATOR} between the SQL and its rows")
    at = body.index(SEPARATOR)
    return Query(
        line=line,
        sql="\n".join(body[:at]),
        types=types,
        expected=tuple(row.rstrip() for row in body[at + 1 :]),
        parameters=parameters,
        guard=guard,
        order="rowsort" if order == "rowsort" else "nosort",
        label=label[0] if label else None,
    )
