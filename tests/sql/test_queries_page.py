"""The examples of docs/queries.md, run from the first to the last: each says its answer in a comment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda.errors import SqlError

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"
_EXAMPLE = re.compile(r"(?P<sql>[^;]*);(?:  -- (?P<answer>.*))?\n")


def examples() -> list[tuple[str, str | None]]:
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [(found["sql"], found["answer"]) for block in blocks for found in _EXAMPLE.finditer(block)]


def shown(value: Any) -> str:
    return "NULL" if value is None else str(value)


@pytest.mark.parametrize("members", [1, 3])
def test_examples(members: int) -> None:
    assert len(examples()) > 40
    with remuda.open(members=members) as grid:
        for sql, answer in examples():
            if answer is not None and answer.startswith("error: "):
                with pytest.raises(SqlError) as failure:
                    grid.sql(sql).fetchall()
                assert answer.removeprefix("error: ") in str(failure.value), sql
                continue
            result = grid.sql(sql)
            if answer is not None:
                rows = [", ".join(map(shown, row)) for row in result]
                assert "; ".join(rows or ["nothing"]) == answer, sql
