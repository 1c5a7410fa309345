"""Large scans on several threads: the same answers as on one, whatever is done to their rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.catalog import MapStatistics
from remuda.errors import SqlError
from remuda.exec import ExecContext, ExpressionCache, IterationResult, build_operator
from remuda.exec.offload import RowBudget
from remuda.expr import Call, Column, Literal, Parameters
from remuda.expr.cancellation import CancellationToken
from remuda.optimizer import cost
from remuda.optimizer.finishing.local_exchange import place_local_exchanges
from remuda.plan.aggregates import AggregateCall
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.physical import (
    Filter,
    HashAggregate,
    HashJoin,
    Limit,
    LocalExchange,
    MapScan,
    Phase,
    PhysicalNode,
    Project,
    Root,
    Sort,
    TopN,
    Values,
)
from remuda.plan.traits import SortKey, Traits
from remuda.plan.walk import walk
from remuda.runtime import QueryState, Scheduler
from remuda.runtime.local import FragmentWorkers
from remuda.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, decimal

HERE = Traits()
COUNT = 5_000
ID, GROUP, NUMBER = Column(1, "id", BIGINT), Column(2, "g", VARCHAR), Column(3, "n", BIGINT)
ROWS = [(id_, None if id_ % 11 == 0 else f"g{id_ % 7}", None if id_ % 5 == 0 else id_ % 100) for id_ in range(COUNT)]
ZERO = Literal(0, BIGINT)


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open(partitions=17) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, g VARCHAR, n BIGINT, PRIMARY KEY (id))")
        loaded = ROWS[: COUNT - 50]
        opened.load(
            "m",
            pa.table(
                {name: list(values) for name, values in zip("ign", zip(*loaded, strict=True), strict=True)}
            ).rename_columns(["id", "g", "n"]),
        )
        opened.map("m").put_all({id_: {"g": g, "n": n} for id_, g, n in ROWS[COUNT - 50 :]})
        yield opened


@pytest.fixture(params=[1, 2, 3])
def scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    monkeypatch.setattr(cost, "FORK_ROWS", 1)
    made = Scheduler(request.param)
    yield made
    made.close()


def scan(grid: Any, condition: Any = None) -> MapScan:
    definition = grid.store.catalog.find_map("m", grid.search_path)
    return MapScan(definition, (ID, GROUP, NUMBER), condition, None, HERE)


def planned(grid: Any, tree: PhysicalNode, rows: int = COUNT) -> Root:
    """The tree as it runs over a map of so many rows."""
    definition = grid.store.catalog.find_map("m", grid.search_path)
    numbers = count(1_000)
    top = Root(tree, tree.columns, tuple(column.name for column in tree.columns), HERE)
    statistics = {definition.id: MapStatistics(rows)}
    return place_local_exchanges(
        top, statistics, lambda name, type_: Column(next(numbers), name, type_), frozenset()
    ).tree


def run(grid: Any, scheduler: Scheduler, tree: PhysicalNode) -> list[tuple[Any, ...]]:
    definition = grid.store.catalog.find_map("m", grid.search_path)
    (snapshot,) = grid.store.snapshot((definition,))
    state = QueryState(CancellationToken(60))
    context = ExecContext(Parameters((), ()), {definition.id: snapshot}, scan_batch_rows=37, check=state.check)
    context.workers = FragmentWorkers(scheduler, state, state.wake_reader.set, [])
    operator = build_operator(planned(grid, tree), ExpressionCache())
    operator.setup(context)
    rows: list[tuple[Any, ...]] = []
    while True:
        state.wake_reader.clear()
        if state.error is not None:
            raise state.error
        state.check()
        result = operator.advance()
        if result is IterationResult.WAIT:
            state.wake_reader.wait(0.05)
            continue
        rows.extend(operator.current_batch.tuples())
        if result is IterationResult.FETCHED_DONE:
            return rows


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def below(limit: int) -> Call:
    return Call("<", (NUMBER, Literal(limit, BIGINT)), BOOLEAN)


def test_scan_filter_and_projection(grid: Any, scheduler: Scheduler) -> None:
    assert ordered(run(grid, scheduler, scan(grid))) == ordered(ROWS)
    doubled = Column(9, "d", BIGINT)
    tree = Project(
        Filter(scan(grid, below(50)), Call(">", (NUMBER, Literal(9, BIGINT)), BOOLEAN), HERE),
        (Assignment(doubled, Call("+", (NUMBER, NUMBER), BIGINT)), Assignment(GROUP, GROUP)),
        HERE,
    )
    expected = [(2 * n, g) for _, g, n in ROWS if n is not None and 9 < n < 50]
    assert ordered(run(grid, scheduler, tree)) == ordered(expected)


@pytest.mark.parametrize("phase", [Phase.COMPLETE, Phase.PARTIAL], ids=lambda phase: phase.value)
@pytest.mark.parametrize("keys", [(), (GROUP,), (GROUP, NUMBER)], ids=["none", "one", "two"])
def test_aggregates_are_merged(grid: Any, scheduler: Scheduler, keys: tuple[Column, ...], phase: Phase) -> None:
    calls = (
        AggregateCall(Column(20, "c", BIGINT), "count"),
        AggregateCall(Column(21, "s", decimal(38, 0)), "sum", NUMBER),
        AggregateCall(Column(22, "m", VARCHAR), "max", GROUP),
        AggregateCall(Column(23, "a", DOUBLE), "avg", NUMBER),
    )
    states = (
        (Column(30, "c", BIGINT),),
        (Column(31, "s", decimal(38, 0)),),
        (Column(32, "m", VARCHAR),),
        (Column(33, "s", decimal(38, 0)), Column(34, "c", BIGINT)),
    )
    tree = HashAggregate(scan(grid), keys, calls, states, phase, HERE)
    places = [(ID, GROUP, NUMBER).index(key) for key in keys]
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in ROWS:
        groups.setdefault(tuple(row[place] for place in places), []).append(row)
    expected = []
    for key, rows in groups.items():
        numbers = [row[2] for row in rows if row[2] is not None]
        total, texts = sum(numbers) if numbers else None, [row[1] for row in rows if row[1] is not None]
        last = [total / len(numbers) if numbers else None] if phase is Phase.COMPLETE else [total, len(numbers)]
        expected.append((*key, len(rows), total, max(texts, default=None), *last))
    found = run(grid, scheduler, tree)
    assert ordered([tuple(int(v) if type(v).__name__ == "Decimal" else v for v in row) for row in found]) == ordered(
        expected
    )


def test_distinct_is_not_merged(grid: Any, scheduler: Scheduler) -> None:
    call = AggregateCall(Column(20, "c", BIGINT), "count", NUMBER, distinct=True)
    tree = HashAggregate(scan(grid), (), (call,), ((),), Phase.COMPLETE, HERE)
    assert run(grid, scheduler, tree) == [(len({n for _, _, n in ROWS if n is not None}),)]


def test_first_rows_and_sort(grid: Any, scheduler: Scheduler) -> None:
    order = (SortKey(NUMBER.id, descending=True, nulls_first=False), SortKey(ID.id))
    wanted = sorted(ROWS, key=lambda row: (row[2] is None, -(row[2] or 0), row[0]))
    top = TopN(scan(grid), order, Literal(10, BIGINT), Literal(3, BIGINT), HERE)
    assert run(grid, scheduler, top) == wanted[3:13]
    assert run(grid, scheduler, Sort(scan(grid), order, HERE)) == wanted
    assert run(grid, scheduler, TopN(scan(grid), order, Literal(0, BIGINT), None, HERE)) == []


@pytest.mark.parametrize("kind", list(JoinKind), ids=lambda kind: kind.value)
def test_joins_share_their_table(grid: Any, scheduler: Scheduler, kind: JoinKind) -> None:
    value, label = Column(10, "v", BIGINT), Column(11, "label", BIGINT)
    literals = tuple((Literal(number, BIGINT), Literal(number * 10, BIGINT)) for number in range(0, 120, 2))
    right = Values((value, label), literals, HERE)
    mark = Column(12, "mark", BOOLEAN) if kind is JoinKind.MARK else None
    tree = HashJoin(kind, scan(grid), right, (JoinKey(NUMBER, value),), None, None, mark, HERE)
    expected: list[tuple[Any, ...]] = []
    for row in ROWS:
        met = row[2] is not None and row[2] % 2 == 0
        match kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                expected.extend([row] if met == (kind is JoinKind.SEMI) else [])
            case JoinKind.MARK:
                expected.append((*row, met))
            case _ if met:
                expected.append((*row, row[2], row[2] * 10))
            case _ if kind.keeps_left:
                expected.append((*row, None, None))
    if kind.keeps_right:
        met_numbers = {n for _, _, n in ROWS}
        rest = [number for number in range(0, 120, 2) if number not in met_numbers]
        expected.extend((None, None, None, number, number * 10) for number in rest)
    assert ordered(run(grid, scheduler, tree)) == ordered(expected)


def test_limit_over_a_scan_reads_no_further(grid: Any, scheduler: Scheduler) -> None:
    assert len(run(grid, scheduler, Limit(scan(grid), Literal(5, BIGINT), None, HERE))) == 5


def test_error_on_another_thread_reaches_the_reader(grid: Any, scheduler: Scheduler) -> None:
    by_zero = Call("/", (ID, Call("-", (ID, Literal(4_000, BIGINT)), BIGINT)), BIGINT)
    with pytest.raises(SqlError, match="zero"):
        run(grid, scheduler, scan(grid, Call(">", (by_zero, ZERO), BOOLEAN)))


@pytest.mark.usefixtures("scheduler")
def test_only_chains_over_a_scan_are_forked(grid: Any) -> None:
    assert isinstance(planned(grid, scan(grid)).input, LocalExchange)
    limited = planned(grid, Limit(scan(grid), ZERO, None, HERE))
    assert not any(isinstance(node, LocalExchange) for node in walk(limited))
    value = Column(10, "v", BIGINT)
    outer = HashJoin(
        JoinKind.FULL, scan(grid), Values((value,), (), HERE), (JoinKey(NUMBER, value),), None, None, None, HERE
    )
    assert not any(isinstance(node, LocalExchange) for node in walk(planned(grid, outer)))


def test_small_scans_stay_on_one_thread(grid: Any) -> None:
    """Whatever the plan was made for: a map can have become smaller."""

    class NoWorkers:
        parallelism = 8

        def start(self, feed: Any) -> Any:
            raise AssertionError(f"no thread is needed for {feed}")

    definition = grid.store.catalog.find_map("m", grid.search_path)
    (snapshot,) = grid.store.snapshot((definition,))
    context = ExecContext(Parameters((), ()), {definition.id: snapshot}, workers=NoWorkers())
    tree = planned(grid, scan(grid), cost.FORK_ROWS)
    assert isinstance(tree.input, LocalExchange)
    operator = build_operator(tree)
    operator.setup(context)
    while operator.advance() is not IterationResult.FETCHED_DONE:
        pass


def test_only_what_the_reader_does_itself_weighs(grid: Any, scheduler: Scheduler) -> None:
    """Batches that workers make and nobody changes are taken in the reader's thread; what is put on top moves."""
    definition = grid.store.catalog.find_map("m", grid.search_path)
    (snapshot,) = grid.store.snapshot((definition,))

    def weight(tree: PhysicalNode) -> int:
        context = ExecContext(Parameters((), ()), {definition.id: snapshot}, weight=RowBudget(movable=True))
        context.workers = FragmentWorkers(scheduler, QueryState(), lambda: None, [])
        build_operator(planned(grid, tree), ExpressionCache()).setup(context)
        return context.weight.rows

    alone = scheduler.parallelism == 1
    filtered = Filter(scan(grid, below(50)), Call(">", (NUMBER, ZERO), BOOLEAN), HERE)
    assert weight(filtered) == (COUNT if alone else 0)
    assert weight(Sort(filtered, (SortKey(ID.id),), HERE)) >= COUNT
    joined = HashJoin(
        JoinKind.INNER, scan(grid), Values((ID,), (), HERE), (JoinKey(NUMBER, ID),), None, None, None, HERE
    )
    assert weight(joined) >= COUNT
