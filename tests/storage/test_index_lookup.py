"""Finders give a snapshot's rows and no others, say when there are too many, and know the ends of BIGINT."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from remuda.catalog import IndexType, MapDefinition
from remuda.errors import ErrorCode, SqlError
from remuda.storage import Lookup, MapSnapshot, MapStore, Range, Store, index_read, row_projection
from remuda.storage.lookup.index_lookup import FEW_ENTRIES
from remuda.types import BIGINT, VARCHAR
from tests.storage.maps import index_on, map_of, table_of

LEAST, GREATEST = -(2**63), 2**63 - 1
ROWS = 400
EVERYTHING = (0, 1, 2)


def filled(rows: list[tuple[Any, ...]]) -> tuple[MapStore, MapDefinition]:
    """The rows in one segment, with a SORTED index on `n` and a HASH index on `s`."""
    definition = map_of(
        [("id", BIGINT), ("n", BIGINT), ("s", VARCHAR)], indexes=(index_on("n"), index_on("s", type_=IndexType.HASH))
    )
    store = Store.open()
    store.create_map(definition)
    kept = store.map(definition)
    kept.load(table_of(definition, rows), "replace")
    return kept, definition


def rows_between(
    snapshot: MapSnapshot, low: Any, high: Any, columns: tuple[int, ...] = EVERYTHING, most: int = ROWS
) -> list[Any] | None:
    finder = snapshot.version.index_lookup(index_read(snapshot.definition.indexes[0].id, row_projection(columns)))
    found = finder.between(low, True, high, True, snapshot.length, most)
    return None if found is None else list(found)


def plain(count: int = ROWS) -> list[tuple[Any, ...]]:
    return [(number, number, f"s{number % 5}") for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, FEW_ENTRIES, FEW_ENTRIES + 1, 100])
def test_a_snapshot_sees_what_was_there_when_it_was_taken(count: int) -> None:
    kept, _ = filled(plain())
    before = kept.snapshot()
    kept.put([(number, -1, None) for number in range(50, 50 + count, 2)])
    kept.delete([50 + count - 1])
    kept.put([(1_000, 50, "new")])
    after = kept.snapshot()
    assert rows_between(before, 50, 50 + count - 1) == plain()[50 : 50 + count]
    left = [row for row in plain()[50 : 50 + count - 1] if row[0] % 2]
    assert rows_between(after, 50, 50 + count - 1) == [*left, (1_000, 50, "new")]


def test_too_many_entries_are_no_answer() -> None:
    kept, definition = filled(plain())
    kept.put([(1_000, 20, None)])
    snapshot = kept.snapshot()
    assert len(rows_between(snapshot, 10, 20, most=12) or ()) == 12
    assert rows_between(snapshot, 10, 20, most=11) is None
    assert rows_between(snapshot, 10, 20, most=10) is None
    lookups = [Lookup((), Range(10, True, 12)), Lookup((5,))]
    finder = snapshot.version.index_lookup(index_read(definition.indexes[0].id, row_projection(EVERYTHING)))
    assert len(list(finder.find(lookups, snapshot.length, 4) or ())) == 4
    assert finder.find(lookups, snapshot.length, 3) is None
    by_text = snapshot.version.index_lookup(index_read(definition.indexes[1].id, row_projection(EVERYTHING)))
    several = [Lookup(("s1",)), Lookup(("s2",))]
    assert len(list(by_text.find(several, snapshot.length, 160) or ())) == 160
    assert by_text.find(several, snapshot.length, 159) is None


@pytest.mark.parametrize("others", [[None], [5], [5, None]], ids=["NULL", "values", "both"])
@pytest.mark.parametrize("ends", [(LEAST, LEAST), (LEAST, GREATEST), (GREATEST, GREATEST), (GREATEST, LEAST)])
@pytest.mark.parametrize("held", [(), (LEAST,), (GREATEST,), (LEAST, GREATEST)])
def test_the_ends_of_bigint(others: list[int | None], ends: tuple[int, int], held: tuple[int, ...]) -> None:
    rows = [(number, value, None) for number, value in enumerate([*others * 200, *held])]
    kept, _ = filled(rows)
    expected = sorted(row[0] for row in rows if row[1] is not None and ends[0] <= row[1] <= ends[1])
    assert sorted(row[0] for row in rows_between(kept.snapshot(), *ends) or ()) == expected


def test_a_version_goes_with_the_last_who_holds_it() -> None:
    """Without waiting for a collection of cycles: its files go with it."""
    kept, _ = filled(plain())
    gc.disable()
    try:
        assert rows_between(kept.snapshot(), 5, 6) == plain()[5:7]
        version = weakref.ref(kept.snapshot().version)
        kept.put([(1_000, 50, "new")])
        kept.checkpoint()
        assert rows_between(kept.snapshot(), 5, 6) == plain()[5:7]
        assert version() is None
    finally:
        gc.enable()


def test_rows_without_columns_are_counted() -> None:
    kept, _ = filled(plain())
    kept.put([(1_000, 50, "new")])
    for last in (50, 52, 99):
        assert rows_between(kept.snapshot(), 50, last, ()) == [()] * (last - 50 + 2)


def test_strings_read_before_are_the_strings_read_again() -> None:
    """NULLs share the code of a string; a string kept decoded must not stand for them."""
    texts = ["é", "s1", None, "", "s1"]
    rows = [(number, number, texts[number % 5]) for number in range(ROWS)]
    kept, _ = filled(rows)
    snapshot = kept.snapshot()
    for _ in range(2):
        assert rows_between(snapshot, 0, 4) == rows[:5]
        assert rows_between(snapshot, 0, ROWS) == rows


def test_the_finder_of_a_dropped_index_is_an_error_that_plans_survive() -> None:
    kept, _ = filled(plain())
    with pytest.raises(SqlError) as caught:
        kept.snapshot().version.index_lookup(index_read("no such index", row_projection(EVERYTHING)))
    assert caught.value.code is ErrorCode.INDEX_INVALID
    assert caught.value.invalidates_plan
