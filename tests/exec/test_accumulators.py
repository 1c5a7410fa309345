"""Accumulators over NULLs: of any share, in any batch, with any bytes stored at them, for one group or several."""

from __future__ import annotations

import functools
import math
import operator
import random
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.exec.aggregate.accumulators import Accumulator, Count
from remuda.exec.aggregate.aggregate_calls import accumulator
from remuda.types import BIGINT, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from remuda.types.arrow_arrays import null_mask, stored_array

GROUPS = 5
EXACT = Context(prec=100)


def values_of(sql_type: SqlType, rows: int, share: float, chooser: random.Random) -> pa.Array:
    """Make a column with a share of NULLs; the bytes stored at a NULL are those of another, possible value."""
    match sql_type:
        case _ if sql_type == DOUBLE:
            drawn: list[Any] = [chooser.choice([0.5, -2.25, 1e300, math.nan, math.inf]) for _ in range(rows)]
        case _ if sql_type == VARCHAR:
            drawn = [chooser.choice("abcd") for _ in range(rows)]
        case _ if sql_type == decimal(38, 2):
            drawn = [EXACT.scaleb(Decimal(chooser.randrange(-(10**30), 10**30)), -2) for _ in range(rows)]
        case _:
            drawn = [chooser.randrange(-(2**31), 2**31) for _ in range(rows)]
    is_null = np.array([chooser.random() < share for _ in range(rows)], np.bool_)
    column = stored_array(drawn, sql_type)
    if not is_null.any():
        return column
    validity = pa.py_buffer(np.packbits(~is_null, bitorder="little").tobytes())
    return pa.Array.from_buffers(column.type, rows, [validity, *column.buffers()[1:]])


def expected(function: str, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    if function == "count":
        return len(present)
    if not present:
        return None
    if function == "sum":
        return functools.reduce(EXACT.add if isinstance(present[0], Decimal) else operator.add, present)
    ordered = sorted(present, key=lambda value: (isinstance(value, float) and math.isnan(value), value))
    return ordered[0] if function == "min" else ordered[-1]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


CASES = [
    (function, sql_type, result)
    for sql_type, result in [(DOUBLE, DOUBLE), (INTEGER, BIGINT), (BIGINT, decimal(38, 0)), (decimal(38, 2),) * 2]
    for function in ("count", "sum", "min", "max")
] + [(function, VARCHAR, VARCHAR) for function in ("count", "min", "max")]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("counted", [False, True], ids=["marked", "counted"])
@pytest.mark.parametrize(("function", "argument", "result"), CASES)
def test_nulls_count_for_nothing(
    function: str, argument: SqlType, result: SqlType, counted: bool, share: float
) -> None:
    chooser = random.Random(f"{function}{argument}{share}")
    for grouped in (False, True):
        rows = Count()
        states = accumulator(function, argument, result if function == "sum" else argument, rows if counted else None)
        added: list[list[Any]] = [[] for _ in range(GROUPS)]
        for size in (1, 40, 7, 0, 300):
            column = values_of(argument, size, share if size != 7 else 1.0, chooser)
            groups = np.array([chooser.randrange(GROUPS - 1) for _ in range(size)], np.intp) if grouped else None
            states.add(groups, column, GROUPS if grouped else 1)
            rows.add_rows(groups, size, GROUPS if grouped else 1)
            for row, value in enumerate(column.to_pylist()):
                added[0 if groups is None else groups[row]].append(value)
        found = states.state(GROUPS if grouped else 1).to_pylist()
        wanted = [expected(function, values) for values in (added if grouped else added[:1])]
        assert all(map(same, found, wanted)), (found, wanted)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("counted", [False, True], ids=["marked", "counted"])
@pytest.mark.parametrize(("function", "argument", "result"), CASES)
def test_selected_values_are_added_where_they_lie(
    function: str, argument: SqlType, result: SqlType, counted: bool, share: float
) -> None:
    chooser = random.Random(f"{function}{argument}{share}")
    rows = Count()
    states: Accumulator = accumulator(
        function, argument, result if function == "sum" else argument, rows if counted else None
    )
    added: list[Any] = []
    for selected in (0.5, 0.0, 1.0):
        column = values_of(argument, 200, share, chooser)
        mask = np.array([chooser.random() < selected for _ in range(200)], np.bool_)
        before = mask.copy()
        if not states.add_where(column, mask, null_mask(column)):
            states.add(None, column.filter(pa.array(mask)), 1)
        assert (mask == before).all()
        rows.add_rows(None, int(mask.sum()), 1)
        added += [value for value, is_selected in zip(column.to_pylist(), mask, strict=True) if is_selected]
    (found,) = states.state(1).to_pylist()
    assert same(found, expected(function, added))


def test_the_memory_of_a_column_is_never_written_to() -> None:
    values = np.array([1.0, 2.0, 3.0])
    column = pa.Array.from_buffers(pa.float64(), 3, [pa.py_buffer(bytes([0b101])), pa.py_buffer(values)])
    states = accumulator("sum", DOUBLE, DOUBLE, None)
    states.add(None, column, 1)
    states.add(np.array([0, 1, 0]), column, 2)
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert states.state(2).to_pylist() == [8.0, None]
