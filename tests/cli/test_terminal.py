"""The shell in a real terminal: keys are pressed in tmux, and the screen is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import remuda
from tests.cli.terminal import Terminal, needs_tmux

pytestmark = needs_tmux
Open = Callable[..., Terminal]
EDITORS = pytest.mark.parametrize("without", [None, "prompt_toolkit"], ids=["prompt_toolkit", "readline"])
ENDLESS = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 1000 FROM r) SELECT COUNT(*) FROM r;"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    with remuda.open(tmp_path / "shop.remuda") as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, note VARCHAR, PRIMARY KEY (id))")
        grid.sql("INSERT INTO orders SELECT i, 'C' || i % 7, i * 1.5, NULL FROM range(200) AS r(i)")
    return "shop.remuda"


@EDITORS
def test_a_statement_of_several_lines_is_recalled_whole(open_terminal: Open, shop: str, without: str | None) -> None:
    terminal = open_terminal(shop, without=without)
    terminal.wait_for("\\? for help, \\q to leave.", "remuda>")
    terminal.enter("SELECT id, amount").enter("FROM orders WHERE id < 2").enter("ORDER BY id;")
    terminal.wait_for("(2 rows)")
    terminal.enter("\\q")
    assert terminal.wait_for_end() == 0
    again = open_terminal(shop, without=without)
    again.wait_for_prompt()
    again.press("Up").wait_for("\\q")
    again.press("Up").wait_for("SELECT id, amount", "FROM orders WHERE id < 2", "ORDER BY id;")
    again.press("Enter").wait_for("(2 rows)")


def test_a_recalled_statement_is_edited(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    terminal.enter("SELECT 'first' AS x,").enter("  'second' AS y;").wait_for("(1 row)")
    terminal.press("Up").wait(lambda seen: seen.count("'second' AS y;") == 2, "recalled")
    terminal.press("Up", "Home", *["Right"] * 8).type("3").press("M-Enter")
    terminal.wait_for("3first")


@EDITORS
def test_tab_completes(open_terminal: Open, shop: str, without: str | None) -> None:
    terminal = open_terminal(shop, without=without)
    terminal.wait_for_prompt()
    terminal.type("SELECT cus").press("Tab").wait_for("SELECT customer")
    terminal.type(" FROM ord").press("Tab").wait_for("FROM orders")
    terminal.type(" o WHERE o.am").press("Tab").wait_for("o.amount")
    terminal.enter(" < 0;").wait_for("(0 rows)")
    terminal.type("\\tim").press("Tab").wait_for("\\timing")


def test_a_menu_shows_what_a_word_may_become(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    terminal.type("SELECT * FROM orders o WHERE o.")
    seen = terminal.wait_for("customer  column", "amount    column")
    assert "Persons" not in seen
    terminal.press("Tab", "Tab", "Enter").wait_for("WHERE o.customer")
    terminal.wait_until_gone("amount    column")
    terminal.enter(" = 'C1' AND id < 9;").wait_for("(2 rows)")


def test_text_is_highlighted_while_it_is_typed(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    terminal.type("SELECT abs(1), 'text' -- end")
    seen = terminal.wait_for("-- end", colours=True)
    assert re.search(r"\x1b\[1m(\x1b\[\d+m)*\x1b\[32mSELECT|\x1b\[32mSELECT", seen)
    assert "\x1b[36mabs" in seen
    assert "\x1b[33m'text'" in seen


def test_no_color(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop, environment={"NO_COLOR": "1"})
    terminal.wait_for_prompt()
    terminal.enter("SELECT nothing, 'x' FROM orders;")
    seen = terminal.wait_for("unknown column: nothing", colours=True)
    assert not re.search(r"\x1b\[(3[0-7]|9[0-7]|4[0-7]|38|48)[;m]", seen)


def test_errors_are_red(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    terminal.enter("SELECT nothing FROM orders;")
    seen = terminal.wait_for("^^^^^^^", colours=True)
    assert re.search(r"\x1b\[31m *\^{7}", seen)


@EDITORS
def test_ctrl_c_cancels_the_statement_and_not_the_shell(open_terminal: Open, shop: str, without: str | None) -> None:
    terminal = open_terminal(shop, without=without)
    terminal.wait_for_prompt()
    for name in ("once", "twice"):
        terminal.enter(ENDLESS)
        terminal.wait_for(" s  Ctrl-C cancels")
        terminal.press("C-c").wait_for("cancelled")
        terminal.wait_until_gone("Ctrl-C cancels")
        terminal.wait_for_prompt()
        terminal.enter(f"SELECT 'still here ' || '{name}' AS x;").wait_for(f"still here {name}")
        terminal.wait_for_prompt()
        terminal.press("C-l")
        terminal.wait_until_gone("cancelled")
        terminal.wait_for_prompt()
    terminal.type("SELECT dropped").wait_for("SELECT dropped")
    terminal.press("C-c").wait_for_prompt()
    terminal.enter("SELECT 'and ' || 'here' AS x;").wait_for("and here")
    terminal.wait_for_prompt()
    terminal.press("C-d")
    assert terminal.wait_for_end() == 0


def test_the_rows_that_have_come_are_counted(open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.wait_for_prompt()
    terminal.enter("\\rows 1,000,000,000").wait_for("rows is 1,000,000,000.")
    terminal.enter("SELECT i FROM range(1000000000) AS r(i);")
    terminal.wait(lambda seen: re.search(r"s  [\d,]+ rows  Ctrl-C cancels", seen) is not None, "a count of rows")
    terminal.press("C-c").wait_for("cancelled")


def test_a_write_that_is_cancelled_leaves_nothing(open_terminal: Open, shop: str, tmp_path: Path) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    source = "SELECT a.id * 1000 + b.id + 1000, 'x', c.id, 'y' FROM orders a, orders b, orders c, orders d"
    terminal.enter(f"INSERT INTO orders {source};")
    terminal.wait_for(" s  Ctrl-C cancels")
    terminal.press("C-c").wait_for("cancelled")
    terminal.wait_for_prompt()
    terminal.enter("SELECT COUNT(*) AS n FROM orders;").wait_for(" 200")
    terminal.enter("INSERT INTO orders VALUES (1000, 'C', 1, NULL);").wait_for("1 row changed")
    terminal.enter("\\q")
    assert terminal.wait_for_end() == 0
    with remuda.open(tmp_path / shop) as grid:
        assert len(grid.map("orders")) == 201


def test_watch(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    terminal.enter("SELECT COUNT(*) AS n FROM orders \\watch 0.2")
    terminal.wait(lambda seen: seen.count("(every 0.2 s)") >= 3, "three answers")
    terminal.press("C-c").wait_for_prompt()
    terminal.enter("SELECT 'on' || 'wards' AS x;").wait_for("onwards")


def test_only_a_large_answer_is_paged(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop, lines=20, environment={"PAGER": "sed 's/^/pager: /'"})
    terminal.wait_for_prompt()
    assert "pager:" not in terminal.enter("SELECT id FROM orders WHERE id < 10;").wait_for("(10 rows)")
    terminal.enter("SELECT id FROM orders WHERE id < 60;").wait_for("pager: (60 rows)")
    terminal.enter("\\pset pager off").wait_for("pager is off.")
    terminal.enter("SELECT id FROM orders WHERE id < 60;").wait_for("\n(60 rows)")
    terminal.enter("\\pset pager always").wait_for("pager is always.")
    terminal.enter("SELECT 'small' AS x;").wait_for("pager:  small")


def test_less_is_the_pager_and_ctrl_c_in_it_harms_nothing(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop, lines=20, environment={"PAGER": "less", "LESS": "FRSX"})
    terminal.wait_for_prompt()
    terminal.enter("SELECT id, amount FROM orders;").wait_for("\n:")
    terminal.press("C-c")
    terminal.press_until("G", "(200 rows)")  # less is still there
    terminal.press("q").wait_for_prompt()
    terminal.enter("SELECT 'still ' || 'here' AS x;").wait_for("still here")


def test_a_wide_answer_is_fitted_or_expanded(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop, columns=70)
    terminal.wait_for_prompt()
    terminal.enter("SELECT id, repeat('long ', 30) AS t, repeat('wide ', 30) AS u FROM orders WHERE id = 1;")
    seen = terminal.wait_for("(1 row)")
    assert re.search(r"\n  1  (long ?)+…  (wide ?)+…\n", seen)
    terminal.enter("SELECT o.*, p.*, q.* FROM orders o, orders p, orders q LIMIT 1;")
    terminal.wait_for("── row 1 ──", "customer  C0", "note      NULL")
    terminal.enter("\\x off").wait_for("expanded is off.")
    terminal.enter("SELECT id AS a, amount AS b FROM orders WHERE id = 1;").wait_for(" a    b\n──  ───\n 1  1.5")
    terminal.enter("\\x on").wait_for("expanded is on.")
    terminal.enter("SELECT id AS a, amount AS b FROM orders WHERE id = 1;").wait_for("a  1\nb  1.5")


def test_the_editor(open_terminal: Open, shop: str, tmp_path: Path) -> None:
    editor = tmp_path / "edit"
    editor.write_text("#!/bin/sh\nsed -i 's/one/two/' \"$1\"\n")
    editor.chmod(0o700)
    terminal = open_terminal(shop, environment={"VISUAL": "", "EDITOR": str(editor)})
    terminal.wait_for_prompt()
    terminal.enter("SELECT 'one' AS x;").wait_for(" one")
    terminal.enter("\\e").wait_for("SELECT 'two' AS x;", " two")
    terminal.wait_for_prompt()
    terminal.press("Up").wait_for("remuda> SELECT 'two' AS x;")
    terminal.press("C-c").wait_for_prompt()
    editor.write_text("#!/bin/sh\nprintf 'SELECT 41 +' > \"$1\"\n")
    terminal.enter("\\e").wait_for("remuda> SELECT 41 +")
    terminal.enter(" 1 AS x;").wait_for(" 42")


@EDITORS
def test_the_question_before_a_folder_is_created(open_terminal: Open, tmp_path: Path, without: str | None) -> None:
    terminal = open_terminal("new.remuda", without=without)
    terminal.wait_for("new.remuda does not exist. Create maps there? [y/N]")
    terminal.enter("n")
    assert terminal.wait_for_end() == 1
    assert not (tmp_path / "new.remuda").exists()
    terminal = open_terminal("new.remuda", without=without)
    terminal.wait_for("[y/N]")
    terminal.enter("y").wait_for("remuda>")
    terminal.enter("CREATE TABLE t (k BIGINT);").wait_for("done")
    terminal.enter("exit")
    assert terminal.wait_for_end() == 0
    assert (tmp_path / "new.remuda").is_dir()
    assert "[y/N]" not in open_terminal("new.remuda", without=without).wait_for("remuda>")


def test_control_characters_of_data_are_escaped(open_terminal: Open, shop: str) -> None:
    terminal = open_terminal(shop)
    terminal.wait_for_prompt()
    for form in ("table", "line", "markdown", "csv", "json"):
        terminal.enter(f"\\pset format {form}").wait_for(f"format is {form}.")
        terminal.enter(f"SELECT '{form}: ' || chr(27) || '[2J' || chr(155) || '2J' AS x, 1 AS y;")
        escape = "\\u001b" if form == "json" else "\\x1b"
        terminal.wait_for(f"{form}: {escape}[2J\\x9b2J")


def test_a_read_only_shell_says_so(open_terminal: Open, shop: str, tmp_path: Path) -> None:
    with remuda.open(tmp_path / shop) as writer:
        terminal = open_terminal(shop, "--read-only")
        terminal.wait_for("shop.remuda, read-only.")
        terminal.enter("INSERT INTO orders VALUES (1000, 'C', 1, NULL);").wait_for("open for reading only")
        writer.sql("INSERT INTO orders VALUES (1001, 'C', 1, NULL)")
        terminal.enter("SELECT COUNT(*) AS n FROM orders WHERE id = 1;").wait_for("(1 row)")


def test_what_the_first_screen_says(open_terminal: Open) -> None:
    terminal = open_terminal(lines=50)
    assert terminal.wait_for("remuda>").startswith(
        f"Remuda {remuda.__version__}, in memory. \\? for help, \\q to leave."
    )
    terminal.enter("\\?")
    terminal.wait_for("\\watch [SECONDS] [TIMES]", "Ctrl-R")
