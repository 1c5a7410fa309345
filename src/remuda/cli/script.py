"""`remuda sql`: statements from the command line or standard input, answers on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import remuda
from remuda.cli.output import counted, render
from remuda.cli.statements import is_blank, split

if TYPE_CHECKING:
    from remuda.grid import Grid


def run_script(folder: str | None, text: str | None, form: str) -> int:
    """Stops at the first error: what follows was written for the state that the failed statement should have left."""
    statements, rest = split(sys.stdin.read() if text is None else text)
    if rest and not is_blank(rest):
        statements.append(rest)
    with remuda.open(folder) as grid:
        for statement in statements:
            answer = run_statement(grid, statement, form)
            if answer:
                print(answer)
    return 0


def run_statement(grid: Grid, statement: str, form: str) -> str:
    """The rows, or how many were changed; empty for a statement that has nothing to say in this form."""
    result = grid.sql(statement)
    if result.columns:
        return render([column.name for column in result.columns], result.fetchall(), form)
    return counted(result.update_count, "row") + " changed" if form == "table" else ""
