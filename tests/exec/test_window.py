"""Window functions over every kind of frame, against DuckDB on the same rows; and what DuckDB cannot tell."""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import duckdb
import pytest

from remuda.errors import SqlError
from remuda.exec import ExpressionCache, build_operator
from remuda.exec.window.window import WindowExec
from remuda.expr import Column, Expression, Literal
from remuda.plan.physical import Window
from remuda.plan.traits import Collation, SortKey, Traits
from remuda.plan.windows import DEFAULT_FRAME, Frame, FrameEnd, FrameExclusion, FrameUnit, WindowCall
from remuda.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, INTERVAL_TIME, VARCHAR, SqlType, decimal
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node

ID = Column(1, "id", BIGINT)
PART = Column(2, "part", VARCHAR)
TIED = Column(3, "tied", INTEGER)
NUMBER = Column(4, "number", INTEGER)
AMOUNT = Column(5, "amount", DOUBLE)
EXACT = Column(6, "exact", decimal(12, 2))
TEXT = Column(7, "text", VARCHAR)
FLAG = Column(8, "flag", BOOLEAN)
COLUMNS = (ID, PART, TIED, NUMBER, AMOUNT, EXACT, TEXT, FLAG)
TABLE = """
    CREATE TABLE t (id BIGINT, part VARCHAR, tied INTEGER, "number" INTEGER, amount DOUBLE, exact DECIMAL(12, 2),
                    "text" VARCHAR, flag BOOLEAN)
"""
RESULT = 100


def make_rows(count: int, seed: int) -> Rows:
    chooser = random.Random(seed)

    def perhaps(value: Any) -> Any:
        return None if chooser.random() < 0.2 else value

    return [
        (
            number,
            perhaps(chooser.choice("xyz")),
            perhaps(chooser.randrange(6)),
            perhaps(chooser.randrange(-9, 9)),
            perhaps(chooser.randrange(-400, 400) / 4),
            perhaps(Decimal(chooser.randrange(-9999, 9999)) / 100),
            perhaps(chooser.choice(["a", "b", "ab", ""])),
            perhaps(chooser.random() < 0.5),
        )
        for number in chooser.sample(range(1000), count)
    ]


ROWS = make_rows(60, 1)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(TABLE)
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ROWS)
    return connection


@dataclass(frozen=True)
class Asked:
    """A call, and the same call in SQL up to OVER."""

    sql: str
    function: str
    result: SqlType
    arguments: tuple[Expression, ...] = ()
    ignores_nulls: bool = False


def whole(value: int | None) -> Literal:
    return Literal(value, BIGINT)


TOTALS = [
    Asked("count(*)", "count", BIGINT),
    Asked("count(text)", "count", BIGINT, (TEXT,)),
    Asked('sum("number")', "sum", BIGINT, (NUMBER,)),
    Asked("sum(amount)", "sum", DOUBLE, (AMOUNT,)),
    Asked("sum(exact)", "sum", decimal(38, 2), (EXACT,)),
    Asked('avg("number")', "avg", DOUBLE, (NUMBER,)),
    Asked("min(text)", "min", VARCHAR, (TEXT,)),
    Asked("max(amount)", "max", DOUBLE, (AMOUNT,)),
    Asked("max(exact)", "max", decimal(12, 2), (EXACT,)),
    Asked("bool_and(flag)", "bool_and", BOOLEAN, (FLAG,)),
    Asked("bool_or(flag)", "bool_or", BOOLEAN, (FLAG,)),
]
OF_THE_FRAME = [
    Asked("first_value(text)", "first_value", VARCHAR, (TEXT,)),
    Asked("last_value(amount)", "last_value", DOUBLE, (AMOUNT,)),
    Asked("nth_value(exact, 2)", "nth_value", decimal(12, 2), (EXACT, whole(2))),
    Asked("first_value(text IGNORE NULLS)", "first_value", VARCHAR, (TEXT,), True),
    Asked("last_value(amount IGNORE NULLS)", "last_value", DOUBLE, (AMOUNT,), True),
    Asked("nth_value(exact, 3 IGNORE NULLS)", "nth_value", decimal(12, 2), (EXACT, whole(3)), True),
]
OF_THE_PLACE = [
    Asked("row_number()", "row_number", BIGINT),
    Asked("rank()", "rank", BIGINT),
    Asked("dense_rank()", "dense_rank", BIGINT),
    Asked("percent_rank()", "percent_rank", DOUBLE),
    Asked("cume_dist()", "cume_dist", DOUBLE),
    *(Asked(f"ntile({buckets})", "ntile", BIGINT, (whole(buckets),)) for buckets in (1, 2, 3, 7, 100)),
    Asked("lag(text)", "lag", VARCHAR, (TEXT,)),
    Asked("lead(text, 2)", "lead", VARCHAR, (TEXT, whole(2))),
    Asked("lag(text, 1, 'none')", "lag", VARCHAR, (TEXT, whole(1), Literal("none", VARCHAR))),
    Asked("lag(text, 1, part)", "lag", VARCHAR, (TEXT, whole(1), PART)),
    Asked("lead(amount, 0)", "lead", DOUBLE, (AMOUNT, whole(0))),
    Asked("lead(amount, -2)", "lead", DOUBLE, (AMOUNT, whole(-2))),
    Asked("lag(amount, 1000)", "lag", DOUBLE, (AMOUNT, whole(1000))),
    Asked("lag(text IGNORE NULLS)", "lag", VARCHAR, (TEXT,), True),
    Asked("lag(text, 2 IGNORE NULLS)", "lag", VARCHAR, (TEXT, whole(2)), True),
    Asked("lead(text, 2, 'none' IGNORE NULLS)", "lead", VARCHAR, (TEXT, whole(2), Literal("none", VARCHAR)), True),
]

ENDS = [
    (FrameEnd.UNBOUNDED_PRECEDING, None),
    (FrameEnd.PRECEDING, 2),
    (FrameEnd.PRECEDING, 0),
    (FrameEnd.CURRENT_ROW, None),
    (FrameEnd.FOLLOWING, 1),
    (FrameEnd.FOLLOWING, 3),
    (FrameEnd.UNBOUNDED_FOLLOWING, None),
]


def end_sql(end: FrameEnd, offset: int | None) -> str:
    return end.value if offset is None else f"{offset} {end.value}"


def frames(unit: FrameUnit, exclusion: FrameExclusion) -> list[tuple[str, Frame]]:
    found = []
    # RANGE 0 PRECEDING is left to tests of its own: DuckDB's answer to it changed with the other calls of the query.
    ends = [end for end in ENDS if unit is not FrameUnit.RANGE or end != (FrameEnd.PRECEDING, 0)]
    for (start, first), (stop, last) in product(ends[:-1], ends[1:]):
        if ENDS.index((start, first)) > ENDS.index((stop, last)):
            continue
        sql = f"{unit.value} BETWEEN {end_sql(start, first)} AND {end_sql(stop, last)} EXCLUDE {exclusion.value}"
        from_, to = (None if offset is None else Literal(offset, INTEGER) for offset in (first, last))
        found.append((sql, Frame(unit, start, stop, from_, to, exclusion)))
    return found


ORDERS: dict[str, Collation] = {
    "id": (SortKey(ID.id),),
    "id DESC": (SortKey(ID.id, descending=True),),
    "tied ASC NULLS FIRST": (SortKey(TIED.id),),
    "tied ASC NULLS LAST": (SortKey(TIED.id, nulls_first=False),),
    "tied DESC NULLS FIRST": (SortKey(TIED.id, descending=True),),
    "tied DESC NULLS LAST": (SortKey(TIED.id, descending=True, nulls_first=False),),
    "tied NULLS FIRST, text NULLS FIRST": (SortKey(TIED.id), SortKey(TEXT.id)),
}


def window(order: Collation, calls: list[WindowCall], partition: tuple[Column, ...] = (PART,)) -> Window:
    return Window(source_node(COLUMNS), partition, order, tuple(calls), Traits())


def run(node: Window, rows: Rows, shape: str = "one batch", form: str = "tuples") -> Rows:
    columns = node.input.columns
    source = ScriptedExec(columns, script(columns, rows, SHAPES[shape], form))
    return drain(WindowExec(node, source, ExpressionCache()))


def rounded(rows: list[tuple[Any, ...]]) -> Rows:
    return sorted(tuple(round(value, 6) + 0.0 if isinstance(value, float) else value for value in row) for row in rows)


def compare(
    oracle: duckdb.DuckDBPyConnection,
    order: str,
    asked: list[tuple[Asked, str, Frame]],
    partition: tuple[Column, ...] = (PART,),
    form: str = "arrow",
) -> None:
    by = f"PARTITION BY {', '.join(column.name for column in partition)}" if partition else ""
    over = f"{by} {f'ORDER BY {order}' if order else ''}"
    calls = [
        WindowCall(Column(RESULT + number, "c", each.result), each.function, each.arguments, frame, each.ignores_nulls)
        for number, (each, _, frame) in enumerate(asked)
    ]
    ours = run(window(ORDERS[order] if order else (), calls, partition), ROWS, form=form)
    selected = ", ".join(f"{each.sql} OVER ({over} {frame})" for each, frame, _ in asked)
    theirs = oracle.execute(f"SELECT id, {selected} FROM t").fetchall()
    for number, (each, frame, _) in enumerate(asked):
        mine = rounded([(row[0], row[len(COLUMNS) + number]) for row in ours])
        assert mine == rounded([(row[0], row[1 + number]) for row in theirs]), f"{each.sql} {over} {frame}"


@pytest.mark.parametrize("order", ["id", "id DESC"])
@pytest.mark.parametrize("form", FORMS)
def test_functions_of_the_place(oracle: duckdb.DuckDBPyConnection, order: str, form: str) -> None:
    asked = [(each, "", DEFAULT_FRAME) for each in OF_THE_PLACE]
    compare(oracle, order, asked, (), form)
    compare(oracle, order, asked, (PART, TIED, FLAG), form)


@pytest.mark.parametrize("order", list(ORDERS))
def test_ranks_with_ties(oracle: duckdb.DuckDBPyConnection, order: str) -> None:
    compare(oracle, order, [(each, "", DEFAULT_FRAME) for each in OF_THE_PLACE[1:5]])


@pytest.mark.parametrize("exclusion", list(FrameExclusion), ids=lambda exclusion: exclusion.value)
def test_frames_of_rows_agree_with_duckdb(oracle: duckdb.DuckDBPyConnection, exclusion: FrameExclusion) -> None:
    for sql, frame in frames(FrameUnit.ROWS, exclusion):
        compare(oracle, "id", [(each, sql, frame) for each in (*TOTALS, *OF_THE_FRAME)])


@pytest.mark.parametrize("exclusion", list(FrameExclusion), ids=lambda exclusion: exclusion.value)
@pytest.mark.parametrize("unit", [FrameUnit.RANGE, FrameUnit.GROUPS], ids=lambda unit: unit.value)
def test_frames_by_value_and_by_group(
    oracle: duckdb.DuckDBPyConnection, unit: FrameUnit, exclusion: FrameExclusion
) -> None:
    chooser = random.Random(f"{unit}{exclusion}")
    for sql, frame in chooser.sample(frames(unit, exclusion), 8):
        for order in chooser.sample(list(ORDERS)[2:6], 2):
            compare(oracle, order, [(each, sql, frame) for each in TOTALS])
        compare(oracle, "id", [(each, sql, frame) for each in (*TOTALS, *OF_THE_FRAME)])


@pytest.mark.parametrize("partition", [(), (PART,)], ids=["all", "parts"])
def test_default_frames_agree_with_duckdb(oracle: duckdb.DuckDBPyConnection, partition: tuple[Column, ...]) -> None:
    for order in ("", *ORDERS):
        compare(oracle, order, [(each, "", DEFAULT_FRAME) for each in TOTALS], partition)


@pytest.mark.parametrize(("shape", "form"), [(shape, form) for shape in SHAPES for form in FORMS], ids=str)
def test_input_cut_in_every_way(shape: str, form: str) -> None:
    call = WindowCall(Column(RESULT, "c", BIGINT), "sum", (NUMBER,))
    node = window((SortKey(ID.id),), [call])
    assert sorted(run(node, ROWS, shape, form), key=repr) == sorted(run(node, ROWS), key=repr)


def test_window_over_no_rows() -> None:
    node = window((SortKey(ID.id),), [WindowCall(Column(RESULT, "c", BIGINT), "rank")])
    assert run(node, []) == []
    assert drain(build_operator(node)) == []


def values_of(
    call: WindowCall, columns: tuple[Column, ...], rows: Rows, order: Collation, partition: tuple[Column, ...] = ()
) -> list[Any]:
    node = Window(source_node(columns), partition, order, (call,), Traits())
    return [row[-1] for row in sorted(run(node, rows, form="arrow"), key=lambda row: row[0])]


AT = Column(20, "at", BIGINT)
VALUE = Column(21, "value", DOUBLE)
ONE_BEFORE = Frame(FrameUnit.ROWS, FrameEnd.PRECEDING, FrameEnd.CURRENT_ROW, whole(1))


def test_floating_totals_know_only_their_frame() -> None:
    """A difference of running totals would give 0.0 for the small values behind the large one, and NaN for all."""
    call = WindowCall(Column(RESULT, "c", DOUBLE), "sum", (VALUE,), ONE_BEFORE)
    rows: Rows = [(0, 1e300), (1, 1.0), (2, 0.25), (3, float("inf")), (4, 3.0), (5, 4.0)]
    assert values_of(call, (AT, VALUE), rows, (SortKey(AT.id),)) == [
        1e300,
        1e300,
        1.25,
        float("inf"),
        float("inf"),
        7.0,
    ]


def test_large_integers_add_up_exactly() -> None:
    big = Column(21, "value", BIGINT)
    call = WindowCall(Column(RESULT, "c", decimal(38, 0)), "sum", (big,))
    rows: Rows = [(number, 2**63 - 1) for number in range(4)]
    totals = values_of(call, (AT, big), rows, (SortKey(AT.id),))
    assert totals == [Decimal((2**63 - 1) * count) for count in (1, 2, 3, 4)]


def test_decimals_beyond_64_bits_and_their_overflow() -> None:
    wide = Column(21, "value", decimal(38, 2))
    call = WindowCall(Column(RESULT, "c", decimal(38, 2)), "sum", (wide,))
    large = Decimal(10) ** 35 + Decimal("0.01")
    assert values_of(call, (AT, wide), [(0, large), (1, large)], (SortKey(AT.id),)) == [large, large * 2]
    with pytest.raises(SqlError, match="overflows"):
        values_of(call, (AT, wide), [(0, Decimal(9) * 10**35), (1, Decimal(9) * 10**35)], (SortKey(AT.id),))


def test_extremes_know_nan_and_tie_zeros() -> None:
    rows: Rows = [(0, 1.0), (1, float("nan")), (2, 2.0), (3, None)]
    highest = WindowCall(Column(RESULT, "c", DOUBLE), "max", (VALUE,))
    assert repr(values_of(highest, (AT, VALUE), rows, (SortKey(AT.id),))) == "[1.0, nan, nan, nan]"
    lowest = WindowCall(Column(RESULT, "c", DOUBLE), "min", (VALUE,))
    assert values_of(lowest, (AT, VALUE), [(0, float("nan")), (1, 5.0)], (SortKey(AT.id, descending=True),)) == [
        5.0,
        5.0,
    ]


def test_range_of_dates_counts_in_intervals() -> None:
    day = Column(20, "day", DATE)
    two_days = Literal(2 * 86_400_000_000, INTERVAL_TIME)
    frame = Frame(FrameUnit.RANGE, FrameEnd.PRECEDING, FrameEnd.CURRENT_ROW, two_days)
    call = WindowCall(Column(RESULT, "c", BIGINT), "count", (), frame)
    rows: Rows = [(0,), (1,), (3,), (4,), (9,)]
    assert values_of(call, (day,), rows, (SortKey(day.id),)) == [1, 2, 2, 2, 1]


def test_range_of_floating_values_has_nan_among_its_peers() -> None:
    frame = Frame(FrameUnit.RANGE, FrameEnd.PRECEDING, FrameEnd.FOLLOWING, Literal(1.0, DOUBLE), Literal(1.0, DOUBLE))
    call = WindowCall(Column(RESULT, "c", BIGINT), "count", (), frame)
    column = Column(20, "x", DOUBLE)
    rows: Rows = [(0.0,), (0.5,), (1.75,), (float("inf"),), (float("nan"),), (float("nan"),)]
    node = Window(source_node((column,)), (), (SortKey(column.id),), (call,), Traits())
    assert [row[-1] for row in run(node, rows)] == [2, 2, 1, 1, 2, 2]


def test_range_from_a_null_counts_to_the_other_nulls() -> None:
    value = Column(20, "x", INTEGER)
    rows: Rows = [(1,), (2,), (None,), (None,)]
    one = Literal(1, INTEGER)
    for start, expected in ((FrameEnd.UNBOUNDED_PRECEDING, [1, 2, 4, 4]), (FrameEnd.PRECEDING, [1, 2, 2, 2])):
        frame = Frame(FrameUnit.RANGE, start, FrameEnd.PRECEDING, one, Literal(0, INTEGER))
        call = WindowCall(Column(RESULT, "c", BIGINT), "count", (), frame)
        order = (SortKey(value.id, nulls_first=False),)
        assert [row[-1] for row in run(Window(source_node((value,)), (), order, (call,), Traits()), rows)] == expected


@pytest.mark.parametrize("offset", [None, -1])
def test_frames_with_offsets_that_mean_nothing(offset: int | None) -> None:
    for unit in (FrameUnit.ROWS, FrameUnit.RANGE, FrameUnit.GROUPS):
        frame = Frame(unit, FrameEnd.PRECEDING, FrameEnd.CURRENT_ROW, whole(offset))
        with pytest.raises(SqlError, match="offset of a frame must not be"):
            run(window((SortKey(ID.id),), [WindowCall(Column(RESULT, "c", BIGINT), "count", (), frame)]), ROWS)


def test_arguments_that_mean_nothing() -> None:
    for function, arguments in (("ntile", (whole(0),)), ("nth_value", (NUMBER, whole(0)))):
        with pytest.raises(SqlError, match="must be positive"):
            run(window((SortKey(ID.id),), [WindowCall(Column(RESULT, "c", BIGINT), function, arguments)]), ROWS)
    for function, arguments in (
        ("ntile", (whole(None),)),
        ("nth_value", (ID, whole(None))),
        ("lag", (ID, whole(None))),
    ):
        rows = run(window((SortKey(ID.id),), [WindowCall(Column(RESULT, "c", BIGINT), function, arguments)]), ROWS)
        assert {row[-1] for row in rows} == {None}
