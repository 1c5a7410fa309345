"""What the Tab key offers, and how text looks while it is typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import remuda
from remuda.cli.shell.completion import complete
from remuda.cli.shell.highlighting import highlight
from remuda.cli.shell.names import KnownNames
from remuda.cli.statement_text import quoted
from remuda.grid import Session


@pytest.fixture
def session() -> Iterator[Session]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, amount DOUBLE, PRIMARY KEY (id))")
        grid.sql('CREATE TABLE Persons (id BIGINT, address VARCHAR, "Last name" VARCHAR, PRIMARY KEY (id))')
        grid.sql("CREATE VIEW originals AS SELECT id AS copied FROM orders")
        yield grid.session()


def offered(session: Session, text: str) -> list[str]:
    """Return what is offered at the `|` in a text."""
    cursor = text.index("|")
    found = complete(text.replace("|", "", 1), cursor, KnownNames(session).current)
    assert all(text[cursor - each.length : cursor].casefold() in each.text.casefold() for each in found)
    return [each.text for each in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sel|", ["select"]),
        ("SEL|", ["SELECT"]),
        ("SELECT 1; del|", ["delete"]),
        ("SELECT * FROM ord|", ["orders"]),
        ("SELECT * FROM |", ["orders", "originals", "Persons", "generate_series(", "range("]),
        ("SELECT * FROM orders JOIN pers|", ["Persons"]),
        ("SELECT * FROM orders o, o|", ["orders", "originals"]),
        ("INSERT INTO orig|", ["originals"]),
        ("SELECT am| FROM orders", ["amount"]),
        ("SELECT ac| FROM originals", ["acos("]),
        ("SELECT | FROM orders", ["id", "amount", "orders"]),
        ('SELECT | FROM "Persons" p', ["id", "address", '"Last name"', "p"]),
        ("SELECT * FROM orders WHERE orders.|", ["id", "amount"]),
        ("SELECT * FROM orders o WHERE o.a|", ["amount"]),
        ("SELECT o.| FROM orders AS o", ["id", "amount"]),
        ('SELECT p.la| FROM "Persons" p', ['"Last name"']),
        ("SELECT nothing.|", []),
        ("WITH best AS (SELECT 1) SELECT * FROM be|", ["best"]),
        ("UPDATE orders SET am|", ["amount"]),
        ("SELECT EXTRACT(YEAR FROM am|", ["amount"]),
        ("SELECT string_ag|", ["string_agg("]),
        ("SELECT STRING_AG|", ["STRING_AGG("]),
        ("SELECT 'am|", []),
        ("SELECT 1 -- am|", []),
        ("SELECT 12|", []),
        ("SET |", ["engine = ", "memory_limit = ", "partition_pruning = ", "spill_folder = ", "timeout = "]),
        ("SET eng|", ["engine = "]),
        ("SET engine = |", ["auto", "local", "spark"]),
        ("SET partition_pruning = o|", ["on", "off"]),
        ("SHOW TA|", ["TABLES"]),
        ("information_schema.x|", []),
        ("\\t|", ["\\timing"]),
        (".t|", [".tables", ".timer"]),
        ("SELECT 1; \\t|", ["\\timing"]),
        ("\\d or|", ["orders", "originals"]),
        ("\\d+ |", ["Persons", "orders", "originals"]),
        ("\\x |", ["on", "off", "auto"]),
        ("\\timing o|", ["on", "off"]),
        ("\\pset f|", ["format"]),
        ("\\pset format m|", ["markdown"]),
        (".mode c|", ["csv"]),
        ("\\h create |", ["CREATE TABLE", "CREATE INDEX", "CREATE VIEW"]),
        ("\\copy ord|", ["orders"]),
    ],
)
def test_what_completes_a_word(session: Session, text: str, found: list[str]) -> None:
    names = offered(session, text)
    assert sorted(names) == sorted(found)


def test_columns_of_the_statement_come_before_keywords(session: Session) -> None:
    names = offered(session, "SELECT a| FROM orders")
    assert names[:2] == ["amount", "abs("]
    assert "and" not in names
    assert "address" not in names


def test_keywords_come_first_behind_a_value(session: Session) -> None:
    for text in ("SELECT amount a|", "SELECT * FROM orders WHERE (id = 1) a|"):
        assert offered(session, text)[:3] == ["and", "as", "all"]
    assert offered(session, "SELECT * f|")[:2] == ["from", "false"]


def test_columns_of_all_tables_are_offered_before_there_is_a_from(session: Session) -> None:
    names = offered(session, "SELECT a|")
    assert {"amount", "address", "avg(", "all"} <= set(names)


def test_names_are_asked_for_again_after_a_statement(session: Session) -> None:
    names = KnownNames(session)
    assert "orders" in names.current.tables
    session.sql("DROP TABLE Persons")
    session.sql("CREATE TABLE fresh (a BIGINT)")
    assert "fresh" not in names.current.tables
    names.forget()
    assert "fresh" in names.current.tables
    assert "Persons" not in names.current.tables


@pytest.mark.parametrize("text", ["COPY orders FROM '{}/da|", "\\i {}/da|", "\\o {}/da|", "\\copy orders from {}/da|"])
def test_paths(session: Session, tmp_path: Path, text: str) -> None:
    (tmp_path / "data.csv").touch()
    (tmp_path / "days").mkdir()
    (tmp_path / ".hidden").touch()
    assert offered(session, text.format(tmp_path)) == ["data.csv", "days/"]
    assert offered(session, f"COPY orders TO '{tmp_path}/none/|") == []


def test_highlighting(session: Session) -> None:
    names = KnownNames(session).current
    lines = highlight("SELECT abs(amount), 'it''s\n;' -- end\nFROM orders WHERE left > 1.5", names)
    styles = [{text: style for style, text in line if style} for line in lines]
    assert styles == [
        {"SELECT": "keyword", "abs": "function", "'it''s": "string"},
        {";'": "string", "-- end": "comment"},
        {"FROM": "keyword", "WHERE": "keyword", "left": "keyword", "1.5": "number"},
    ]
    assert highlight("SELECT 'open\nstill", names)[1] == [("string", "still")]
    assert highlight("\\d t", names) == [[("command", "\\d t")]]
    assert highlight(".mode csv", names) == [[("command", ".mode csv")]]
    for text in ("", "\n\n", "SELECT\n\n1;\n"):
        assert len(highlight(text, names)) == text.count("\n") + 1


def test_quoted_names_are_names_everywhere() -> None:
    """Every keyword can be the name of a table and of a column, as completion and `.schema` write it."""
    with remuda.open() as grid:
        for row in grid.sql("SHOW KEYWORDS").fetchall():
            name = quoted(row.word.lower())
            for statement in (
                f"CREATE TABLE {name} (other BIGINT, {name} BIGINT)",
                f"INSERT INTO {name} ({name}, other) VALUES (1, 2)",
                f"SELECT {name} FROM {name}",
                f"SELECT other, {name} + 1 AS s FROM {name} t WHERE {name} > 0 AND t.{name} < 9 ORDER BY {name}",
                f"SELECT {name}, COUNT(*) FROM {name} GROUP BY {name}",
                f"UPDATE {name} SET {name} = 2",
                f"DROP TABLE {name}",
            ):
                assert grid.sql(statement).fetchall() is not None, statement
