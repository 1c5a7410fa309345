"""Every aggregate function, plain and DISTINCT, with NULLs, over batches cut in every way: DuckDB is the judge."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from remuda.errors import SqlError
from remuda.exec import build_operator
from remuda.exec.aggregate.aggregate import HashAggregateExec
from remuda.expr import Column
from remuda.plan.aggregates import AGGREGATES, AggregateCall
from remuda.plan.physical import HashAggregate, Phase
from remuda.plan.traits import SortKey, Traits
from remuda.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, decimal
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node

KEY, OTHER = Column(1, "k", VARCHAR), Column(2, "o", INTEGER)
NUMBER, AMOUNT, EXACT = Column(3, "n", INTEGER), Column(4, "a", DOUBLE), Column(5, "e", decimal(12, 2))
TEXT, FLAG, DAY = Column(6, "t", VARCHAR), Column(7, "f", BOOLEAN), Column(8, "d", DATE)
WIDE = Column(9, "w", decimal(30, 2))
UNIQUE = Column(10, "u", BIGINT)
COLUMNS = (KEY, OTHER, NUMBER, AMOUNT, EXACT, TEXT, FLAG, DAY, WIDE, UNIQUE)


def make_rows(count: int) -> Rows:
    chooser = random.Random(count)

    def perhaps(value: Any) -> Any:
        return None if chooser.random() < 0.25 else value

    return [
        (
            perhaps(chooser.choice("abc")),
            perhaps(chooser.randrange(2)),
            perhaps(chooser.randrange(-5, 6)),
            perhaps(chooser.randrange(-20, 20) / 4),
            perhaps(Decimal(chooser.randrange(-99, 99)) / 100),
            perhaps(chooser.choice(["x", "y", "zz", ""])),
            perhaps(chooser.random() < 0.5),
            perhaps(chooser.randrange(-3, 3)),
            perhaps(Decimal(chooser.randrange(-9, 9)) * 10**20),
            number,
        )
        for number in range(count)
    ]


ROWS = make_rows(80)

PLAIN: list[tuple[str, AggregateCall]] = []


def ask(sql: str, function: str, *arguments: Column, distinct: bool = False, **rest: Any) -> None:
    result = AGGREGATES[function].result(arguments[0].type if arguments else None)
    assert result is not None
    column = Column(100 + len(PLAIN), function, result)
    first = arguments[0] if arguments else None
    second = arguments[1] if len(arguments) > 1 else None
    PLAIN.append((sql, AggregateCall(column, function, first, distinct, second, **rest)))


ask("count(*)", "count")
for name in ("n", "a", "e", "t", "f", "d", "w"):
    argument = next(column for column in COLUMNS if column.name == name)
    for quantifier in ("", "DISTINCT "):
        ask(f"count({quantifier}{name})", "count", argument, distinct=bool(quantifier))
        ask(f"min({quantifier}{name})", "min", argument, distinct=bool(quantifier))
        ask(f"max({quantifier}{name})", "max", argument, distinct=bool(quantifier))
for name in ("n", "a", "e", "w"):
    argument = next(column for column in COLUMNS if column.name == name)
    for quantifier in ("", "DISTINCT "):
        ask(f"sum({quantifier}{name})", "sum", argument, distinct=bool(quantifier))
        ask(f"var_pop({quantifier}{name})", "var_pop", argument, distinct=bool(quantifier))
    for function in ("stddev_samp", "stddev_pop", "var_samp"):
        ask(f"{function}({name})", function, argument)
    ask(f"quantile_cont({name}::DOUBLE, 0.3)", "quantile_cont", argument, parameters=(0.3,))
ask("avg(n)", "avg", NUMBER)
ask("avg(DISTINCT a)", "avg", AMOUNT, distinct=True)
ask("quantile_disc(n, 0.5)", "quantile_disc", NUMBER, parameters=(0.5,))
ask("quantile_disc(t, 0.25)", "quantile_disc", TEXT, parameters=(0.25,))
ask("product(a)", "product", AMOUNT)
ask("product(DISTINCT a)", "product", AMOUNT, distinct=True)
ask("bit_and(n)", "bit_and", NUMBER)
ask("bit_or(n)", "bit_or", NUMBER)
ask("bit_xor(n)", "bit_xor", NUMBER)
ask("bit_xor(DISTINCT n)", "bit_xor", NUMBER, distinct=True)
ask("bool_and(f)", "bool_and", FLAG)
ask("bool_or(f)", "bool_or", FLAG)
ask("arg_min(t, u)", "arg_min", TEXT, UNIQUE)
ask("arg_max(w, u)", "arg_max", WIDE, UNIQUE)
ask("corr(a, n)", "corr", AMOUNT, NUMBER)
ask("covar_pop(a, n)", "covar_pop", AMOUNT, NUMBER)
ask("covar_samp(a, n)", "covar_samp", AMOUNT, NUMBER)
BY_UNIQUE = {"order": (SortKey(UNIQUE.id, descending=True),), "parameters": ("|",)}
ask("string_agg(t, '|' ORDER BY u DESC)", "string_agg", TEXT, **BY_UNIQUE)
BY_TEXT = {"order": (SortKey(TEXT.id),), "parameters": (", ",)}
ask("string_agg(DISTINCT t, ', ' ORDER BY t)", "string_agg", TEXT, distinct=True, **BY_TEXT)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (k VARCHAR, o INTEGER, n INTEGER, a DOUBLE, e DECIMAL(12, 2), t VARCHAR, f BOOLEAN, "
        "d INTEGER, w DECIMAL(30, 2), u BIGINT)"
    )
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", ROWS)
    return connection


def node_of(keys: tuple[Column, ...], calls: list[AggregateCall]) -> HashAggregate:
    return HashAggregate(source_node(COLUMNS), keys, tuple(calls), tuple(() for _ in calls), Phase.COMPLETE, Traits())


def run(node: HashAggregate, rows: Rows, shape: str, form: str) -> Rows:
    source = ScriptedExec(COLUMNS, script(COLUMNS, rows, SHAPES[shape], form))
    return drain(HashAggregateExec(node, source))


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else float(f"{value:.9g}") + 0.0
    return value


@pytest.mark.parametrize(
    ("shape", "form"), [("one batch", "dictionary"), ("four, exactly full", "arrow"), ("waits", "tuples")]
)
@pytest.mark.parametrize("keys", [(), (KEY,), (KEY, OTHER), (FLAG, EXACT)], ids=["none", "text", "two", "others"])
def test_every_function_agrees_with_duckdb(
    oracle: duckdb.DuckDBPyConnection, keys: tuple[Column, ...], shape: str, form: str
) -> None:
    ours = run(node_of(keys, [call for _, call in PLAIN]), ROWS, shape, form)
    names = [key.name for key in keys]
    selected = ", ".join([*names, *(sql for sql, _ in PLAIN)])
    theirs = oracle.execute(f"SELECT {selected} FROM t {'GROUP BY ALL' if names else ''}").fetchall()
    assert len(ours) == len(theirs)
    by_key = {row[: len(keys)]: row[len(keys) :] for row in ours}
    for row in theirs:
        mine = by_key[row[: len(keys)]]
        for (sql, _), value, given in zip(PLAIN, mine, row[len(keys) :], strict=True):
            # Where nothing varies there is no correlation, as PostgreSQL says.
            expected = None if sql.startswith("corr") and rounded(given) == "NaN" else given
            assert rounded(value) == rounded(expected), f"{sql} of {row[: len(keys)]}"


@pytest.mark.parametrize("form", FORMS)
def test_any_value_and_mode(form: str) -> None:
    any_value = AggregateCall(Column(100, "c", VARCHAR), "any_value", TEXT)
    mode = AggregateCall(Column(101, "c", INTEGER), "mode", NUMBER)
    rows = run(node_of((KEY,), [any_value, mode]), ROWS, "two by two", form)
    assert len(rows) == len({row[0] for row in ROWS})
    for key, text, number in rows:
        assert text in {row[5] for row in ROWS if row[0] == key and row[5] is not None}
        numbers = [row[2] for row in ROWS if row[0] == key and row[2] is not None]
        most = max(numbers.count(value) for value in numbers)
        assert number == min(value for value in numbers if numbers.count(value) == most)


@pytest.mark.parametrize("keys", [(), (KEY,)], ids=["whole", "groups"])
def test_functions_of_nothing(keys: tuple[Column, ...]) -> None:
    calls = [call for _, call in PLAIN]
    rows = drain(build_operator(node_of(keys, calls)))
    if keys:
        assert rows == []
    else:
        assert rows == [tuple(0 if call.function == "count" else None for call in calls)]
    nulls: Rows = [("g", *(None,) * (len(COLUMNS) - 1))]
    (row,) = run(node_of(keys, calls), nulls, "one batch", "arrow")
    expected = [0 if call.function == "count" else None for call in calls]
    assert list(row[len(keys) :]) == [1, *expected[1:]]


def test_sums_at_the_edges_of_their_limbs() -> None:
    """Values chosen so that every limb carries, in both directions."""
    wide = Column(9, "w", decimal(38, 0))
    columns = (KEY, wide)
    call = AggregateCall(Column(100, "s", decimal(38, 0)), "sum", wide)
    node = HashAggregate(source_node(columns), (KEY,), (call,), ((),), Phase.COMPLETE, Traits())
    edges = [2**31, 2**32, 2**63, 2**64, 2**96, 10**37, 1]
    values = [sign * (edge + step) for edge in edges for step in (-1, 0, 1) for sign in (1, 1, -1)]
    rows: Rows = [("ab"[number % 2], Decimal(value)) for number, value in enumerate(values)]
    for size in (1, 3, 1_000):
        source = ScriptedExec(columns, script(columns, rows, (size,), "arrow"))
        found = dict(drain(HashAggregateExec(node, source)))
        assert {key: int(total) for key, total in found.items()} == {
            key: sum(value for number, value in enumerate(values) if "ab"[number % 2] == key) for key in "ab"
        }
    for sign in (1, -1):
        most = Decimal(sign * (10**38 - 1))
        source = ScriptedExec(columns, script(columns, [("a", most)], form="arrow"))
        assert drain(HashAggregateExec(node, source)) == [("a", most)]
        source = ScriptedExec(columns, script(columns, [("a", most), ("a", Decimal(sign))], form="arrow"))
        with pytest.raises(SqlError, match="overflows"):
            drain(HashAggregateExec(node, source))
