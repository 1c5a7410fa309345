"""The SQL examples of a page of the documentation, run from the first to the last: each says its answer in a comment.

SELECT n FROM m ORDER BY n;  -- 1; 2; NULL
SELECT n FROM m WHERE n > 9;  -- nothing
SELECT 1 / 0;  -- error: division by zero
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remuda.errors import SqlError
from remuda.grid import Grid

_BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"(?P<sql>[^;]*(?:'[^']*'[^;']*)*);(?:  -- (?P<answer>.*))?\n")
_END = re.compile(r";(?:  --.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """`answer` is None where the page says nothing about it."""

    sql: str
    answer: str | None

    def check(self, grid: Grid) -> None:
        match self.answer:
            case None:
                grid.sql(self.sql)
            case answer if answer.startswith("error: "):
                with pytest.raises(SqlError) as failure:
                    grid.sql(self.sql).fetchall()
                assert answer.removeprefix("error: ") in str(failure.value), self.sql
            case answer:
                rows = [", ".join(map(_shown, row)) for row in grid.sql(self.sql)]
                assert "; ".join(rows or ["nothing"]) == answer, self.sql


def read_page(name: str) -> str:
    return (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")


def examples(name: str) -> list[Example]:
    """Those of the page of that name in docs/."""
    blocks = _BLOCK.findall(read_page(name))
    found = [Example(each["sql"], each["answer"]) for block in blocks for each in _EXAMPLE.finditer(block)]
    assert len(found) == sum(len(_END.findall(block)) for block in blocks), "an example was overlooked"
    return found


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
