"""The examples of docs/sql.md, run from the first to the last: each says its answer in a comment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda.errors import SqlError

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
_EXAMPLE = re.compile(r"(?P<sql>[^;]*(?:'[^']*'[^;']*)*);(?:  -- (?P<answer>.*))?\n")


def blocks() -> list[str]:
    return re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str | None]]:
    return [(found["sql"], found["answer"]) for block in blocks() for found in _EXAMPLE.finditer(block)]


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_no_example_is_overlooked() -> None:
    assert len(examples()) == len(re.findall(r";(?:  --.*)?$", "".join(blocks()), re.MULTILINE)) > 30


def test_examples() -> None:
    with remuda.open(members=2) as grid:
        for sql, answer in examples():
            if answer is not None and answer.startswith("error: "):
                with pytest.raises(SqlError) as failure:
                    grid.sql(sql).fetchall()
                assert answer.removeprefix("error: ") in str(failure.value), sql
                continue
            result = grid.sql(sql)
            if answer is not None:
                rows = [", ".join(map(shown, row)) for row in result]
                assert (rows or ["nothing"]) == [answer], sql


def test_the_error_of_the_last_section() -> None:
    expected = PAGE.read_text(encoding="utf-8").split("```")[-2].strip("\n")
    with remuda.open() as grid:
        grid.sql("CREATE TABLE items (id BIGINT, price DECIMAL(10, 2), qty INTEGER, PRIMARY KEY (id))")
        grid.sql("INSERT INTO items VALUES (1, 1, 0)")
        with pytest.raises(SqlError) as failure:
            grid.sql("SELECT price / qty FROM items").fetchall()
        assert str(failure.value) == expected
