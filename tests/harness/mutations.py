"""Statements of the corpus with a mistake in them: a token dropped, doubled, moved or put in the place of another.

The outcome of such a statement must be an answer or a `SqlError`. Where DuckDB's parser calls it a syntax error, an
answer means that a part of the text was read over.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tests.harness.slt import Load, Query, Statement, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

CORPUS = Path(__file__).parent.parent / "slt"
TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | \d+(?:\.\d+)?(?:[eE][+-]?\d+)? | \w+
    | :: | ->> | -> | \|\| | <= | >= | <> | != | << | >> | \S""",
    re.VERBOSE,
)


def files() -> list[Path]:
    return sorted(CORPUS.glob("*.slt"))


def records(file: Path) -> Iterator[Statement | Query | Load]:
    """The records that run on Remuda without parameters and succeed."""
    for record in parse(file.read_text(encoding="utf-8")):
        if isinstance(record, Load):
            yield record
        elif not record.parameters and record.guard.admits(frozenset({"remuda", "memory"})):
            fails = isinstance(record, Statement) and record.error is not None
            yield from () if fails else (record,)


def mutated(random: Random, sql: str, strangers: list[str]) -> str:
    """The statement with one mistake; a second one every fourth time."""
    tokens = TOKEN.findall(sql)
    for _ in range(2 if random.random() < 0.25 else 1):
        if not tokens:
            break
        at = random.randrange(len(tokens))
        match random.choice(("drop", "double", "swap", "copy", "stranger", "end")):
            case "drop":
                del tokens[at]
            case "double":
                tokens.insert(at, tokens[at])
            case "swap":
                tokens[at : at + 2] = reversed(tokens[at : at + 2])
            case "copy":
                tokens[at] = random.choice(tokens)
            case "stranger":
                tokens.insert(at, random.choice(strangers))
            case _:
                del tokens[at + 1 :]
    return " ".join(tokens)


_ALIASES = frozenset(
    {
        *("ALL", "ASC", "AT", "BOTH", "BY", "CASE", "CAST", "DAY", "DESC", "DISTINCT", "ELSE", "END", "FALSE", "FULL"),
        *(
            "HOUR",
            "LEFT",
            "MINUTE",
            "MONTH",
            "NULL",
            "PRIMARY",
            "QUARTER",
            "REPLACE",
            "RIGHT",
            "SECOND",
            "SET",
            "THEN",
            "TRUE",
        ),
        *("VALUES", "WEEK", "WHEN", "YEAR", "DECADE", "SEMI", "ANTI", "CENTURY"),
    }
)
"""Words that are an alias without AS here, as most of them are in PostgreSQL, and not in DuckDB."""


def is_read_over(sql: str) -> bool:
    """Whether DuckDB's parser refuses a text for another reason than a word that is an alias here."""
    tokens = TOKEN.findall(sql)
    aliases = [place for place, token in enumerate(tokens) if token.upper() in _ALIASES or token == "*"]
    without = [tokens[:place] + tokens[place + 1 :] for place in aliases]
    without += [[token for token in tokens if token != tokens[place]] for place in aliases]
    return is_syntax_error(sql) and all(is_syntax_error(" ".join(each)) for each in without)


def is_syntax_error(sql: str) -> bool:
    """Whether DuckDB's parser refuses the text, whatever its names mean."""
    try:
        duckdb.extract_statements(sql)
    except duckdb.ParserException as error:
        return "syntax error" in str(error)  # and not: chained comparisons are not supported
    except duckdb.Error:
        return False
    return False
