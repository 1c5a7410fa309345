"""Scans over several sources at once: segments, hidden rows in them, and the log."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from remuda.catalog import IndexType
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext, ExpressionCache, IterationResult
from remuda.exec.scan import index_choice, index_scan, ordered_index_scan
from remuda.exec.scan.concrete_bounds import index_lookups
from remuda.exec.scan.index_scan import IndexScanExec
from remuda.exec.scan.key_lookup import KeyLookupExec
from remuda.exec.scan.map_scan import MapScanExec
from remuda.exec.scan.ordered_index_scan import OrderedIndexScanExec
from remuda.expr import Call, Column, Expression, Literal, Parameters
from remuda.plan.bounds import Bound, End, Interval, Points, Pruning
from remuda.plan.physical import Direction, IndexScan, KeyLookup, MapScan, ScanCutover
from remuda.plan.traits import SortKey, Traits
from remuda.storage import MapSnapshot, Store
from remuda.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR
from tests.exec.scripted import Rows, drain
from tests.properties.model import order_key
from tests.storage.maps import index_on, map_of, table_of

SORTED, HASH = index_on("n", "s"), index_on("n", type_=IndexType.HASH)
MAP = map_of([("id", BIGINT), ("n", DOUBLE), ("s", VARCHAR)], indexes=(SORTED, HASH), partitions=13)
ID, N, S = (Column(number, *column) for number, column in enumerate((("id", BIGINT), ("n", DOUBLE), ("s", VARCHAR))))
VALUES = [None, math.nan, -0.0, 0.0, 1.0, 2.0, 2.0, 3.5, math.inf, -math.inf]
TEXTS = [None, "", "a", "b"]


def row(id_: int) -> tuple[Any, ...]:
    return id_, VALUES[id_ % len(VALUES)], TEXTS[id_ % 3 % len(TEXTS)]


@pytest.fixture(scope="module")
def snapshot() -> Iterator[MapSnapshot]:
    """Two segments, with rows deleted and overwritten, and a log that inserts, overwrites and deletes."""
    store = Store.open(None, partitions=13)
    store.create_map(MAP)
    map_store = store.map(MAP)
    map_store.load(table_of(MAP, [row(id_) for id_ in range(300)]), "append")
    map_store.checkpoint()
    map_store.load(table_of(MAP, [row(id_) for id_ in range(300, 500)]), "append")
    map_store.delete([7, 8, 309])
    map_store.checkpoint()
    map_store.put([row(id_) for id_ in range(500, 540)])
    map_store.put([(3, 2.0, "changed"), (301, None, None), (501, 1.0, "changed")])
    map_store.delete([4, 302, 502])
    taken = map_store.snapshot()
    assert len(taken.sources) >= 2
    yield taken
    store.close()


def model() -> Rows:
    rows = {id_: row(id_) for id_ in range(540)}
    for id_ in (7, 8, 309, 4, 302, 502):
        del rows[id_]
    for changed in ((3, 2.0, "changed"), (301, None, None), (501, 1.0, "changed")):
        rows[changed[0]] = changed
    return list(rows.values())


def context(snapshot: MapSnapshot, *partitions: int, **rest: Any) -> ExecContext:
    owned = np.array(partitions, np.int64) if partitions else None
    return ExecContext(Parameters(), {MAP.id: snapshot}, owned, **rest)


def same(rows: Rows) -> list[str]:
    return sorted(repr(each) for each in rows)


def number(value: Any) -> Literal:
    return Literal(value, DOUBLE)


AT_LEAST_TWO = Call(">=", (N, number(2.0)), BOOLEAN)


def at_least_two(each: tuple[Any, ...]) -> bool:
    return each[1] is not None and order_key(each[1]) >= order_key(2.0)


@pytest.mark.parametrize("batch_rows", [1, 7, 131_072])
def test_a_map_scan_delivers_what_passes_its_filter(snapshot: MapSnapshot, batch_rows: int) -> None:
    scan = MapScan(MAP, (S, ID), AT_LEAST_TWO, None, Traits())
    found = drain(MapScanExec(scan, ExpressionCache()), context(snapshot, scan_batch_rows=batch_rows))
    assert same(found) == same([(each[2], each[0]) for each in model() if at_least_two(each)])


def test_the_partitions_of_the_members_make_up_the_map(snapshot: MapSnapshot) -> None:
    scan = MapScan(MAP, (ID, N, S), None, None, Traits())
    found: Rows = []
    for owned in ((0, 1, 2), (3, 5, 7, 9, 11), (4,), (6, 8, 10, 12)):
        given = context(snapshot, *owned)
        found += drain(MapScanExec(scan, ExpressionCache()), given)
        assert given.activity.partitions == len(owned)
    assert same(found) == same(model())
    assert (
        drain(
            MapScanExec(scan, ExpressionCache()), ExecContext(Parameters(), {MAP.id: snapshot}, np.array([], np.int64))
        )
        == []
    )


def ordered_scan(bounds: tuple[Bound, ...], direction: Direction, remainder: Expression | None = None) -> IndexScan:
    descending = direction is Direction.DESCENDING
    keys = tuple(SortKey(column.id, descending, nulls_first=not descending) for column in (N, S))
    return IndexScan(MAP, SORTED, (ID, N, S), bounds, remainder, direction, None, Traits(collation=keys))


def position(each: tuple[Any, ...]) -> tuple[Any, ...]:
    return order_key(each[1]), order_key(each[2])


@pytest.mark.parametrize("direction", [Direction.ASCENDING, Direction.DESCENDING])
@pytest.mark.parametrize("first_chunk", [1, 3, 64])
def test_an_ordered_scan_merges_its_sources(
    snapshot: MapSnapshot, direction: Direction, first_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NULL is the lowest value, NaN the greatest number, and equal values come from several sources."""
    monkeypatch.setattr(ordered_index_scan, "FIRST_CHUNK", first_chunk)
    found = drain(OrderedIndexScanExec(ordered_scan((), direction), ExpressionCache()), context(snapshot))
    assert same(found) == same(model())
    positions = [position(each) for each in found]
    assert positions == sorted(positions, reverse=direction is Direction.DESCENDING)


@pytest.mark.parametrize("direction", [Direction.ASCENDING, Direction.DESCENDING])
def test_an_ordered_scan_within_bounds(snapshot: MapSnapshot, direction: Direction) -> None:
    bounds = Points((number(2.0), number(math.nan), number(-0.0), number(2.0), number(math.nan)), or_null=True)
    scan = ordered_scan((bounds,), direction, Call("is not null", (S,), BOOLEAN))
    found = drain(OrderedIndexScanExec(scan, ExpressionCache()), context(snapshot))
    expected = [
        each
        for each in model()
        if (each[1] is None or each[1] in {2.0, 0.0} or math.isnan(each[1])) and each[2] is not None
    ]
    assert same(found) == same(expected)
    positions = [position(each) for each in found]
    assert positions == sorted(positions, reverse=direction is Direction.DESCENDING)


def test_an_ordered_scan_reads_no_more_than_it_must(snapshot: MapSnapshot) -> None:
    operator, given = OrderedIndexScanExec(ordered_scan((), Direction.ASCENDING), ExpressionCache()), context(snapshot)
    operator.setup(given)
    assert operator.advance() is IterationResult.FETCHED
    assert given.activity.index_entries < len(model())


@pytest.mark.parametrize("kind", [SORTED, HASH])
@pytest.mark.parametrize("few_rows", [0, 64])
def test_an_unordered_scan_finds_each_row_once(
    snapshot: MapSnapshot, kind: Any, few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come as tuples where they are few and as Arrow columns where they are many."""
    monkeypatch.setattr(index_scan, "FEW_ROWS", few_rows)
    bounds = Points((number(2.0), number(2.0), number(math.nan), number(float("nan")), number(None)))
    scan = IndexScan(MAP, kind, (ID, S), (bounds,), None, Direction.UNORDERED, None, Traits())
    found = drain(IndexScanExec(scan, ExpressionCache()), context(snapshot))
    expected = [(e[0], e[2]) for e in model() if e[1] is not None and (e[1] == 2.0 or math.isnan(e[1]))]
    assert same(found) == same(expected)


def test_a_scan_is_direct_where_the_index_finds_too_much(snapshot: MapSnapshot) -> None:
    bounds = Interval((End(number(2.0), True),))
    by_index = IndexScan(MAP, SORTED, (ID,), (bounds,), None, Direction.UNORDERED, None, Traits())
    matching = index_choice.count_entries(by_index, snapshot.sources, index_lookups((bounds,), ()))
    # By a number of entries, by a share of the rows that the map has at execution, and by the least of several.
    all_rows = ((0.0, matching / snapshot.rows + 1e-9),)
    fewer = ((0.0, (matching - 1) / snapshot.rows + 1e-9),)
    constants = [(((0.0, 0.0),), True), (((10_000.0, 0.0),), False)]
    for lines, direct in (*constants, (all_rows, False), (fewer, True), ((*all_rows, *fewer), True)):
        above = ScanCutover(lines, rows=1)
        scan = IndexScan(
            MAP, SORTED, (ID,), (bounds,), None, Direction.UNORDERED, None, Traits(), AT_LEAST_TWO, scan_cutover=above
        )
        given = context(snapshot)
        assert same(drain(IndexScanExec(scan, ExpressionCache()), given)) == same(
            [(e[0],) for e in model() if at_least_two(e)]
        )
        assert (given.activity.rows_read > 0) is direct
        assert (given.activity.index_entries == 0) is direct


@pytest.mark.parametrize(
    "bound",
    [
        Points((number(None),)),
        Interval((End(number(None), True),)),
        Interval((End(number(3.0), True),), (End(number(2.0), True),)),
        Interval((End(number(2.0), False),), (End(number(2.0), True),)),
    ],
)
def test_bounds_that_nothing_satisfies_touch_no_data(snapshot: MapSnapshot, bound: Bound) -> None:
    for direction in (Direction.UNORDERED, Direction.ASCENDING):
        given = context(snapshot)
        node = ordered_scan((bound,), direction)
        assert drain(IndexScanExec(node, ExpressionCache()), given) == []
        assert given.activity.index_entries == given.activity.rows_read == 0


def test_an_index_scan_is_pruned_too(snapshot: MapSnapshot) -> None:
    keys = Points(tuple(Literal(id_, BIGINT) for id_ in (5, 15, 505)))
    two = Points((number(2.0),))
    pruning = Pruning(("id",), ((keys,),))
    remainder = Call("in", (ID, *keys.values), BOOLEAN)
    scan = IndexScan(MAP, SORTED, (ID,), (two,), remainder, Direction.UNORDERED, pruning, Traits())
    given = context(snapshot)
    assert sorted(drain(IndexScanExec(scan, ExpressionCache()), given)) == [(5,), (15,), (505,)]
    assert given.activity.partitions <= 3
    assert given.activity.index_entries < sum(each[1] == 2.0 for each in model())


def test_key_lookup_finds_each_key_once_and_newest(snapshot: MapSnapshot) -> None:
    ids = [3, 4, 5, 5, 301, 302, 503, 10_000, None]
    keys = (Points(tuple(Literal(id_, BIGINT) for id_ in ids)),)
    expected = [each for each in model() if each[0] in ids]
    lookup = KeyLookup(MAP, (ID, N, S), keys, None, None, Traits())
    assert same(drain(KeyLookupExec(lookup, ExpressionCache()), context(snapshot))) == same(expected)
    # On members each key is found by the one that owns its partition.
    pruned = KeyLookup(MAP, (ID, N, S), keys, None, Pruning(("id",), (keys,)), Traits())
    for node in (lookup, pruned):
        found: Rows = []
        for owned in (range(5), range(5, 13)):
            found += drain(KeyLookupExec(node, ExpressionCache()), context(snapshot, *owned))
        assert same(found) == same(expected)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_scans_check_before_each_batch(snapshot: MapSnapshot, failing: int) -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise SqlError(ErrorCode.PARTITION_DISTRIBUTION, "moved")

    operator = MapScanExec(MapScan(MAP, (ID,), None, None, Traits()), ExpressionCache())
    with pytest.raises(SqlError, match="moved"):
        drain(operator, context(snapshot, check=check, scan_batch_rows=1))
    assert calls == failing


def test_a_piece_that_a_worker_reads_is_checked(snapshot: MapSnapshot) -> None:
    def check() -> None:
        raise SqlError(ErrorCode.PARTITION_DISTRIBUTION, "moved")

    operator = MapScanExec(MapScan(MAP, (ID,), None, None, Traits()), ExpressionCache())
    operator.setup(context(snapshot, check=check))
    with pytest.raises(SqlError, match="moved"):
        operator.fork().advance()


def test_a_map_without_snapshot_is_gone() -> None:
    operator = MapScanExec(MapScan(MAP, (ID,), None, None, Traits()), ExpressionCache())
    with pytest.raises(SqlError) as caught:
        drain(operator, ExecContext(Parameters(), {}))
    assert caught.value.code is ErrorCode.MAP_DESTROYED
