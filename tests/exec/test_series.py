"""Series over input cut and encoded in every way, delivered in batches of every size."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExpressionCache, build_operator
from remuda.exec.relational.series import SeriesExec
from remuda.expr import Call, Column, Expression, Literal
from remuda.optimizer.finishing.runtime_decisions import tell_scans_of_limits
from remuda.plan.physical import Limit, Series, Values
from remuda.plan.series import SeriesCall
from remuda.plan.traits import Traits
from remuda.types import BIGINT, INTERVAL_MONTHS, TIMESTAMP, VARCHAR, SqlType
from remuda.types.calendar import DAY, add_months
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, context, drain, script, source_node

NAME, START, STOP, STEP = (Column(number, name, BIGINT) for number, name in enumerate("abcd", 1))
TEXT = Column(5, "text", VARCHAR)
MOMENTS = tuple(Column(number, name, TIMESTAMP) for number, name in ((6, "start"), (7, "stop")))
LEAST, GREATEST = -(2**63), 2**63 - 1

ROWS: Rows = [
    ("x", 1, 5, 2),
    (None, 5, 1, 2),
    ("x", 5, 1, -2),
    ("y", None, 3, 1),
    ("z", 7, 7, 3),
    ("z", 7, None, 0),
    ("w", 1, 12, 1),
]


def series_of(
    start: Expression, stop: Expression, step: Expression, *, includes_stop: bool = True, columns: Any = ()
) -> Series:
    type_: SqlType = start.type
    call = SeriesCall(Column(9, "value", type_, nullable=False), start, stop, step, includes_stop)
    return Series(source_node(columns) if columns else Values((), ((),), Traits()), call, Traits())


def plain(start: int, stop: int, step: int, *, includes_stop: bool = True) -> Series:
    return series_of(*(Literal(part, BIGINT) for part in (start, stop, step)), includes_stop=includes_stop)


def expected_of(rows: Rows, *, includes_stop: bool) -> Rows:
    found: Rows = []
    for name, start, stop, step in rows:
        if None not in (start, stop, step):
            beyond = stop + (1 if step > 0 else -1) if includes_stop else stop
            found.extend((name, start, stop, step, value) for value in range(start, beyond, step))
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 1_000])
def test_each_row_once_for_each_value_of_its_own(size: int, shape: str, form: str) -> None:
    columns = (TEXT, START, STOP, STEP)
    for includes_stop in (True, False):
        node = series_of(START, STOP, STEP, includes_stop=includes_stop, columns=columns)
        source = ScriptedExec(columns, script(columns, ROWS, SHAPES[shape], form))
        found = drain(SeriesExec(node, source, ExpressionCache()), context(scan_batch_rows=size))
        assert found == expected_of(ROWS, includes_stop=includes_stop)


ENDS = st.integers(-30, 30) | st.integers(LEAST, LEAST + 40) | st.integers(GREATEST - 40, GREATEST)
STEPS = (st.integers(-9, 9) | st.sampled_from([LEAST, GREATEST, 2**62, -(2**62)])).filter(bool)


@given(ENDS, ENDS, STEPS, st.booleans(), st.integers(1, 7))
def test_the_values_are_those_of_a_range(start: int, stop: int, step: int, includes_stop: bool, size: int) -> None:
    beyond = stop + (1 if step > 0 else -1) if includes_stop else stop
    values = range(start, beyond, step)
    node = plain(start, stop, step, includes_stop=includes_stop)
    assert node.call.known_values == values
    if values and (values[-1] - start) // step < 200:
        assert drain(build_operator(node), context(scan_batch_rows=size)) == [(value,) for value in values]
        assert node.call.known_count == len(values)
    else:
        count = node.call.known_count
        assert count is not None
        assert count == 0 or start + (count - 1) * step == values[-1]
        limited = Limit(node, Literal(20, BIGINT), None, Traits())
        assert drain(build_operator(limited), context(scan_batch_rows=size)) == [(value,) for value in values[:20]]


INSTANTS = st.datetimes(datetime(1890, 1, 1), datetime(2110, 1, 1))


def micros(moment: datetime) -> int:
    return round((moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)


@given(st.lists(st.tuples(INSTANTS, st.integers(-40, 40)), max_size=6), STEPS, st.booleans(), st.integers(1, 7))
def test_months_are_added_to_the_value_before(
    given: list[tuple[datetime, int]], step: int, includes_stop: bool, size: int
) -> None:
    step = max(-1200, min(1200, step))
    rows: Rows = []
    expected: Rows = []
    for moment, months in given:
        start = micros(moment)
        stop = add_months(start // DAY, months, TIMESTAMP) * DAY + start % DAY
        rows.append((start, stop))
        value = start
        while (value < stop) if step > 0 else (value > stop):
            expected.append((start, stop, value))
            value = add_months(value // DAY, step, TIMESTAMP) * DAY + value % DAY
        if value == stop and includes_stop:
            expected.append((start, stop, value))
    node = series_of(*MOMENTS, Literal(step, INTERVAL_MONTHS), includes_stop=includes_stop, columns=MOMENTS)
    source = ScriptedExec(MOMENTS, script(MOMENTS, rows, (4, 1), "arrow"))
    assert drain(SeriesExec(node, source, ExpressionCache()), context(scan_batch_rows=size)) == expected


def test_months_reach_the_last_one_there_is() -> None:
    first, last = (micros(datetime(9999, month, 30, tzinfo=UTC)) for month in (10, 12))
    literals = Literal(first, TIMESTAMP), Literal(last, TIMESTAMP), Literal(1, INTERVAL_MONTHS)
    found = drain(build_operator(series_of(*literals)))
    assert [value for (value,) in found] == [first, first + 31 * DAY, last]


def test_a_step_of_zero_is_an_error_unless_something_is_unknown() -> None:
    zero = Call("-", (STEP, STEP), BIGINT)
    columns = (START, STOP, STEP)
    for rows, is_wrong in (([(1, 5, 3)], True), ([(5, 1, 3)], True), ([(None, 5, 3), (1, None, 3)], False)):
        operator = SeriesExec(
            series_of(START, STOP, zero, columns=columns),
            ScriptedExec(columns, script(columns, rows)),
            ExpressionCache(),
        )
        if is_wrong:
            with pytest.raises(SqlError, match="step of generate_series is zero") as caught:
                drain(operator)
            assert caught.value.code is ErrorCode.DATA_EXCEPTION
        else:
            assert drain(operator) == []


def test_a_batch_has_no_more_rows_than_a_scan_delivers_and_nothing_is_made_in_advance() -> None:
    operator = build_operator(plain(1, GREATEST, 1))
    operator.setup(context())
    for number in range(3):
        operator.advance()
        assert operator.current_batch.row_count == 262_144
        assert operator.current_batch.row(0)[0] == 1 + number * 262_144


def test_a_limit_is_known_before_the_first_batch_is_made() -> None:
    limited = Limit(plain(1, GREATEST, 1), Literal(5, BIGINT), Literal(2, BIGINT), Traits())
    limit = build_operator(tell_scans_of_limits(limited, int))
    limit.setup(context())
    limit.advance()
    assert limit.source.current_batch.row_count == 7  # type: ignore[attr-defined]


def test_one_who_takes_more_than_it_said_gets_more() -> None:
    operator = build_operator(replace(plain(1, 100, 1), first_rows=Literal(3, BIGINT)))
    assert drain(operator, context(scan_batch_rows=50)) == [(value,) for value in range(1, 101)]
