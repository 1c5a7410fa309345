"""What the shell prints, without a grid."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from remuda.cli.arguments import main, parse
from remuda.cli.output import FORMS, as_csv, as_json, as_markdown, render
from remuda.cli.statement_text import split, tokens
from remuda.presentation.text_table import Layout, as_records, as_table, display_width


def test_a_table_without_rows() -> None:
    assert as_table(["a", "b"], []) == " a  b\n─  ─\n(0 rows)".replace("─  ─", "──  ─")


def test_wide_characters_and_long_values_keep_the_columns_straight() -> None:
    lines = as_table(["a", "b"], [("馬", 1), ("x" * 100, 22)]).splitlines()
    assert len(lines[3]) == len(lines[1])
    assert lines[3].endswith("…  22")
    assert lines[2].startswith(" 馬 ")
    assert lines[2].endswith("  1")


def test_csv_tells_null_from_empty_text() -> None:
    assert as_csv(["a", "b"], [(None, ""), (True, 'say "x"')]) == 'a,b\n,""\ntrue,"say ""x"""'


def test_json_is_json_and_loses_no_digit() -> None:
    big = Decimal(12345678901234567890123456789)
    rows = json.loads(as_json(["n", "d", "x"], [(big, Decimal("1.25"), float("nan"))]))
    assert rows == [{"n": int(big), "d": 1.25, "x": "nan"}]
    assert json.loads(as_json(["n"], [])) == []


def test_numbers_are_at_the_right_in_every_form_for_people() -> None:
    rows = [(1, "a"), (None, "b"), (Decimal("-2.50"), None)]
    assert as_table(["n", "t"], rows).splitlines()[2:5] == ["     1  a", "  NULL  b", " -2.50  NULL"]
    assert as_markdown(["n", "t"], rows).splitlines()[1] == "| ---: | --- |"
    assert as_records(["n", "t"], [], None, Layout()) == "(0 rows)"


def test_a_table_is_fitted_into_its_width() -> None:
    rows = [(1, "x" * 70, "short"), (2, "馬" * 30, "b" * 40)]
    for width in range(45, 140):
        lines = as_table(["id", "first", "second"], rows, None, Layout(width=width, expanded="auto")).splitlines()
        assert max(map(display_width, lines)) <= width
        assert lines[0].split() == ["id", "first", "second"]
    narrow = as_table(["id", "first", "second"], rows, None, Layout(width=38, expanded="auto")).splitlines()
    assert narrow[:2] == ["── row 1 ──", "id      1"]
    assert "馬" * 30 in "\n".join(narrow), "nothing is cut there"
    off = as_table(["id", "first", "second"], rows, None, Layout(width=38, expanded="off")).splitlines()
    assert off[0].split() == ["id", "first", "second"], "without auto it stays a table"


def test_one_column_has_all_the_room() -> None:
    assert "x" * 300 in as_table(["plan"], [("x" * 300,)], None, Layout(width=80, expanded="auto"))


def test_null_is_told_from_text_by_its_colour() -> None:
    for form in ("table", "line"):
        text = render(["a"], [(None,), ("NULL",)], form, Layout(colour=True))
        assert text.count("\033[2mNULL\033[0m") == 1
    assert "\033" not in "".join(render(["a"], [(None,)], form, Layout()) for form in FORMS)


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], None),
        (";;", [], None),
        ("-- one\n/* two\n */ ;", [], None),
        ("SELECT 1; SELECT 2", ["SELECT 1"], "SELECT 2"),
        ("SELECT 'it''s;' ;", ["SELECT 'it''s;'"], None),
        ("SELECT E'it\\';s' ;", ["SELECT E'it\\';s'"], None),
        ('SELECT "a;b" FROM t;', ['SELECT "a;b" FROM t'], None),
        ("SELECT 1 /* ; */ + 1; x", ["SELECT 1 /* ; */ + 1"], "x"),
        ("SELECT 1 /* a /* ; */ b; */ + 1;", ["SELECT 1 /* a /* ; */ b; */ + 1"], None),
        ("SELECT 1 -- ;\n;", ["SELECT 1 -- ;"], None),
        ("SELECT 1 /* open ;", [], "SELECT 1 /* open ;"),
        ("SELECT $$a;b$$; SELECT $q$c;$$;$q$;", ["SELECT $$a;b$$", "SELECT $q$c;$$;$q$"], None),
        ("SELECT $q$c;$$;", [], "SELECT $q$c;$$;"),
        ("SELECT 'open; ", [], "SELECT 'open;"),
        ("'--';", ["'--'"], None),
        ("SELECT .5; SELECT t.a FROM t", ["SELECT .5"], "SELECT t.a FROM t"),
    ],
)
def test_statements_end_at_semicolons_outside_quotes(text: str, statements: list[str], rest: str | None) -> None:
    pieces, waiting = split(text)
    assert [piece.text for piece in pieces] == statements
    assert all(text[piece.start :].startswith(piece.text) for piece in pieces)
    assert (None if waiting is None else waiting.text) == rest
    assert "".join(token.text for token in tokens(text)) == text


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("\\d t;\nSELECT 1;", [("\\d t", ""), (None, "SELECT 1")]),
        (
            "SELECT 1; \\timing on\n.tables\n.mode csv",
            [(None, "SELECT 1"), *((x, "") for x in ("\\timing on", ".tables", ".mode csv"))],
        ),
        ("SELECT '\\d' \\watch 2", [("\\watch 2", "SELECT '\\d'")]),
        ("-- \\q\n\\x", [("\\x", "")]),
    ],
)
def test_commands_stand_between_statements(text: str, commands: list[tuple[str | None, str]]) -> None:
    pieces, rest = split(text)
    assert [(piece.command, piece.text) for piece in pieces] == commands
    assert rest is None


def test_the_folder_may_stand_before_and_after_the_command() -> None:
    for arguments in (["-d", "x", "sql", "-c", "SELECT 1"], ["sql", "-d", "x", "-c", "SELECT 1"]):
        options = parse(arguments)
        assert (options.command, options.folder, options.inputs) == ("sql", "x", [("statement", "SELECT 1")])
    assert parse(["sql", "-c", "SELECT 1"]).folder is None


def test_the_first_word_is_a_command_or_a_path() -> None:
    options = parse(["shop.remuda", "-c", "SELECT 1", "-f", "a.sql", "-c", "SELECT 2"])
    assert (options.command, options.paths) == (None, ["shop.remuda"])
    assert options.inputs == [("statement", "SELECT 1"), ("file", "a.sql"), ("statement", "SELECT 2")]
    assert parse(["-c", "SELECT 1", "shop.remuda"]).paths == ["shop.remuda"]
    assert parse(["sql", "-c", "SELECT 1", "shop.remuda", "--read-only"]).paths == ["shop.remuda"]
    assert parse(["./demo"]).paths == ["./demo"]
    assert parse(["demo"]).command == "demo"
    assert parse([]).paths == []
    assert parse(["check", "x"]).path == "x"


def test_the_version_is_told_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("remuda 0.")
