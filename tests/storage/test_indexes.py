"""HASH and SORTED indexes find exactly what a plain loop finds: in segments, in the log, in both, for every type."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from remuda.catalog import IndexDefinition, IndexType, MapDefinition
from remuda.errors import ErrorCode, SqlError
from remuda.storage import UNBOUNDED, Lookup, MapSnapshot, Range, Store, index_read, row_projection
from remuda.types import BIGINT, DOUBLE, INTEGER, VARBINARY, VARCHAR, SqlType
from remuda.types.normalized_key import comparable
from remuda.types.partition_hash import hash_values, partition_of
from tests.storage.maps import index_on, map_of, same, table_of
from tests.storage.ranges import is_within
from tests.storage.sample_values import TYPES, random_value

Row = tuple[Any, ...]
ALL = 1 << 30


def _expected(definition: MapDefinition, index: IndexDefinition, lookup: Lookup, rows: list[Row]) -> list[Row]:
    columns = definition.positions(index.columns)
    found = []
    for row in rows:
        values = [row[column] for column in columns]
        fits = all(
            comparable(value) == comparable(wanted) for value, wanted in zip(values, lookup.prefix, strict=False)
        )
        if fits and (lookup.range is None or is_within(values[len(lookup.prefix)], lookup.range)):
            found.append(row)
    return found


def _found(
    snapshot: MapSnapshot, index: IndexDefinition, lookup: Lookup, partitions: np.ndarray | None = None
) -> list[Row]:
    """The rows of every source; checks on the way that they come in index order and that counts are not too low."""
    columns = snapshot.definition.positions(index.columns)
    everything = tuple(range(len(snapshot.definition.columns)))
    rows: list[Row] = []
    for source in snapshot.sources:
        positions = source.positions(index.id, lookup, partitions)
        part = source.rows_at(everything, positions)
        keys = [[comparable(row[column]) for column in columns] for row in part]
        assert not index.type.serves.order or keys == sorted(keys)
        assert source.count(index.id, lookup) >= len(part)
        assert source.take(["id"], positions).column(0).to_pylist() == [row[0] for row in part]
        rows += part
    if partitions is None:
        assert repr(_found_at_once(snapshot, index, lookup, everything)) == repr(rows)
    return rows


def _found_at_once(
    snapshot: MapSnapshot, index: IndexDefinition, lookup: Lookup, columns: tuple[int, ...]
) -> list[Row] | None:
    """What the finder of the version gives; a range of a first column is asked for in both ways."""
    finder, length = snapshot.version.index_lookup(index_read(index.id, row_projection(columns))), snapshot.length
    found = finder.find([lookup], length, ALL)
    rows = None if found is None else list(found)
    wanted = lookup.range
    if wanted is not None and not lookup.prefix and not {None, UNBOUNDED} & {wanted.low, wanted.high}:
        ends = wanted.low, wanted.low_inclusive, wanted.high, wanted.high_inclusive
        between = finder.between(*ends, length, ALL)
        assert between is not None
        assert repr(list(between)) == repr(rows)
    return rows


def _by_id(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[0])


def _filled(definition: MapDefinition, rows: list[Row], source: random.Random) -> tuple[MapSnapshot, list[Row]]:
    """A map with rows in two segments and in the log, some of them overwritten, some deleted."""
    store = Store.open()
    store.create_map(definition)
    kept = store.map(definition)
    third = len(rows) // 3
    kept.load(table_of(definition, rows[:third]))
    store.checkpoint()
    kept.put(rows[third : 2 * third])
    store.checkpoint()
    kept.put(rows[2 * third :])
    expected = {row[0]: row for row in rows}
    for row in source.sample(rows, len(rows) // 5):
        changed = (row[0], *source.choice(rows)[1:])
        kept.put([changed])
        expected[row[0]] = changed
    for row in source.sample(rows, len(rows) // 5):
        kept.delete([row[0]])
        expected.pop(row[0], None)
    return kept.snapshot(), list(expected.values())


def _random_range(sql_type: SqlType, rows: list[Row], column: int, source: random.Random) -> Range:
    def end() -> Any:
        drawn = source.choice([UNBOUNDED, source.choice(rows)[column], random_value(sql_type, source)])
        return UNBOUNDED if drawn is None else drawn

    return Range(end(), source.random() < 0.5, end(), source.random() < 0.5)


@pytest.mark.parametrize("repeated", [True, False], ids=["repeated", "distinct"])
@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_every_type_in_every_type_of_index(sql_type: SqlType, repeated: bool) -> None:
    source = random.Random(str(sql_type))
    few = [None, *(random_value(sql_type, source) for _ in range(12))]
    rows = [
        (number, source.choice(few) if repeated else source.choice([None, *[random_value(sql_type, source)] * 9]))
        for number in range(300)
    ]
    indexes = tuple(index_on("value", type_=index_type) for index_type in IndexType)
    definition = map_of([("id", BIGINT), ("value", sql_type)], indexes=indexes)
    snapshot, expected = _filled(definition, rows, source)
    lookups = [Lookup((value,)) for value in [*few, *(row[1] for row in rows[:30]), random_value(sql_type, source)]]
    for lookup in lookups:
        for index in indexes:
            found = _by_id(_found(snapshot, index, lookup))
            assert same(found, _by_id(_expected(definition, index, lookup, expected))), (index.type, lookup)
    for index in indexes:
        for _ in range(40 if index.type.serves.ranges else 0):
            lookup = Lookup((), _random_range(sql_type, rows, 1, source))
            found = _by_id(_found(snapshot, index, lookup))
            assert same(found, _by_id(_expected(definition, index, lookup, expected))), (index.type, lookup)
        if index.type.serves.order:
            assert same(_by_id(_found(snapshot, index, Lookup())), _by_id(expected))


@pytest.mark.parametrize("seed", range(4))
def test_prefixes_and_ranges_of_several_columns(seed: int) -> None:
    source = random.Random(seed)
    types = (("id", BIGINT), ("a", INTEGER), ("b", VARCHAR), ("c", DOUBLE))
    rows = [
        (
            number,
            source.choice([None, 1, 2, 3]),
            source.choice([None, "x", "y", f"unique {number}"]),
            source.choice([None, 0.0, -0.0, float("nan"), float(number)]),
        )
        for number in range(300)
    ]
    ordered, hashed = index_on("a", "b", "c"), index_on("b", "a", type_=IndexType.HASH)
    definition = map_of(types, indexes=(ordered, hashed))
    snapshot, expected = _filled(definition, rows, source)
    for _ in range(60):
        row = source.choice(rows)
        length = source.randint(0, 2)
        column = length + 1
        lookup = Lookup(row[1 : 1 + length], _random_range(types[column][1], rows, column, source))
        for each in (lookup, Lookup(lookup.prefix), Lookup(row[1:4])):
            assert same(_by_id(_found(snapshot, ordered, each)), _by_id(_expected(definition, ordered, each, expected)))
        pair = Lookup((row[2], row[1]))
        assert same(_by_id(_found(snapshot, hashed, pair)), _by_id(_expected(definition, hashed, pair, expected)))


def test_only_entries_of_the_wanted_partitions_are_found() -> None:
    source = random.Random(5)
    rows = [(number, source.choice("abc")) for number in range(400)]
    ordered = index_on("value")
    definition = map_of([("id", BIGINT), ("value", VARCHAR)], indexes=(ordered,), partitions=31)
    snapshot, expected = _filled(definition, rows, source)
    for chosen in ([0], [3, 4, 5], [30], [], list(range(31))):
        wanted = [row for row in expected if partition_of(hash_values(row[:1], [BIGINT]), 31) in chosen]
        lookup = Lookup(("b",))
        found = _found(snapshot, ordered, lookup, np.array(chosen, np.int64))
        assert _by_id(found) == _by_id(_expected(definition, ordered, lookup, wanted))


def test_values_of_one_hash_are_told_apart() -> None:
    """NULL is hashed as the byte 0xFF, which VARBINARY can hold: a collision that needs no luck."""
    hashed = index_on("value", type_=IndexType.HASH)
    definition = map_of([("id", BIGINT), ("value", VARBINARY)], indexes=(hashed,))
    rows = [(number, (None, b"\xff", b"")[number % 3]) for number in range(90)]
    store = Store.open()
    store.create_map(definition)
    store.map(definition).insert(rows)
    store.checkpoint()
    snapshot = store.map(definition).snapshot()
    for value in (None, b"\xff", b""):
        found = _found(snapshot, hashed, Lookup((value,)))
        assert _by_id(found) == [row for row in rows if row[1] == value]


def test_the_least_bigint_is_not_null() -> None:
    least = -(2**63)
    ordered = index_on("value")
    definition = map_of([("id", BIGINT), ("value", BIGINT)], indexes=(ordered,))
    for values in ([None, 1, 2], [None, least, 1], [least, 0, 5]):
        store = Store.open()
        store.create_map(definition)
        store.map(definition).insert(list(enumerate(values)))
        store.checkpoint()
        snapshot = store.map(definition).snapshot()
        for lookup in (Lookup((least,)), Lookup((None,)), Lookup((), Range(low=least)), Lookup((), Range())):
            expected = _expected(definition, ordered, lookup, list(enumerate(values)))
            assert _by_id(_found(snapshot, ordered, lookup)) == _by_id(expected), (values, lookup)


def test_an_index_that_is_gone_says_so() -> None:
    store = Store.open()
    definition = map_of([("id", BIGINT)])
    store.create_map(definition)
    store.map(definition).insert([(1,)])
    with pytest.raises(SqlError) as caught:
        store.map(definition).snapshot().sources[0].positions("no such index", Lookup())
    assert caught.value.code is ErrorCode.INDEX_INVALID
