"""Statements in the shell: answers, errors, what is shown of them, and how they are cancelled."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread, main_thread

import pytest

from remuda.cli.shell import Shell
from remuda.cli.shell.commands import help_text
from remuda.exec import ExecContext

Feed = Callable[[str], str]


def test_a_statement_goes_over_several_lines(feed: Feed) -> None:
    assert feed("SELECT k,\nname FROM t ORDER BY k;") == " k  name\n──  ────\n 1  ann\n 2  NULL\n(2 rows)"


def test_several_statements_on_a_line(feed: Feed) -> None:
    assert feed("DELETE FROM t WHERE k = 1; SELECT k FROM t;") == "1 row changed\n k\n──\n 2\n(1 row)"


def test_an_error_ends_a_text(feed: Feed, shell: Shell) -> None:
    assert "(1 row)" not in feed("SELECT nam FROM t; SELECT 'not reached' AS x;")
    assert not shell.run("SELECT nam FROM t;")
    assert shell.run("SELECT k FROM t;")


def test_errors_show_the_place_in_all_that_was_typed(feed: Feed) -> None:
    lines = feed("SELECT k FROM t WHERE k = 9; SELECT 1,\n  nam FROM t;").splitlines()
    assert lines[-4].endswith("at line 2, column 3")
    assert lines[-3:-1] == ["    nam FROM t;", "    ^^^"]


def test_what_a_statement_did(feed: Feed) -> None:
    for statement, said in (
        ("CREATE TABLE u (k BIGINT, PRIMARY KEY (k));", "done"),
        ("SET engine = local;", "done"),
        ("INSERT INTO u VALUES (1), (2);", "2 rows changed"),
        ("DELETE FROM u WHERE k = 9;", "0 rows changed"),
        ("CREATE TABLE w AS SELECT * FROM u;", "2 rows written"),
        ("CREATE VIEW v AS SELECT k, name AS called FROM t;", "done"),
        ("DROP TABLE IF EXISTS nothing;", "done"),
    ):
        assert feed(statement) == said
    assert "v     view" in feed("\\d")
    assert "called" in feed("\\d v")


def test_a_plan_is_printed_as_it_is(feed: Feed, tmp_path: Path) -> None:
    """Not as a table, not as records: its lines belong together, and its JSON is JSON."""
    plan = feed("EXPLAIN SELECT * FROM t WHERE k = 1;")
    assert plan.splitlines()[0].startswith("Root ")
    assert feed("\\x on") == "expanded is on."
    assert feed("EXPLAIN SELECT * FROM t WHERE k = 1;") == plan
    assert feed("EXPLAIN (FORMAT JSON) SELECT * FROM t WHERE k = 1;").startswith("{\n")


def test_an_answer_ends_somewhere(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.cli.shell.screen.Screen.is_terminal", property(lambda _: True))
    assert feed("\\rows 2") == "rows is 2."
    lines = feed("SELECT i FROM range(5) AS r(i);").splitlines()
    assert len(lines) == 5
    assert lines[-1] == "(the first 2 rows; \\rows n shows more)"
    assert feed("SELECT i FROM range(2) AS r(i);").endswith("(2 rows)")
    feed("\\pset format csv")
    assert feed("SELECT i FROM range(5) AS r(i);") == "i\n0\n1\n(the first 2 rows; \\rows n shows more)"


def test_a_file_gets_every_row(feed: Feed, tmp_path: Path) -> None:
    feed("\\rows 2")
    for form, first, lines in (("csv", "i", 5_001), ("json", "[", 5_002), ("table", "    i", 5_003)):
        feed(f"\\pset format {form}")
        path = tmp_path / f"out.{form}"
        assert feed(f"\\o {path}") == ""
        assert feed("SELECT i FROM range(5000) AS r(i) ORDER BY i;") == ""
        feed("\\o")
        written = path.read_text(encoding="utf-8").splitlines()
        assert (written[0], len(written)) == (first, lines)


def test_a_statement_can_be_cancelled(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert feed(endless) == "cancelled"
    finally:
        interrupting.join()
        signal.signal(signal.SIGINT, before)
    assert feed("SELECT 1 AS one;").endswith("(1 row)")


@pytest.mark.parametrize("word", ["exit", "quit;", "EXIT", "\\q", ".quit", ".exit"])
def test_words_of_other_shells(feed: Feed, shell: Shell, word: str) -> None:
    assert feed("help") == help_text()
    assert not shell.finished
    feed(word)
    assert shell.finished
