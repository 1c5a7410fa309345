"""Control characters from data, names and errors never reach a terminal as they are."""

from __future__ import annotations

import pytest

import remuda
from remuda.cli.output import FORMS
from remuda.cli.shell import Screen, Shell
from remuda.presentation.text_table import as_records, as_table, printable

CLEAR = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\x00"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT chr(27) || '[2J' AS x",
        f"SELECT '{CLEAR}' AS x, 1 AS y",
        f'SELECT 1 AS "{CLEAR}"',
        f'SELECT "{CLEAR}" FROM t',
        "SELECT CAST(chr(27) || '[2J' AS BIGINT) AS x",
        f"\\d {CLEAR.strip()}",
        f"\\{CLEAR}",
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_the_shell_escapes_control_characters(
    statement: str, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal without colours: with them, the only escape sequences would be our own."""
    monkeypatch.setattr(Screen, "is_terminal", property(lambda _: True))
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
        shell = Shell(grid, Screen(interactive=True))
        shell.options.change("format", form)
        shell.run(statement if statement.startswith("\\") else f"{statement};")
    printed = capsys.readouterr()
    answer = printed.out + printed.err
    assert answer
    assert not set(answer) & set("\x1b\x07\x9b\u202e\r\x00")


def test_tables_and_records() -> None:
    for text in (as_table([CLEAR], [(CLEAR,)]), as_records([CLEAR], [(CLEAR,)])):
        assert not set(text) & set("\x1b\x07\x9b\u202e\r\x00")
    assert printable("naïve 😀 \U0001f468\u200d\U0001f469 ✓\n\t") == "naïve 😀 \U0001f468\u200d\U0001f469 ✓\n\t"
