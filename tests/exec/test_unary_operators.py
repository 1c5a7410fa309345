"""Filter, project, limit, sort, top-N, root, modify and send, over input cut and encoded in every way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.exec import Exec, ExpressionCache, IterationResult, RowBatch
from remuda.exec.context import ExecContext, Outgoing
from remuda.exec.exchange.exchange import SendExec
from remuda.exec.relational.filter import FilterExec
from remuda.exec.relational.limit import LimitExec
from remuda.exec.relational.modify import ModifyExec
from remuda.exec.relational.project import ProjectExec, RootExec
from remuda.exec.relational.values import ValuesExec
from remuda.exec.sort.sort import SortExec, TopNExec
from remuda.expr import Call, Column, Literal, Parameter
from remuda.plan.logical import Assignment, Operation
from remuda.plan.physical import Filter, Limit, Modify, Project, Root, Send, Sort, TopN, Values
from remuda.plan.traits import ROOT, SortKey, Traits
from remuda.runtime import BoundedChannel
from remuda.types import BIGINT, BOOLEAN, VARCHAR
from tests.exec.scripted import (
    DONE,
    FETCHED,
    FORMS,
    SHAPES,
    WAIT,
    Rows,
    ScriptedExec,
    batch_of,
    context,
    drain,
    script,
    source_node,
)
from tests.storage.maps import orders_map

NUMBER = Column(1, "number", BIGINT)
NAME = Column(2, "name", VARCHAR)
COLUMNS = (NUMBER, NAME)
INPUT = source_node(COLUMNS)
ROWS: Rows = [(5, "e"), (2, "b"), (None, "n"), (9, None), (2, "a"), (7, "g"), (1, "a"), (8, "h")]

each_input = pytest.mark.parametrize(("shape", "form"), [(shape, form) for shape in SHAPES for form in FORMS], ids=str)


def at_least(value: int | Parameter) -> Call:
    limit = Literal(value, BIGINT) if isinstance(value, int) else value
    return Call(">=", (NUMBER, limit), BOOLEAN)


def scripted(shape: str, form: str, rows: Rows = ROWS) -> ScriptedExec:
    return ScriptedExec(COLUMNS, script(COLUMNS, rows, SHAPES[shape], form))


@each_input
def test_filter_keeps_rows_for_which_the_condition_is_true(shape: str, form: str) -> None:
    operator = FilterExec(
        Filter(INPUT, at_least(Parameter(0, BIGINT)), Traits()), scripted(shape, form), ExpressionCache()
    )
    assert drain(operator, context(5, types=(BIGINT,))) == [(5, "e"), (9, None), (7, "g"), (8, "h")]


@each_input
def test_project_computes_columns(shape: str, form: str) -> None:
    doubled, constant = Column(11, "doubled", BIGINT), Column(12, "constant", VARCHAR)
    upper = Column(13, "upper", VARCHAR)
    assignments = (
        Assignment(doubled, Call("+", (NUMBER, NUMBER), BIGINT)),
        Assignment(constant, Parameter(0, VARCHAR)),
        Assignment(upper, Call("upper", (NAME,), VARCHAR)),
    )
    operator = ProjectExec(Project(INPUT, assignments, Traits()), scripted(shape, form), ExpressionCache())
    expected = [
        (None if number is None else 2 * number, "x", None if name is None else name.upper()) for number, name in ROWS
    ]
    assert drain(operator, context("x", types=(VARCHAR,))) == expected


@each_input
def test_limit_skips_and_stops(shape: str, form: str) -> None:
    for count, offset in ((0, 0), (1, 0), (4, 0), (3, 2), (8, 0), (2, 8), (100, 7), (None, 3)):
        limit = None if count is None else Literal(count, BIGINT)
        operator = LimitExec(Limit(INPUT, limit, Literal(offset, BIGINT), Traits()), scripted(shape, form))
        assert drain(operator) == ROWS[offset : None if count is None else offset + count], (count, offset)


def test_limit_does_not_advance_its_input_once_it_has_enough() -> None:
    source = scripted("two by two", "tuples")
    drain(LimitExec(Limit(INPUT, Literal(2, BIGINT), Literal(1, BIGINT), Traits()), source))
    assert source.advanced == 2


@pytest.mark.parametrize("clause", ["LIMIT", "OFFSET"])
@pytest.mark.parametrize(("value", "word"), [(None, "NULL"), (-1, "negative")])
def test_limit_and_offset_refuse_null_and_negative(clause: str, value: int | None, word: str) -> None:
    bad, good = Parameter(0, BIGINT), Literal(1, BIGINT)
    count, offset = (bad, good) if clause == "LIMIT" else (good, bad)
    for operator in (
        LimitExec(Limit(INPUT, count, offset, Traits()), scripted("one batch", "tuples")),
        TopNExec(TopN(INPUT, (SortKey(1),), count, offset, Traits()), scripted("one batch", "tuples")),
    ):
        with pytest.raises(SqlError, match=f"{clause} must not be {word}") as caught:
            operator.setup(context(value, types=(BIGINT,)))
        assert caught.value.code is ErrorCode.DATA_EXCEPTION


ORDERS: dict[str, tuple[tuple[SortKey, ...], Rows]] = {
    "ascending, NULL first": (
        (SortKey(1), SortKey(2)),
        [(None, "n"), (1, "a"), (2, "a"), (2, "b"), (5, "e"), (7, "g"), (8, "h"), (9, None)],
    ),
    "descending, NULL last": (
        (SortKey(1, descending=True, nulls_first=False), SortKey(2)),
        [(9, None), (8, "h"), (7, "g"), (5, "e"), (2, "a"), (2, "b"), (1, "a"), (None, "n")],
    ),
    "strings descending, NULL first": (
        (SortKey(2, descending=True), SortKey(1)),
        [(9, None), (None, "n"), (8, "h"), (7, "g"), (5, "e"), (2, "b"), (1, "a"), (2, "a")],
    ),
    "strings ascending, NULL last": (
        (SortKey(2, nulls_first=False), SortKey(1, descending=True)),
        [(2, "a"), (1, "a"), (2, "b"), (5, "e"), (7, "g"), (8, "h"), (None, "n"), (9, None)],
    ),
}


@each_input
def test_sort_delivers_every_order(shape: str, form: str) -> None:
    for order, (collation, expected) in ORDERS.items():
        assert drain(SortExec(Sort(INPUT, collation, Traits()), scripted(shape, form))) == expected, order


@each_input
def test_top_n_delivers_a_part_of_every_order(shape: str, form: str) -> None:
    for order, (collation, expected) in ORDERS.items():
        for count, offset in ((0, 0), (1, 0), (3, 2), (8, 0), (5, 8), (2**62, 1)):
            node = TopN(INPUT, collation, Literal(count, BIGINT), Literal(offset, BIGINT), Traits())
            found = drain(TopNExec(node, scripted(shape, form)))
            assert found == expected[offset : offset + count], (order, count, offset)


@each_input
def test_root_leaves_out_what_only_the_order_needed(shape: str, form: str) -> None:
    for columns, expected in (
        ((NAME,), [(name,) for _, name in ROWS]),
        ((NAME, NUMBER), [(name, number) for number, name in ROWS]),
        (COLUMNS, ROWS),
    ):
        names = tuple(column.name for column in columns)
        assert drain(RootExec(Root(INPUT, columns, names, Traits()), scripted(shape, form))) == expected


class _Writer:
    """Notes the rows of its one part when they are committed."""

    def __init__(self) -> None:
        self.rows: Rows = []
        self.finished = False
        self.committed: list[Rows] = []

    def part(self, _: ExecContext) -> _Writer:
        return self

    def add(self, batch: RowBatch) -> None:
        assert not self.finished
        self.rows.extend(batch.tuples())

    def finish(self) -> int:
        self.finished = True
        return len(self.rows)

    def prepared(self) -> bytes | None:
        raise AssertionError("the rows are here")

    def take_over(self, _rows: int, _prepared: bytes) -> None:
        raise AssertionError("no task has rows")

    def commit(self) -> int:
        assert self.finished
        self.committed.append(self.rows)
        return len(self.rows)


@each_input
def test_modify_hands_over_all_rows_at_once(shape: str, form: str) -> None:
    node = Modify(INPUT, orders_map(), Operation.SINK, Traits(distribution=ROOT))
    writer = _Writer()
    assert drain(ModifyExec(node, scripted(shape, form)), context(writer=writer, committer=writer)) == [(len(ROWS),)]
    assert writer.committed == [ROWS]


@each_input
def test_send_offers_again_what_found_no_room(shape: str, form: str) -> None:
    channel = BoundedChannel(lambda: None, capacity=1)
    operator = SendExec(Send(INPUT, 1, Traits()), scripted(shape, form))
    operator.setup(context(outgoing={1: Outgoing((channel,))}))
    received: Rows = []
    refused = 0
    while not channel.is_finished:
        before = len(received)
        result = operator.advance()
        if result is WAIT:
            refused += 1
            batch = channel.poll()
            received.extend(batch.tuples() if batch is not None else ())
        if result is DONE:
            while (batch := channel.poll()) is not None:
                received.extend(batch.tuples())
        assert len(received) >= before
    assert received == ROWS
    assert refused or shape == "one batch"


def operators() -> dict[str, Callable[[Exec], Exec]]:
    one, none = Literal(100, BIGINT), None
    return {
        "filter": lambda source: FilterExec(Filter(INPUT, at_least(0), Traits()), source, ExpressionCache()),
        "project": lambda source: ProjectExec(
            Project(INPUT, (Assignment(NAME, NAME),), Traits()), source, ExpressionCache()
        ),
        "limit": lambda source: LimitExec(Limit(INPUT, one, none, Traits()), source),
        "sort": lambda source: SortExec(Sort(INPUT, (SortKey(1),), Traits()), source),
        "top": lambda source: TopNExec(TopN(INPUT, (SortKey(1),), one, none, Traits()), source),
        "root": lambda source: RootExec(Root(INPUT, (NAME,), ("name",), Traits()), source),
    }


@pytest.mark.parametrize("name", operators())
@pytest.mark.parametrize("form", FORMS)
def test_an_empty_input_gives_no_rows(name: str, form: str) -> None:
    for steps in ([], [batch_of(COLUMNS, [], form)], [WAIT, batch_of(COLUMNS, [], form), WAIT]):
        assert drain(operators()[name](ScriptedExec(COLUMNS, steps))) == []


@pytest.mark.parametrize("name", operators())
@pytest.mark.parametrize("form", FORMS)
def test_an_operator_leaves_the_batch_of_its_input_alone(name: str, form: str) -> None:
    steps = script(COLUMNS, ROWS, (3,), form)
    batches = [step for step in steps if not isinstance(step, IterationResult)]
    before = [list(batch.tuples()) for batch in batches]
    drain(operators()[name](ScriptedExec(COLUMNS, steps)))
    assert [list(batch.tuples()) for batch in batches] == before


@pytest.mark.parametrize("name", ["filter", "project", "limit", "root"])
def test_a_streaming_operator_passes_each_wait_and_each_batch_on(name: str) -> None:
    """One batch in, one batch out: nothing is gathered, and a WAIT below is a WAIT above."""
    steps: Sequence[RowBatch | IterationResult] = [
        WAIT,
        batch_of(COLUMNS, ROWS[:1]),
        WAIT,
        batch_of(COLUMNS, ROWS[1:2]),
        batch_of(COLUMNS, []),
    ]
    operator = operators()[name](ScriptedExec(COLUMNS, steps))
    operator.setup(context())
    assert [operator.advance() for _ in steps] == [WAIT, FETCHED, WAIT, FETCHED, DONE]


def test_values_are_computed_from_the_parameters() -> None:
    rows = ((Literal(1, BIGINT), Parameter(0, VARCHAR)), (Parameter(1, BIGINT), Literal("n", VARCHAR)))
    node = Values(COLUMNS, rows, Traits())
    assert drain(ValuesExec(node, ExpressionCache()), context("x", None, types=(VARCHAR, BIGINT))) == [
        (1, "x"),
        (None, "n"),
    ]
