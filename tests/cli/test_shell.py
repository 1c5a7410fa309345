"""The shell and `remuda sql` on a real grid."""

from __future__ import annotations

import io
import json
import signal
from threading import Event, Thread, main_thread
from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.cli import main
from remuda.cli.shell import CONTINUED, PROMPT, Shell
from remuda.exec import ExecContext

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def shell() -> Iterator[Shell]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (k BIGINT, name VARCHAR, PRIMARY KEY (k))")
        grid.sql("CREATE INDEX t_name ON t (name) TYPE HASH")
        grid.sql("INSERT INTO t VALUES (1, 'ann'), (2, NULL)")
        yield Shell(grid)


def test_a_statement_ends_at_its_semicolon(shell: Shell) -> None:
    assert shell.prompt == PROMPT
    assert shell.feed("SELECT k,") == ""
    assert shell.prompt == CONTINUED
    assert shell.feed("name FROM t ORDER BY k;") == " k  name\n──  ────\n 1  ann\n 2  NULL\n(2 rows)"
    assert shell.prompt == PROMPT


def test_several_statements_on_a_line(shell: Shell) -> None:
    answer = shell.feed("DELETE FROM t WHERE k = 1; SELECT k FROM t; SELECT")
    assert answer == "1 row changed\n k\n──\n 2\n(1 row)"
    assert shell.prompt == CONTINUED
    shell.drop()
    assert shell.prompt == PROMPT


def test_errors_show_the_place(shell: Shell) -> None:
    lines = shell.feed("SELECT nam FROM t;").splitlines()
    assert lines[1:3] == ["  SELECT nam FROM t", "         ^^^"]


def test_commands_begin_with_a_backslash(shell: Shell) -> None:
    assert "t" in shell.feed("\\d")
    described = shell.feed("\\d t")
    assert "BIGINT" in described
    assert "index t_name HASH (name)" in described
    assert "no map missing" in shell.feed("\\d missing")
    assert shell.feed("\\timing") == "Timing is on."
    assert "Time: " in shell.feed("SELECT k FROM t;")
    assert "not a command" in shell.feed("\\nonsense")
    assert not shell.finished
    shell.feed("\\q")
    assert shell.finished


def test_sql_command_keeps_its_data_in_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "shop.remuda")
    create = "CREATE TABLE t (k BIGINT, v DOUBLE, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 2.5)"
    assert main(["sql", "-d", folder, "-c", create]) == 0
    capsys.readouterr()
    assert main(["sql", "-d", folder, "-f", "json", "-c", "SELECT * FROM t"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"k": 1, "v": 2.5}]
    assert main(["sql", "-d", folder, "-f", "csv", "-c", "SELECT * FROM t;"]) == 0
    assert capsys.readouterr().out == "k,v\n1,2.5\n"


def test_sql_command_reads_standard_input_and_stops_at_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT * FROM missing;\nCREATE TABLE t (k BIGINT, PRIMARY KEY (k));"))
    assert main(["sql"]) == 1
    assert "OBJECT_NOT_FOUND" in capsys.readouterr().err


def test_what_a_statement_did(shell: Shell) -> None:
    for statement, said in (
        ("CREATE TABLE u (k BIGINT, PRIMARY KEY (k));", "done"),
        ("SET engine = local;", "done"),
        ("INSERT INTO u VALUES (1), (2);", "2 rows changed"),
        ("DELETE FROM u WHERE k = 9;", "0 rows changed"),
        ("CREATE TABLE w AS SELECT * FROM u;", "2 rows written"),
        ("CREATE VIEW v AS SELECT k, name AS called FROM t;", "done"),
        ("DROP TABLE IF EXISTS nothing;", "done"),
    ):
        assert shell.feed(statement) == said
    assert "views: v" in shell.feed("\\d")
    assert "called" in shell.feed("\\d v")


def test_an_answer_has_room(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "25")
    wide = shell.feed("SELECT k, name, 'a long piece of text' AS text FROM t ORDER BY k;").splitlines()
    assert wide[:4] == ["── row 1 ──", "k     1", "name  ann", "text  a long piece of text"]
    assert wide[-1] == "(2 rows)"
    assert shell.feed("SELECT 'one column that is wider than the terminal' AS text;").startswith(" text\n")


def test_an_answer_ends_somewhere(shell: Shell) -> None:
    shell.feed("INSERT INTO t SELECT a.k * 1000 + b.k, 'x' FROM t a, t b, t c WHERE c.k = 1;")
    assert shell.feed("\\rows 2") == "Answers are shown up to 2 rows."
    lines = shell.feed("SELECT k FROM t;").splitlines()
    assert len(lines) == 5
    assert "the first 2 rows" in lines[-1]
    assert shell.feed("SELECT k FROM t LIMIT 2;").endswith("(2 rows)")


def test_a_statement_can_be_stopped(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-C, when it has begun; the shell goes on.

    What runs in the background may have been started without a Ctrl-C.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    endless = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 1000 FROM r) SELECT COUNT(*) FROM r;"
    has_begun, verify = Event(), ExecContext.verify

    def verify_and_tell(context: ExecContext) -> None:
        has_begun.set()
        verify(context)

    def interrupt() -> None:
        if has_begun.wait(60):
            signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    monkeypatch.setattr(ExecContext, "verify", verify_and_tell)
    interrupting = Thread(target=interrupt)
    interrupting.start()
    try:
        assert shell.feed(endless) == "stopped"
    finally:
        interrupting.join()
        signal.signal(signal.SIGINT, before)
    assert shell.feed("SELECT 1 AS one;").endswith("(1 row)")


def test_a_script_is_piped_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one;\nSELECT 2 AS two"))
    assert main([]) == 0
    assert capsys.readouterr().out.count("(1 row)") == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT nothing;\nSELECT 2 AS two;"))
    assert main([]) == 1
    shown = capsys.readouterr()
    assert "unknown column: nothing" in shown.err
    assert shown.out == ""
