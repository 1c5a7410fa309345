"""Fragments that feed fragments on members: hash and broadcast edges, tiny buffers, cancel, pruning, errors."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext, ExpressionCache
from remuda.expr import Call, Column, Literal, Parameters
from remuda.expr.cancellation import CancellationToken
from remuda.plan.bounds import Points, Pruning
from remuda.plan.fragments import Plan, split
from remuda.plan.joins import JoinKey, JoinKind
from remuda.plan.physical import (
    BroadcastExchange,
    HashExchange,
    HashJoin,
    MapScan,
    PhysicalNode,
    Receive,
    Root,
    RootExchange,
    Route,
    Send,
    Sort,
)
from remuda.plan.result_column import ResultColumn
from remuda.plan.traits import Distribution, DistributionKind, SortKey, Traits
from remuda.runtime import Execution, QueryState, Scheduler, channel, edges, local
from remuda.runtime.local import LocalRuntime
from remuda.types import BIGINT, BOOLEAN
from tests.harness.decisions import forced

HERE = Traits()
ORDERS, CUSTOMERS = 2_000, 150

ID, CUSTOMER = Column(1, "id", BIGINT), Column(2, "customer", BIGINT)
NUMBER, REGION = Column(3, "number", BIGINT), Column(4, "region", BIGINT)


@pytest.fixture(params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(local, "ExecContext", functools.partial(ExecContext, scan_batch_rows=64))
    monkeypatch.setattr(edges, "BoundedChannel", functools.partial(channel.BoundedChannel, capacity=1))
    with remuda.open(members=request.param, partitions=23) as opened:
        opened.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE customers (number BIGINT, region BIGINT, PRIMARY KEY (number))")
        opened.load("orders", pa.table({"id": range(ORDERS), "customer": [customer_of(id_) for id_ in range(ORDERS)]}))
        opened.load("customers", pa.table({"number": range(CUSTOMERS), "region": [n % 7 for n in range(CUSTOMERS)]}))
        yield opened


def customer_of(id_: int) -> int | None:
    return None if id_ % 10 == 0 else id_ % 200


def scans(grid: Any, pruning: Pruning | None = None) -> tuple[MapScan, MapScan]:
    catalog = grid.store.catalog
    orders, customers = (catalog.find_map(name, grid.search_path) for name in ("orders", "customers"))
    condition = None
    if pruning is not None:
        condition = Call("=", (NUMBER, Literal(5, BIGINT)), BOOLEAN)
    return (
        MapScan(orders, (ID, CUSTOMER), None, None, HERE),
        MapScan(customers, (NUMBER, REGION), condition, pruning, HERE),
    )


def join(kind: JoinKind, left: PhysicalNode, right: PhysicalNode) -> HashJoin:
    return HashJoin(kind, left, right, (JoinKey(CUSTOMER, NUMBER),), None, None, None, HERE)


def start(grid: Any, tree: PhysicalNode, timeout: float | None = None) -> Execution:
    top = Root(tree, tree.columns, tuple(column.name for column in tree.columns), HERE)
    columns = tuple(ResultColumn(column.name, column.type, True) for column in tree.columns)
    maps = tuple(scan.map for scan in scans(grid))
    cluster = grid.cluster
    table = cluster.partition_table.partition_map()
    plan = Plan("", top, split(top), (), (), columns, maps, table)
    snapshots = dict(zip((each.id for each in maps), grid.store.snapshot(maps), strict=True))
    runtime: LocalRuntime = grid.engine.runtime
    state = QueryState(CancellationToken(timeout))
    return runtime.start(plan, Parameters((), ()), snapshots, ExpressionCache(), state, check_objects=lambda: None)


def read(execution: Execution) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while (batch := execution.next_batch()) is not None:
        rows.extend(batch.tuples())
    return sorted(rows, key=repr)


def expected(kind: JoinKind) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for id_ in range(ORDERS):
        customer = customer_of(id_)
        is_met = customer is not None and customer < CUSTOMERS
        match kind:
            case JoinKind.SEMI | JoinKind.ANTI:
                rows.extend([(id_, customer)] if is_met == (kind is JoinKind.SEMI) else [])
            case _ if is_met:
                assert customer is not None
                rows.append((id_, customer, customer, customer % 7))
            case JoinKind.LEFT | JoinKind.FULL:
                rows.append((id_, customer, None, None))
    if kind in {JoinKind.RIGHT, JoinKind.FULL}:
        met = {customer_of(id_) for id_ in range(ORDERS)}
        rows.extend((None, None, number, number % 7) for number in range(CUSTOMERS) if number not in met)
    return sorted(rows, key=repr)


KINDS = [JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_one_side_comes_to_where_the_other_is(grid: Any, kind: JoinKind) -> None:
    orders, customers = scans(grid)
    tree = RootExchange(join(kind, HashExchange(orders, (CUSTOMER,), HERE), customers), HERE)
    assert read(start(grid, tree)) == expected(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_both_sides_come_together(grid: Any, kind: JoinKind) -> None:
    orders, customers = scans(grid)
    both = join(kind, HashExchange(orders, (CUSTOMER,), HERE), HashExchange(customers, (NUMBER,), HERE))
    assert read(start(grid, RootExchange(both, HERE))) == expected(kind)


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI], ids=str)
def test_right_side_comes_to_every_member(grid: Any, kind: JoinKind) -> None:
    orders, customers = scans(grid)
    tree = RootExchange(join(kind, orders, BroadcastExchange(customers, HERE)), HERE)
    assert read(start(grid, tree)) == expected(kind)


def test_a_chain_of_fragments_on_members(grid: Any) -> None:
    """The rows of a join that met on one member are sent on to another, and come back in order."""
    orders, customers = scans(grid)
    first = join(JoinKind.INNER, HashExchange(orders, (CUSTOMER,), HERE), customers)
    other = Column(5, "id", BIGINT), Column(6, "customer", BIGINT)
    again = MapScan(orders.map, other, None, None, HERE)
    second = HashJoin(
        JoinKind.SEMI, HashExchange(first, (ID,), HERE), again, (JoinKey(ID, other[0]),), None, None, None, HERE
    )
    ordered = Traits(collation=(SortKey(ID.id),))
    tree = RootExchange(Sort(second, (SortKey(ID.id),), ordered), ordered)
    execution = start(grid, tree)
    rows: list[tuple[Any, ...]] = []
    while (batch := execution.next_batch()) is not None:
        rows.extend(batch.tuples())
    assert rows == sorted(expected(JoinKind.INNER))


def test_rows_that_find_no_match_where_a_scan_is_pruned_are_not_lost(grid: Any) -> None:
    """Every member takes part, though only one has the partition that the scan needs."""
    pruning = Pruning(("number",), ((Points((Literal(5, BIGINT),)),),))
    orders, customers = scans(grid, pruning)
    rows = read(
        start(grid, RootExchange(join(JoinKind.LEFT, HashExchange(orders, (CUSTOMER,), HERE), customers), HERE))
    )
    assert len(rows) == ORDERS
    assert [row[2] for row in rows if row[2] is not None] == [5] * sum(customer_of(id_) == 5 for id_ in range(ORDERS))


BY_CUSTOMER = Traits(distribution=Distribution(DistributionKind.PARTITIONED, (CUSTOMER.id,)))
BY_NUMBER = Traits(distribution=Distribution(DistributionKind.PARTITIONED, (NUMBER.id,)))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT, JoinKind.LEFT, JoinKind.ANTI])
def test_members_where_no_routed_row_matters_take_no_part(grid: Any, kind: JoinKind) -> None:
    """Where an unmatched row belongs to the result, every member takes part; else the one with the customer."""
    orders, customers = scans(grid, Pruning(("number",), ((Points((Literal(5, BIGINT),)),),)))
    routed = HashExchange(orders, (CUSTOMER,), BY_CUSTOMER)
    tree = replace(join(kind, routed, replace(customers, traits=BY_NUMBER)), traits=BY_CUSTOMER)
    before = sum(member.fragments_run for member in grid.cluster.members)
    rows = read(start(grid, RootExchange(tree, HERE)))
    met = [(id_, 5, 5, 5) for id_ in range(ORDERS) if customer_of(id_) == 5]
    others = [(id_, customer_of(id_)) for id_ in range(ORDERS) if customer_of(id_) != 5]
    every: dict[JoinKind, list[tuple[Any, ...]]] = {
        JoinKind.INNER: met,
        JoinKind.RIGHT: met,
        JoinKind.SEMI: [row[:2] for row in met],
        JoinKind.ANTI: others,
        JoinKind.LEFT: [*met, *((*row, None, None) for row in others)],
    }
    assert rows == sorted(every[kind], key=repr)
    members = len(grid.cluster.members)
    joining = members if kind in {JoinKind.LEFT, JoinKind.ANTI} else 1
    assert sum(member.fragments_run for member in grid.cluster.members) - before == members + joining


def test_a_routed_right_side_matters_only_where_the_left_one_has_rows(grid: Any) -> None:
    orders, customers = scans(grid, Pruning(("number",), ((Points((Literal(5, BIGINT),)),),)))
    routed = HashExchange(orders, (CUSTOMER,), BY_CUSTOMER)
    key = (JoinKey(NUMBER, CUSTOMER),)
    for kind, found in ((JoinKind.SEMI, [(5, 5)]), (JoinKind.ANTI, []), (JoinKind.FULL, None)):
        tree = HashJoin(kind, replace(customers, traits=BY_NUMBER), routed, key, None, None, None, BY_NUMBER)
        before = sum(member.fragments_run for member in grid.cluster.members)
        rows = read(start(grid, RootExchange(tree, HERE)))
        assert rows == found if found is not None else len(rows) == ORDERS
        members = len(grid.cluster.members)
        joining = members if kind is JoinKind.FULL else 1
        assert sum(member.fragments_run for member in grid.cluster.members) - before == members + joining


def test_rows_that_meet_only_as_one_member_has_them_are_not_left_out(grid: Any) -> None:
    """A join that is not by the columns of the exchange has its rows anywhere, on a single member."""
    if len(grid.cluster.members) > 1:
        pytest.skip("of several members, rows with equal keys must be on one")
    orders, customers = scans(grid, Pruning(("number",), ((Points((Literal(5, BIGINT),)),),)))
    routed = HashExchange(orders, (ID,), Traits(distribution=Distribution(DistributionKind.PARTITIONED, (ID.id,))))
    tree = replace(join(JoinKind.INNER, routed, replace(customers, traits=BY_NUMBER)), traits=HERE)
    assert len(read(start(grid, RootExchange(tree, HERE)))) == sum(customer_of(id_) == 5 for id_ in range(ORDERS))


def test_nobody_sends_to_a_fragment_that_is_nowhere(grid: Any) -> None:
    nothing = Pruning(("number",), ())
    orders, customers = scans(grid, nothing)
    semi = HashJoin(
        JoinKind.SEMI, customers, BroadcastExchange(orders, HERE), (JoinKey(NUMBER, CUSTOMER),), None, None, None, HERE
    )
    before = [member.fragments_run for member in grid.cluster.members]
    assert read(start(grid, RootExchange(semi, HERE))) == []
    assert [member.fragments_run for member in grid.cluster.members] == before


def test_cancel_ends_all_fragments(grid: Any) -> None:
    orders, customers = scans(grid)
    both = join(JoinKind.INNER, HashExchange(orders, (CUSTOMER,), HERE), HashExchange(customers, (NUMBER,), HERE))
    for _ in range(5):
        execution = start(grid, RootExchange(both, HERE))
        execution.next_batch()
        execution.close()
        with pytest.raises(SqlError) as caught:
            read(execution)
        assert caught.value.code is ErrorCode.CANCELLED_BY_USER
    assert read(start(grid, RootExchange(both, HERE))) == expected(JoinKind.INNER)


def test_timeout_ends_all_fragments(grid: Any) -> None:
    orders, customers = scans(grid)
    both = join(JoinKind.INNER, HashExchange(orders, (CUSTOMER,), HERE), HashExchange(customers, (NUMBER,), HERE))
    execution = start(grid, RootExchange(both, HERE), timeout=1e-6)
    time.sleep(0.001)
    with pytest.raises(SqlError) as caught:
        read(execution)
    assert caught.value.code is ErrorCode.TIMEOUT


def test_error_in_a_far_fragment_reaches_the_reader(grid: Any) -> None:
    orders, customers = scans(grid)
    by_zero = Call("/", (ID, Call("-", (ID, Literal(77, BIGINT)), BIGINT)), BIGINT)
    failing = MapScan(orders.map, (ID, CUSTOMER), Call(">=", (by_zero, Literal(0, BIGINT)), BOOLEAN), None, HERE)
    tree = RootExchange(join(JoinKind.INNER, HashExchange(failing, (CUSTOMER,), HERE), customers), HERE)
    with pytest.raises(SqlError, match="zero"):
        read(start(grid, tree))


def test_many_at_once_on_few_threads(grid: Any) -> None:
    """Each of 60 queries has several fragments on each member; buffers hold one batch; two threads serve them all."""
    orders, customers = scans(grid)
    both = join(JoinKind.INNER, HashExchange(orders, (CUSTOMER,), HERE), HashExchange(customers, (NUMBER,), HERE))
    started = [start(grid, RootExchange(both, HERE)) for _ in range(60)]
    wanted = expected(JoinKind.INNER)
    assert all(read(execution) == wanted for execution in reversed(started))


def test_split_names_routes_and_numbers() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE customers (number BIGINT, region BIGINT, PRIMARY KEY (number))")
        orders, customers = scans(grid)
    tree = RootExchange(
        join(JoinKind.INNER, HashExchange(orders, (CUSTOMER,), HERE), BroadcastExchange(customers, HERE)), HERE
    )
    top = Root(tree, tree.columns, ("a", "b", "c", "d"), HERE)
    fragments = split(top)
    assert [fragment.number for fragment in fragments] == [0, 1, 2, 3]
    assert [fragment.received for fragment in fragments] == [(3,), (), (), (1, 2)]
    assert [fragment.route for fragment in fragments[1:]] == [Route.HASH, Route.BROADCAST, Route.ROOT]
    sends = [fragment.node for fragment in fragments[1:]]
    assert [send.keys for send in sends if isinstance(send, Send)] == [(CUSTOMER,), (), ()]
    assert isinstance(fragments[0].node.input, Receive)  # type: ignore[union-attr]


def test_scheduler_of_one_thread_is_enough() -> None:
    with remuda.open(members=3, partitions=23) as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, customer BIGINT, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE customers (number BIGINT, region BIGINT, PRIMARY KEY (number))")
        grid.load("orders", pa.table({"id": range(ORDERS), "customer": [customer_of(id_) for id_ in range(ORDERS)]}))
        grid.load("customers", pa.table({"number": range(CUSTOMERS), "region": [n % 7 for n in range(CUSTOMERS)]}))
        grid.engine.runtime.scheduler = Scheduler(1)
        orders, customers = scans(grid)
        both = join(JoinKind.FULL, HashExchange(orders, (CUSTOMER,), HERE), HashExchange(customers, (NUMBER,), HERE))
        assert read(start(grid, RootExchange(both, HERE))) == expected(JoinKind.FULL)
        grid.engine.runtime.scheduler.close()


def test_a_member_that_needs_no_rows_does_not_hold_up_their_sender() -> None:
    """Two of three members find their side of the join empty, and read nothing of what is sent to them."""
    query = "SELECT g.id, f.id FROM g LEFT JOIN f ON f.h = g.id WHERE g.v = ? OR g.v < 0"
    with forced({"exec.context.SCAN_BATCH_ROWS": 0}), remuda.open(members=3) as grid:
        grid.sql("SET timeout = 20")
        grid.sql("CREATE TABLE f (id BIGINT, h INTEGER, PRIMARY KEY (id))")
        grid.sql("CREATE TABLE g (id INTEGER, v INTEGER, PRIMARY KEY (id))")
        grid.map("f").put_all({number: (number % 200,) for number in range(1000)})
        grid.map("g").put_all({number: (number,) for number in range(200)})
        assert "HashExchange" in grid.explain(query)
        assert len(grid.sql(query, 7).fetchall()) == 5
