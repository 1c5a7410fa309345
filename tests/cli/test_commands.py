r"""The commands of the shell, from `\d` to `\watch`, and the page that describes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import remuda
from remuda.cli.shell import Shell
from remuda.cli.shell.commands import COMMANDS, help_text
from remuda.cli.shell.options import OPTIONS
from remuda.cli.shell.statement_help import SYNTAX
from remuda.sql.parse.definition_parser import DEFINITIONS

Feed = Callable[[str], str]
PAGE = Path(__file__).parents[2] / "docs" / "shell.md"


def test_the_page_and_the_help_have_every_command() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (?:`(.+?)`)? ?\| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    written = [
        (usage.replace("\\|", "|"), alias or None, meaning.replace("\\|", "|")) for usage, alias, meaning in rows
    ]
    commands = [(command.usage, command.alias, command.meaning) for command in COMMANDS]
    assert [row for row in written if row[0].startswith("\\")] == commands
    for command in COMMANDS:
        assert command.usage in help_text()


def test_the_page_has_every_option() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| `(.+?)` \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    from remuda.cli.shell.options import Options

    options = [
        (each.name, each.metadata["values"], Options().shown(each.name), each.metadata["meaning"])
        for each in OPTIONS.values()
    ]
    assert rows == options


def test_unknown_commands_are_refused(feed: Feed, shell: Shell) -> None:
    assert feed("\\tming") == "\\tming is not a command. Did you mean \\timing? \\? lists them."
    assert "is not a command" in feed(".nothing")
    assert not shell.finished
    assert "stands on a line of its own" in feed("SELECT 1 \\timing")


def test_what_there_is(feed: Feed) -> None:
    feed("CREATE VIEW named AS SELECT name FROM t WHERE name IS NOT NULL;")
    assert feed("\\d") == " name   kind  rows\n──────  ────  ────\n named  view\n t      map      2\n(2 rows)"
    assert feed("\\d t").splitlines() == [
        " column  type",
        "───────  ───────  ────────  ───",
        " k       BIGINT   NOT NULL  key",
        " name    VARCHAR",
        "  index t_name HASH (name)",
    ]
    assert feed("\\d+ t").endswith("2 rows, partitioned by k")
    assert feed("\\d+ named").endswith("query: SELECT name FROM t WHERE name IS NOT NULL")
    assert "t_name" in feed("\\d+")
    assert feed("\\d missing") == "There is no map missing. \\d lists them."
    assert feed("\\d namde") == 'There is no map namde. Did you mean "named"?'
    assert " t        2  k" in feed("\\dt")
    assert feed("\\dt x*") == "There are no such maps."
    assert "t_name  HASH" in feed("\\di t*")
    assert "SELECT name FROM t" in feed("\\dv")
    assert feed(".tables") == feed("\\dt")
    assert feed(".indexes") == feed("\\di")
    assert feed("\\l").splitlines()[2].split() == ["in", "memory", "1", "2"]


def test_the_schema_creates_the_same_again(feed: Feed, shell: Shell) -> None:
    for statement in (
        'CREATE TABLE "Odd name" (a VARCHAR(5), "b c" DECIMAL(10, 2), d DOUBLE, PRIMARY KEY (a, d)) PARTITION BY (a)',
        'CREATE INDEX odd ON "Odd name" ("b c", d) TYPE SORTED',
        "CREATE TABLE everywhere (a BIGINT, PRIMARY KEY (a)) REPLICATED",
        "CREATE TABLE no_key (a BIGINT)",
        "CREATE TABLE w (a INT, PRIMARY KEY (a)) WITH (partitions = 4096, retention = '2 hours', compression = 'LZ4')",
        "CREATE VIEW v AS SELECT a FROM everywhere WHERE a > 1",
    ):
        shell.session.sql(statement)
    assert "WITH (partitions = 4096, retention = '7200 seconds', compression = 'lz4')" in feed("\\schema w")
    assert feed("\\schema no_key") == "CREATE TABLE no_key (\n  a BIGINT\n);"
    schema = feed(".schema")
    with remuda.open() as grid:
        other = Shell(grid)
        assert other.run(schema)
        for query in (
            "SELECT * FROM information_schema.columns ORDER BY ALL",
            "SELECT * FROM information_schema.indexes ORDER BY ALL",
            "SELECT * FROM information_schema.key_column_usage ORDER BY ALL",
            "SELECT * FROM information_schema.views ORDER BY ALL",
        ):
            assert grid.sql(query).fetchall() == shell.session.sql(query).fetchall()
        described = "SHOW TABLES"  # all but the number of rows
        shown = [(*row[:2], *row[3:]) for row in shell.session.sql(described)]
        assert sorted((*row[:2], *row[3:]) for row in grid.sql(described)) == sorted(shown)


def test_timing(feed: Feed) -> None:
    assert feed("\\timing") == "timing is on."
    assert re.search(r"\(1 row\)\nTime: [\d.]+ (µs|ms|s)$", feed("SELECT 1;"))
    assert feed("\\timing off") == "timing is off."
    assert feed(".timer on") == "timing is on."
    assert feed("\\timing perhaps") == "timing is one of on, off, not perhaps"


def test_forms(feed: Feed) -> None:
    query = "SELECT k, name FROM t ORDER BY k;"
    for form, shown in (
        ("csv", "k,name\n1,ann\n2,"),
        ("markdown", "| k | name |\n| ---: | --- |\n| 1 | ann |\n| 2 | NULL |"),
        ("line", "── row 1 ──\nk     1\nname  ann\n── row 2 ──\nk     2\nname  NULL\n(2 rows)"),
        ("table", " k  name\n──  ────\n 1  ann\n 2  NULL\n(2 rows)"),
    ):
        assert feed(f"\\pset format {form}") == f"format is {form}."
        assert feed(query) == shown
    assert feed(".mode json") == "format is json."
    assert json.loads(feed(query)) == [{"k": 1, "name": "ann"}, {"k": 2, "name": None}]
    assert json.loads(feed("SELECT k FROM t WHERE k = 9;")) == []
    assert feed(".mode box").startswith("format is one of table, line, markdown, csv, json")


def test_options(feed: Feed) -> None:
    assert feed("\\pset null ∅") == "null is ∅."
    assert feed("SELECT NULL AS x;") == " x\n──\n ∅\n(1 row)"
    assert feed("\\pset null ''") == "null is ''."
    assert feed("\\pset null") == "null is ''."
    assert feed("\\x") == "expanded is on."
    assert feed("SELECT 1 AS x;") == "── row 1 ──\nx  1\n(1 row)"
    assert feed("\\x") == "expanded is off."
    assert feed("\\x auto") == "expanded is auto."
    assert feed("\\pset expanded") == "expanded is auto."
    assert [line.split()[0] for line in feed("\\pset").splitlines()] == list(OPTIONS)
    assert feed("\\pset colour on").startswith("unknown option: colour. The options are format,")
    assert feed("\\rows many") == "rows is one of a number, not many"


def test_scripts(feed: Feed, shell: Shell, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner file.sql", tmp_path / "outer.sql"
    inner.write_text("INSERT INTO t VALUES (3, 'c');\n\n-- a fault\nSELECT nothing\nFROM t;\nDELETE FROM t;\n")
    outer.write_text(f"\\pset format csv\n\\i '{inner}'\nSELECT 'not reached' AS x;")
    printed = feed(f"\\i {outer}")
    assert f"{inner}:4: [1008 PARSING] unknown column: nothing, at line 4, column 8\n  SELECT nothing" in printed
    assert "not reached" not in printed
    assert feed("SELECT COUNT(*) AS n FROM t;") == "n\n3"
    assert "No such file" in feed("\\i nothing.sql")
    outer.write_text(f"\\i {outer}")
    assert "looks like a circle" in feed(f".read {outer}")
    assert shell.depth == 0


def test_copy(feed: Feed, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    assert feed(f"\\copy t to {path}") == "2 rows copied"
    feed("CREATE TABLE u (k BIGINT, name VARCHAR, PRIMARY KEY (k));")
    assert feed(f"\\copy u from {path} (MODE replace);") == "2 rows copied"
    assert feed(f"\\copy (SELECT k FROM u WHERE name LIKE 'a%') TO '{tmp_path / 'k.parquet'}'") == "1 row copied"
    assert feed("SELECT COUNT(*) AS n FROM u;").splitlines()[2].strip() == "2"


def test_explain(feed: Feed) -> None:
    assert feed("\\explain") == "there is no statement yet"
    plan = feed("\\explain SELECT * FROM t WHERE k = 1")
    assert plan == feed("EXPLAIN SELECT * FROM t WHERE k = 1;")
    feed("SELECT * FROM t WHERE k = 1;")
    assert feed("\\explain") == plan
    assert feed("\\explain") == plan, "the statement stays the last one"
    assert feed("SELECT * FROM t WHERE k = 1 \\explain") == plan
    assert "time" in feed("\\explain analyze")


def test_watch(feed: Feed) -> None:
    assert feed("\\watch") == "there is no statement yet"
    printed = feed("INSERT INTO t SELECT MAX(k) + 1, 'w' FROM t \\watch 0.01 3")
    assert printed.count("1 row changed") == 3
    assert printed.count("(every 0.01 s)") == 3
    assert feed("SELECT COUNT(*) AS n FROM t;").splitlines()[2].strip() == "5"
    assert feed("\\watch 0.01 2").count("(1 row)") == 2
    assert feed("\\watch soon").startswith("\\watch takes seconds")


def test_the_editor(feed: Feed, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "an editor"
    editor.write_text("#!/bin/sh\nsed -i 's/1/2/' \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", f"'{editor}'")
    feed("SELECT name FROM t WHERE k = 1;")
    assert feed("\\e") == "SELECT name FROM t WHERE k = 2;\n name\n──────\n NULL\n(1 row)".replace("──────", "─────")
    editor.write_text("#!/bin/sh\nprintf 'SELECT 1,' > \"$1\"\n")
    assert feed("\\e") == ""
    assert shell.pending == "SELECT 1,"
    editor.write_text("#!/bin/sh\nexit 3\n")
    assert feed("\\e").endswith("ended with status 3")


def test_output_goes_to_a_file(feed: Feed, tmp_path: Path) -> None:
    path = tmp_path / "answers.txt"
    assert feed(f".output '{path}'") == ""
    assert feed("SELECT 1 AS one;") == ""
    assert "unknown column" in feed("SELECT nothing;"), "errors stay on the terminal"
    feed("\\o")
    assert feed("SELECT 2 AS two;").startswith(" two")
    assert path.read_text() == " one\n────\n   1\n(1 row)\n"
    assert "cannot be written" in feed(f"\\o {tmp_path / 'no' / 'folder'}")


def test_the_syntax_of_every_statement_is_known(feed: Feed) -> None:
    """Every statement that the parser knows has help, and every example runs."""
    refused = {"ALTER", "MERGE", "UPSERT", "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT"}
    known = {syntax.name.split()[0] for syntax in SYNTAX}
    assert {words[0] for words, _ in DEFINITIONS} - refused - {"DESC"} <= known
    for syntax in SYNTAX:
        assert syntax.name in feed("\\h")
        assert syntax.form in feed(f"\\h {syntax.name.lower()}")
    assert feed("\\h create").count("For example") == 3
    assert feed("\\h SELET") == 'SELET is not a statement. Did you mean "SELECT"?'


def test_the_examples_of_the_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with remuda.open(tmp_path / "shop") as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, PRIMARY KEY (id))")
        grid.sql("INSERT INTO orders VALUES (1, 'C1', 200)")
        for syntax in SYNTAX:
            grid.sql(syntax.example)
