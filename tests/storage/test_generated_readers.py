"""Code written out for a form of rows gives what the readers of the columns give, and Python's forms of that."""

from __future__ import annotations

import random
from typing import Any

import pytest

from remuda.storage import Lookup, MapStore, Range, Store, index_read, row_projection
from remuda.storage.segment.column_reader import FEW
from remuda.storage.state import map_version
from remuda.types import BIGINT, DOUBLE, VARCHAR, SqlType, to_python
from tests.storage.maps import index_on, map_of, table_of
from tests.storage.sample_values import TYPES, random_value

ROWS = 300
COLUMNS = tuple(range(len(TYPES) + 1))


class Made(tuple[Any, ...]):
    """What rows are made into here."""

    __slots__ = ()


def values_of(sql_type: SqlType, *, nulls: bool, repeated: bool) -> list[Any]:
    source = random.Random(f"{sql_type} {nulls} {repeated}")
    chosen = [random_value(sql_type, source) for _ in range(5 if repeated else ROWS)]
    if sql_type == VARCHAR:
        chosen[0] = ""
    found = [chosen[number % len(chosen)] for number in range(ROWS)]
    return [None if nulls and number % 3 == 0 else value for number, value in enumerate(found)]


def filled(*, nulls: bool, repeated: bool) -> tuple[MapStore, list[tuple[Any, ...]]]:
    """A column of every type; repeated values are held in dictionaries."""
    definition = map_of(
        [("id", BIGINT), *((f"c{number}", sql_type) for number, sql_type in enumerate(TYPES))],
        indexes=(index_on("id"),),
    )
    columns = [values_of(sql_type, nulls=nulls, repeated=repeated) for sql_type in TYPES]
    rows = [(number, *values) for number, values in enumerate(zip(*columns, strict=True))]
    store = Store.open()
    store.create_map(definition)
    kept = store.map(definition)
    kept.load(table_of(definition, rows), "replace")
    assert kept.memtable_length == 0
    return kept, rows


def in_python(kept: MapStore, row: tuple[Any, ...]) -> Made:
    types = [column.type for column in kept.definition.columns]
    return Made(to_python(sql_type, value) for sql_type, value in zip(types, row, strict=True))


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("repeated", [False, True])
def test_every_type_in_both_forms(nulls: bool, repeated: bool) -> None:
    kept, rows = filled(nulls=nulls, repeated=repeated)
    stored, made = row_projection(COLUMNS), row_projection(COLUMNS, Made)
    for _ in range(2):  # strings are kept once they were read
        for row in rows:
            assert repr(kept.find(row[0], stored)) == repr(row)
            found = kept.find(row[0], made)
            assert type(found) is Made
            assert repr(found) == repr(in_python(kept, row))
    for row in rows[:20]:
        kept.put([row])
        assert repr(kept.find(row[0], made)) == repr(in_python(kept, row)), "out of the log"
    assert kept.find(-1, made) is None


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("count", [1, FEW, FEW + 1, ROWS])
def test_rows_of_an_index_in_python_form(nulls: bool, count: int) -> None:
    kept, rows = filled(nulls=nulls, repeated=True)
    kept.put([rows[2]])
    snapshot = kept.snapshot()
    finder = snapshot.version.index_lookup(index_read(kept.definition.indexes[0].id, row_projection(COLUMNS, Made)))
    found = list(finder.between(5, True, 4 + count, True, snapshot.length, ROWS) or ())
    assert {type(row) for row in found} == {Made}
    assert repr(found) == repr([in_python(kept, row) for row in rows[5 : 5 + count]])
    again = finder.find([Lookup((), Range(0, True, 2, True))], snapshot.length, ROWS)
    assert repr(sorted(again or ())) == repr([in_python(kept, row) for row in rows[:3]])


def test_columns_in_any_order_and_more_than_once() -> None:
    kept, rows = filled(nulls=False, repeated=True)
    assert kept.lookup(7, (3, 0, 3)) == (rows[7][3], 7, rows[7][3])
    assert kept.lookup(7, ()) == ()


@pytest.mark.parametrize("last", [5, 5 + FEW, 99])
def test_rows_without_columns_are_made_too(last: int) -> None:
    kept, _ = filled(nulls=False, repeated=True)
    finder = kept.snapshot().version.index_lookup(index_read(kept.definition.indexes[0].id, row_projection((), Made)))
    found = list(finder.between(5, True, last, True, 0, ROWS) or ())
    assert [type(row) for row in found] == [Made] * (last - 4)


def test_finders_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_version, "MOST_LOOKUPS", 5)
    kept, rows = filled(nulls=False, repeated=True)
    version, index = kept.snapshot().version, kept.definition.indexes[0].id
    for column in range(1, 15):
        assert repr(kept.lookup(3, (column,))) == repr((rows[3][column],))
        version.index_lookup(index_read(index, row_projection((column,))))
        assert len(version.point_lookups) <= 5
        assert len(version.index_lookups) <= 5


def test_a_form_is_one_object() -> None:
    assert row_projection((0, 1), Made) is row_projection((0, 1), Made)
    assert row_projection((0, 1)) is not row_projection((0, 1), Made)
    assert index_read("i", row_projection((0,))) is index_read("i", row_projection((0,)))


@pytest.mark.parametrize("least", [-1.5, -0.0, 0.0, 5e-324, 1.0])
@pytest.mark.parametrize("greatest", [9.0, float("inf"), float("nan")])
def test_doubles_searched_as_bits_or_as_numbers(least: float, greatest: float) -> None:
    """Only numbers above zero and below infinity have bits that are in the order of the numbers."""
    values = [least, 1.0, 2.0, 2.0, 3.5, greatest]
    definition = map_of([("id", BIGINT), ("d", DOUBLE)], indexes=(index_on("d"),))
    store = Store.open()
    store.create_map(definition)
    kept = store.map(definition)
    kept.load(table_of(definition, list(enumerate(values))), "replace")
    finder = kept.snapshot().version.index_lookup(index_read(definition.indexes[0].id, row_projection((1,))))
    order = {repr(value): place for place, value in enumerate([-9.0, -1.5, 0.0, 5e-324, 0.5, 1.0, 2.0, 3.5, 9.0])}
    order |= {"-0.0": order["0.0"], "inf": 100, "nan": 101}
    for start in map(float, order):
        for stop in map(float, order):
            for inclusive in (False, True):
                low, high = order[repr(start)], order[repr(stop)]
                expected = sorted(
                    repr(value)
                    for value in values
                    if (low <= order[repr(value)] <= high if inclusive else low < order[repr(value)] < high)
                )
                found = finder.between(start, inclusive, stop, inclusive, 0, 100)
                assert sorted(repr(value) for (value,) in found or ()) == expected, (start, stop, inclusive)
