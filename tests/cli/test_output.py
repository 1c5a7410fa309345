"""What the shell prints, without a grid."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from remuda.cli.arguments import main, parser
from remuda.cli.output import as_csv, as_json, as_table
from remuda.cli.script import is_blank, split


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


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (";;", [], ""),
        ("SELECT 1; SELECT 2", ["SELECT 1"], "SELECT 2"),
        ("SELECT 'it''s;' ;", ["SELECT 'it''s;'"], ""),
        ('SELECT "a;b" FROM t;', ['SELECT "a;b" FROM t'], ""),
        ("SELECT 1 /* ; */ + 1; x", ["SELECT 1 /* ; */ + 1"], "x"),
        ("SELECT 1 -- ;\n;", ["SELECT 1 -- ;"], ""),
        ("SELECT 1 /* open ;", [], "SELECT 1 /* open ;"),
    ],
)
def test_statements_end_at_semicolons_outside_quotes(text: str, statements: list[str], rest: str) -> None:
    assert split(text) == (statements, rest)


def test_comments_are_blank() -> None:
    assert is_blank("-- one\n/* two\n */ ")
    assert not is_blank("'--'")


def test_the_folder_may_stand_before_and_after_the_command() -> None:
    assert parser().parse_args(["-d", "x", "sql", "-c", "SELECT 1"]).folder == "x"
    assert parser().parse_args(["sql", "-d", "x", "-c", "SELECT 1"]).folder == "x"
    assert parser().parse_args(["sql", "-c", "SELECT 1"]).folder is None


def test_the_version_is_told_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("remuda 0.")
