"""`remuda sql`: statements from the command line or standard input, answers on standard output."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.cli.output import as_records, as_table, counted, printable, render, widest_line
from remuda.errors import StorageError

if TYPE_CHECKING:
    from remuda.grid import Grid, Result, Session

# Cuts text into statements at the semicolons that are not inside quotes or comments.


_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'            # text
    | "(?:[^"]|"")*"            # a quoted name
    | --[^\n]*                  # a comment to the end of the line
    | /\*.*?\*/                 # a comment in brackets
    | \$\$.*?\$\$               # text between dollars
    | ;
    | (?P<open>'|"|/\*|\$\$)         # one of the above, not yet closed
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def split(text: str) -> tuple[list[str], str]:
    """The complete statements, without their semicolons, and the rest that still waits for one.

    >>> split("SELECT ';'; SELECT 2 -- ; not here")
    (["SELECT ';'"], 'SELECT 2 -- ; not here')
    >>> split("SELECT 'open; ")
    ([], "SELECT 'open;")
    >>> split("SELECT $$a;b$$; SELECT $$c;")
    (['SELECT $$a;b$$'], 'SELECT $$c;')
    """
    statements: list[str] = []
    start = 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            break
        if token[0] == ";":
            statements.append(text[start : token.start()].strip())
            start = token.end()
    return [statement for statement in statements if statement], text[start:].strip()


def first_word(text: str) -> str:
    """What kind of statement it is.

    >>> first_word("-- all of them\\n delete FROM t")
    'DELETE'
    """
    words = "".join(" " if token[0].startswith(("--", "/*")) else token[0] for token in _TOKEN.finditer(text)).split()
    return words[0].upper() if words else ""


def is_blank(text: str) -> bool:
    """Whether there is nothing in the text but space and comments.

    >>> is_blank(" -- nothing"), is_blank("SELECT 1 -- one")
    (True, False)
    """
    return all(token[0].isspace() or token[0].startswith(("--", "/*")) for token in _TOKEN.finditer(text))


def run_script(folder: str | None, text: str | None, form: str) -> int:
    """Stops at the first error: what follows was written for the state that the failed statement should have left."""
    statements, rest = split(sys.stdin.read() if text is None else text)
    if rest and not is_blank(rest):
        statements.append(rest)
    with remuda.open(folder) as grid:
        for statement in statements:
            answer = run_statement(grid, statement, form)
            if answer:
                # A program gets every value as it is; a terminal would obey some of them.
                print(printable(answer) if sys.stdout.isatty() else answer)
    return 0


def run_statement(session: Grid | Session, statement: str, form: str) -> str:
    """The rows, or what was done; empty for a statement that has nothing to say in this form."""
    with session.sql(statement) as result:
        if result.columns:
            return render(_names(result), result.fetchall(), form)
        return outcome(statement, result.update_count) if form == "table" else ""


def show_statement(session: Session, statement: str, most: int, width: int) -> str:
    """The same for a person at a terminal: not more rows than can be read, and none wider than the terminal."""
    with session.sql(statement) as result:
        if not result.columns:
            return outcome(statement, result.update_count)
        rows = result.fetchmany(most + 1)
        names, shown = _names(result), rows[:most]
    table = as_table(names, shown)
    # A plan is drawn in lines that belong together, and one column is no narrower as records.
    answer = as_records(names, shown) if len(names) > 1 and widest_line(table) > width else table
    if len(rows) == len(shown):
        return answer
    return f"{answer.rsplit(chr(10), 1)[0]}\n(the first {counted(most, 'row')}; \\rows n shows more)"


def outcome(statement: str, count: int) -> str:
    """
    >>> outcome("DELETE FROM t", 0), outcome("COPY t TO 'x.csv'", 2), outcome("CREATE TABLE t AS SELECT 1", 1)
    ('0 rows changed', '2 rows copied', '1 row written')
    >>> outcome("CREATE INDEX i ON t (a)", 0)
    'done'
    """
    match first_word(statement):
        case "INSERT" | "SINK" | "UPDATE" | "DELETE" | "TRUNCATE" | "WITH":
            return counted(count, "row") + " changed"
        case "COPY":
            return counted(count, "row") + " copied"
        case "CREATE" if count:
            return counted(count, "row") + " written"
        case _:
            return "done"


def _names(result: Result) -> list[str]:
    return [column.name for column in result.columns]


# `remuda check PATH`: reads every file of a folder and says what is damaged.


def run_check(path: str) -> int:
    """Return 0 where every map is sound, else 1. The folder may be open for writing in another process."""
    if "://" not in path and not Path(path).is_dir():
        raise StorageError("there is no such folder", path, sqlstate="58P01")
    damaged = 0
    with remuda.open(path, read_only=True) as grid:
        for row in grid.sql("CHECK TABLE"):
            if row.status == "ok":
                print(f"{row.map}: ok")
                continue
            damaged += 1
            place = f", offset {row.position}" if row.position is not None else ""
            print(f"{row.map}: DAMAGED: {row.problem} ({row.file}{place})")
    print("every file is as it was written" if not damaged else f"{damaged} damaged: restore these files from a backup")
    return 1 if damaged else 0
