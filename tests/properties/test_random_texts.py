"""Random texts: literals keep their places, operators their precedence, mistakes are refused and never read over."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.harness import random_expressions, random_literals
from tests.harness.databases import DuckDatabase
from tests.harness.generated import rows_of
from tests.harness.mutations import TOKEN, files, is_read_over, is_syntax_error, mutated, records
from tests.harness.random_expressions import Expressions
from tests.harness.random_literals import CONTENT, EDGES, LiteralStatements
from tests.harness.slt import Load, Query

if TYPE_CHECKING:
    from pathlib import Path


def comparable(rows: Any) -> list[tuple[Any, ...]]:
    """Numbers by value, whatever their type, in an order of their own."""
    return sorted(
        (tuple(Decimal(value) if type(value) is int else value for value in map(_plain, row)) for row in rows), key=repr
    )


def _plain(value: Any) -> Any:
    return Decimal(int(value)) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def check_precedence(seed: int, expressions: int) -> None:
    """An expression with few parentheses means what it means with all of them, and what DuckDB says."""
    oracle = DuckDatabase()
    compared = 0
    with remuda.open() as grid:
        for statement in random_expressions.SETUP:
            oracle.execute(statement, [])
            grid.sql(statement)
        generator = Expressions(Random(seed))
        for _ in range(expressions):
            tree = generator.of_any_kind(generator.random.randint(1, 4))
            short, long = (f"SELECT id, {text} FROM e" for text in (tree.least(), tree.full()))
            try:
                expected = comparable(oracle.query(long, []))
            except duckdb.Error:  # it does not shift negative numbers
                continue
            assert comparable(grid.sql(long)) == expected, long
            assert comparable(grid.sql(short)) == expected, short
            compared += 1
    oracle.close()
    assert compared > expressions // 2


@pytest.mark.parametrize("seed", range(3))
def test_operators_bind_as_in_postgresql(seed: int) -> None:
    check_precedence(seed, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_expressions_bind_as_in_postgresql(seed: int) -> None:
    check_precedence(seed, 300)


def check_literals(seed: int, statements: int) -> None:
    oracle = DuckDatabase()
    compared = 0
    with remuda.open(members=1 + seed % 3) as grid:
        for statement in random_literals.SETUP:
            oracle.execute(statement, [])
            grid.sql(statement)
        generator = LiteralStatements(Random(seed))
        for number in range(statements):
            changes = number % 4 == 3
            text = generator.change() if changes else generator.query()
            question = CONTENT if changes else text
            try:
                expected = oracle.execute(text, []) if changes else None
                rows = comparable(oracle.query(question, []))
            except duckdb.Error:  # some correlated sub-queries are not implemented there
                continue
            if changes:
                assert grid.sql(text).update_count == expected, text
            assert comparable(grid.sql(question)) == rows, text
            compared += 1
    oracle.close()
    assert compared > statements // 2


@pytest.mark.parametrize("seed", range(3))
def test_literals_keep_their_places(seed: int) -> None:
    check_literals(seed, 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_literals_keep_their_places(seed: int) -> None:
    check_literals(seed, 200)


def check_arithmetic(seed: int, expressions: int) -> None:
    oracle = DuckDatabase()
    compared = 0
    with remuda.open() as grid:
        generator = LiteralStatements(Random(seed))
        for _ in range(expressions):
            text = f"SELECT {generator.arithmetic()}"
            try:
                expected = comparable(oracle.query(text, []))
            except duckdb.Error:  # the result has the type of the argument there
                continue
            assert comparable(grid.sql(text)) == expected, text
            compared += 1
    oracle.close()
    assert compared > expressions // 2


def test_whole_numbers_stay_exact() -> None:
    check_arithmetic(1, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_whole_numbers_stay_exact(seed: int) -> None:
    check_arithmetic(seed, 500)


@pytest.mark.parametrize("value", EDGES)
@pytest.mark.parametrize("function", ["floor", "ceil", "round", "trunc"])
def test_a_whole_number_is_its_own_rounding(function: str, value: int) -> None:
    """DuckDB's floor and ceil are DOUBLEs; here a row, a column and a constant are exact."""
    with remuda.open() as grid:
        row = grid.sql(f"SELECT {function}(CAST({value} AS BIGINT)), {function}(CAST(? AS BIGINT))", value).fetchone()
        assert row is not None
        assert [int(each) for each in row] == [value, value]
        column = grid.sql(f"SELECT {function}(x) FROM (VALUES (CAST({value} AS BIGINT)), (NULL), (7)) AS v (x)")
        assert {None if each is None else int(each) for (each,) in column} == {None, value, 7}
        assert all(not isinstance(each, float) or math.isfinite(each) for each in row)


READS = ("SELECT", "WITH", "VALUES", "FROM")


def check_mutations(file: Path, seed: int, each: int) -> list[str]:
    """A mistake is answered or refused, and never a foreign exception. Gives what was answered and is no SQL."""
    read_over: list[str] = []
    random = Random(f"{seed} {file.stem}")
    known = list(records(file))
    words = sorted({token for record in known if not isinstance(record, Load) for token in TOKEN.findall(record.sql)})
    with remuda.open() as grid:
        grid.sql("SET timeout = 5")
        for record in known:
            if isinstance(record, Load):
                grid.load(record.map, rows_of(record.query))
                continue
            for _ in range(each):
                text = mutated(random, record.sql, words)
                is_answered = len(text) <= 3_000 and _is_answered(grid, text)
                if is_answered and is_read_over(text) and not is_syntax_error(record.sql):
                    read_over.append(text)
            if isinstance(record, Query):
                grid.sql(record.sql).fetchall()
            else:
                grid.sql(record.sql)
    return read_over


def _is_answered(grid: remuda.Grid, text: str) -> bool:
    reads = text.lstrip("( ").upper().startswith(READS) and not any(
        verb in text.upper() for verb in ("INSERT", "UPDATE", "DELETE")
    )
    try:
        grid.sql(text if reads else f"EXPLAIN {text}").fetchall()
    except SqlError as error:
        refusal = error
    else:
        return True
    # A statement can not be at fault for what has no other code, or for a fault of the engine.
    assert refusal.code is not ErrorCode.GENERIC, text
    assert refusal.sqlstate[:2] not in {"XX", "58"}, text
    return False


@pytest.mark.parametrize("file", files()[::4], ids=lambda file: file.stem)
def test_a_mistake_is_answered_or_refused(file: Path) -> None:
    assert not check_mutations(file, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 106))
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_many_mistakes_are_answered_or_refused(file: Path, seed: int) -> None:
    assert not check_mutations(file, seed, 4)
