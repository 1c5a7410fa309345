"""The format of the golden plans: SQL and the EXPLAIN text that is expected for it.

    # A comment. Blank lines separate the blocks.

    setup
    CREATE TABLE t (k BIGINT, v DOUBLE, PRIMARY KEY (k));
    CREATE INDEX t_v ON t (v) TYPE SORTED;

    load t
    SELECT i AS k, i / 4 AS v FROM range(10000) AS r(i)

    plan expect=use_index disable=some_rule,other_rule members=3
    SELECT k FROM t WHERE v = 2.5
    ----
    Root ...

`setup` and `load` (a query that DuckDB answers; its result is loaded) make the header and stand before the first
`plan`. `expect` names rules that must have fired, `disable` rules that may not be used, `members` how many members
the grid has. An expected text has no blank lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SEPARATOR = "----"


class PlanFileError(ValueError):
    """A golden file that cannot be read, with the place."""


@dataclass(frozen=True, slots=True)
class Setup:
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Load:
    map: str
    query: str


@dataclass(frozen=True, slots=True)
class Case:
    line: int
    """Of the directive, counted from 1."""
    sql: str
    expected: str
    separator: int
    """The line of `----`: what follows it, up to the next blank line, is what a rewrite replaces."""
    expect: frozenset[str] = frozenset()
    disable: frozenset[str] = frozenset()
    members: int = 1


@dataclass(frozen=True, slots=True)
class PlanFile:
    header: tuple[Setup | Load, ...] = ()
    cases: tuple[Case, ...] = field(default=())


def parse(text: str) -> PlanFile:
    header: list[Setup | Load] = []
    cases: list[Case] = []
    for first, lines in _blocks(text):
        directive, *rest = lines[0].split()
        body = lines[1:]
        if directive != "plan" and cases:
            raise PlanFileError(f"line {first}: {directive} stands in the header, before the first plan")
        match directive:
            case "setup":
                header.append(Setup(_statements(body)))
            case "load" if len(rest) == 1:
                header.append(Load(rest[0], "\n".join(body)))
            case "plan":
                cases.append(_case(first, rest, body))
            case _:
                raise PlanFileError(f"line {first}: neither setup, nor load <map>, nor plan: {lines[0]}")
    return PlanFile(tuple(header), tuple(cases))


def rewrite(text: str, plans: Mapping[int, str]) -> str:
    """The text with new expected plans, by the line of their case; all else stays as it is, byte by byte."""
    lines = text.split("\n")
    for case in sorted(parse(text).cases, key=lambda case: case.line, reverse=True):
        if case.line in plans:
            stop = case.separator + (len(case.expected.split("\n")) if case.expected else 0)
            lines[case.separator : stop] = plans[case.line].rstrip("\n").split("\n")
    return "\n".join(lines)


def read(path: Path) -> PlanFile:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except PlanFileError as error:
        raise PlanFileError(f"{path.name}, {error}") from error


def _blocks(text: str) -> list[tuple[int, list[str]]]:
    """Runs of lines that are not blank, each with the number of its first line; comment lines stand outside."""
    blocks: list[tuple[int, list[str]]] = []
    inside = False
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            inside = False
        elif inside:
            blocks[-1][1].append(line)
        elif not line.startswith("#"):
            blocks.append((number, [line]))
            inside = True
    return blocks


def _statements(body: list[str]) -> tuple[str, ...]:
    return tuple(part.strip() for part in "\n".join(body).split(";") if part.strip())


def _case(line: int, options: list[str], body: list[str]) -> Case:
    if SEPARATOR not in body:
        raise PlanFileError(f"line {line}: no {SEPARATOR} between the SQL and its plan")
    at = body.index(SEPARATOR)
    values = dict(option.split("=", 1) for option in options if "=" in option)
    unknown = [option for option in options if option.split("=", 1)[0] not in {"expect", "disable", "members"}]
    if unknown or len(values) != len(options):
        raise PlanFileError(f"line {line}: options are expect=, disable= and members=, not {' '.join(options)}")
    return Case(
        line=line,
        sql="\n".join(body[:at]),
        expected="\n".join(body[at + 1 :]),
        separator=line + at + 1,
        expect=_names(values.get("expect", "")),
        disable=_names(values.get("disable", "")),
        members=int(values.get("members", "1")),
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in text.split(",") if name)
