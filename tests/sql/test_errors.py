"""Bad statements: each is refused with its code, SQLSTATE, message and exact span, and with nothing but a `SqlError`.

`pytest --rewrite tests/sql/test_errors.py` writes what is under each statement of `errors.txt` anew.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from remuda.catalog import DEFAULT_SCHEMA
from remuda.errors import ErrorCode, Position, SqlError
from remuda.presentation.source_text import with_parentheses
from remuda.sql import Explain, Query, bind, parse
from remuda.sql.parse.tokens import DIALECT
from tests.sql.catalogs import CATALOG

CASES_FILE = Path(__file__).with_name("errors.txt")


@dataclass(frozen=True, slots=True)
class BadStatement:
    """`lines` are those of the block: the statement, with what is said below the line that has the mistake."""

    text: str
    lines: tuple[str, ...]


def read_cases() -> list[BadStatement]:
    blocks = CASES_FILE.read_text(encoding="utf-8").split("\n\n")
    return [_read_case(block.rstrip("\n")) for block in blocks if not block.startswith("# ")]


def _read_case(block: str) -> BadStatement:
    lines = block.split("\n")
    return BadStatement("\n".join(line for line in lines if not line.lstrip().startswith("^")), tuple(lines))


def drawn(text: str, error: SqlError) -> list[str]:
    """Return the block of a statement with its error, as `errors.txt` has it."""
    lines = text.split("\n")
    position = error.position
    assert position is not None, f"no place: {error}"
    assert error.span is not None
    rest = len(lines[position.line - 1]) - position.column + 1
    span = with_parentheses(text, error.span)
    carets = "^" * max(1, min(span.end - span.start, rest))
    code = "" if error.code is ErrorCode.PARSING else f"[{error.code.name}] "
    hint = "" if error.suggestion is None else f" | {error.suggestion}"
    said = f"{' ' * (position.column - 1)}{carets} {error.sqlstate} {code}{error.message}{hint}"
    return [*lines[: position.line], said, *lines[position.line :]]


CASES = read_cases()


def refuse(text: str) -> SqlError | None:
    """What is wrong with a statement; None where it binds."""
    try:
        statement = parse(text)
        query = statement.query if isinstance(statement, Explain) else statement
        if isinstance(query, Query):
            bind(query, CATALOG, (DEFAULT_SCHEMA,))
    except SqlError as error:
        return error.with_text(text)
    return None


@pytest.mark.parametrize("case", CASES, ids=[case.text for case in CASES])
def test_bad_statement(case: BadStatement) -> None:
    error = refuse(case.text)
    assert error is not None
    assert "\n".join(drawn(case.text, error)) == "\n".join(case.lines)


def test_rewrite(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--rewrite"):
        pytest.skip("nothing to write")
    blocks = CASES_FILE.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    cases = iter(CASES)
    written = [block if block.startswith("# ") else "\n".join(_redrawn(next(cases))) for block in blocks]
    CASES_FILE.write_text("\n\n".join(written) + "\n", encoding="utf-8")


def _redrawn(case: BadStatement) -> list[str]:
    error = refuse(case.text)
    return list(case.lines) if error is None else drawn(case.text, error)


@pytest.mark.parametrize("text", ["", "  \n ", ";;"])
def test_nothing_to_do(text: str) -> None:
    error = refuse(text)
    assert error is not None
    assert error.message == "there is no statement"
    assert error.position == Position(1, 1)


def test_the_caret_stands_under_the_mistake() -> None:
    error = refuse("SELECT id,\n\tamont\nFROM orders")
    assert str(error) == (
        '[1008 PARSING] unknown column: amont, at line 2, column 2\n  \tamont\n  \t^^^^^\n  Did you mean "amount"?'
    )


DEEP = [
    "SELECT " + " + ".join(["1"] * 2_000),
    "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
    "SELECT " + "NOT " * 2_000 + "TRUE",
    "SELECT " + "UPPER(" * 1_000 + "'a'" + ")" * 1_000,
]


@pytest.mark.parametrize("text", DEEP, ids=["sum", "parentheses", "not", "functions"])
def test_what_is_nested_too_deeply_says_so(text: str) -> None:
    error = refuse(text)
    assert error is not None
    assert (error.message, error.position) == ("the statement is nested too deeply", Position(1, 1))


@pytest.mark.parametrize("connector", [" AND ", " OR "])
def test_a_long_chain_of_conditions_is_not_deep(connector: str) -> None:
    assert refuse("SELECT id FROM orders WHERE " + connector.join(f"id <> {number}" for number in range(2_000))) is None


STATEMENTS = """
SELECT id, amount * 2 AS twice FROM orders WHERE id = ? AND amount > 10.5 OR customer LIKE 'a%' ORDER BY amount LIMIT ?
SELECT id FROM orders ORDER BY amount DESC NULLS LAST, id NULLS FIRST LIMIT 10 OFFSET ?
SELECT DISTINCT status, COUNT(*) FROM orders AS o WHERE o.paid IS NOT TRUE GROUP BY status HAVING SUM(amount) > 1
SELECT id FROM orders WHERE created BETWEEN '2024-01-01' AND ? AND customer IS NULL
SELECT CASE WHEN paid THEN 'a' WHEN id = -5 THEN NULL ELSE UPPER(customer) || 'x' END FROM orders
SELECT CAST(id AS DECIMAL(10, 2)), COALESCE(customer, status), X'00FF', DATE '2024-01-01', id::INTEGER FROM orders
SELECT * FROM (SELECT id AS a, amount FROM orders WHERE quantity IN (1, 2, ?)) AS t WHERE a NOT IN (3, 4)
SELECT order_id FROM lines WHERE __key = (1, ?) AND price >= 1.50 AND (order_id, line) = (1, 2)
SELECT 7 % 3, -(-4) FROM orders WHERE NOT (paid AND id <> 3) OR TRUE
INSERT INTO orders (id, customer, amount) VALUES (1, 'x', 2.5), (?, NULL, -1e3)
SINK INTO lines VALUES (1, 2, 3.5)
INSERT INTO orders (id, amount) SELECT order_id, 1.5 FROM lines WHERE line = 1
UPDATE orders SET amount = amount + 1, status = 'DONE' WHERE id = ? AND NOT paid
DELETE FROM orders WHERE amount < ? AND customer IS NULL
CREATE TABLE t (a BIGINT NOT NULL, b DECIMAL(10, 2), c TIMESTAMP WITH TIME ZONE, PRIMARY KEY (a, b)) PARTITION BY (a)
CREATE MAPPING m (__key BIGINT, v VARCHAR) TYPE IMap OPTIONS ('keyFormat' = 'bigint')
EXPLAIN LOGICAL SELECT id FROM orders WHERE id = :a OR id = :b
""".strip().split("\n")
WORDS = """
( ) , ; ' " * . = <> - + / % ? : :x [ ] { } $1 @ # ! ~ ^ & | || -> => := /* -- \\ 1e 0x 1.5 'a' X'0'
NULL NOT AND OR IN IS LIKE BETWEEN CASE WHEN THEN ELSE END AS SELECT FROM WHERE GROUP ORDER BY HAVING
LIMIT OFFSET JOIN ON UNION ALL WITH VALUES SET INTO DISTINCT CAST DATE INTERVAL EXISTS OVER __key ROW
"""
INTRUDERS = WORDS.split()


@pytest.mark.parametrize("seed", range(20))
def test_a_broken_statement_is_refused_with_a_place_or_binds(seed: int) -> None:
    """Statements with tokens removed, replaced, swapped and added: nothing but a `SqlError` with a place comes out."""
    choice = random.Random(seed)
    for _ in range(50):
        text = _broken(choice, choice.choice(STATEMENTS))
        error = refuse(text)
        assert error is None or (error.span is not None and error.span.start <= len(text)), text


def _broken(choice: random.Random, text: str) -> str:
    words = [text[token.start : token.end + 1] for token in DIALECT.tokenize(text)]
    for _ in range(choice.choice([1, 1, 2, 3])):
        place = choice.randrange(len(words))
        match choice.randrange(5):
            case 0 if len(words) > 1:
                words.pop(place)
            case 1:
                words[place] = choice.choice(INTRUDERS)
            case 2:
                other = choice.randrange(len(words))
                words[place], words[other] = words[other], words[place]
            case 3 if place:
                del words[place:]
            case _:
                words.insert(place, choice.choice(INTRUDERS))
    return " ".join(words)


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_statements_that_are_broken_are_good(text: str) -> None:
    assert refuse(text) is None
