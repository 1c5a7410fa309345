"""Lookup joins by key and by index, over several sources, few rows and many, whole maps and some partitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from remuda.catalog import IndexDefinition
from remuda.exec import ExecContext, ExpressionCache
from remuda.exec.join import lookup_join
from remuda.exec.join.lookup_join import LookupJoinExec
from remuda.expr import Call, Column, Expression, Literal, Parameters
from remuda.plan.joins import JoinKind
from remuda.plan.physical import LookupJoin
from remuda.plan.traits import Traits
from remuda.storage import MapSnapshot, Store, hash_values, partition_of
from remuda.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR
from tests.exec.scripted import FORMS, SHAPES, Rows, ScriptedExec, drain, script, source_node
from tests.exec.test_scans import HASH, ID, MAP, SORTED, N, S, row
from tests.storage.maps import table_of

WANTED = Column(10, "wanted", BIGINT)
NUMBER = Column(11, "x", DOUBLE)
TEXT = Column(12, "t", VARCHAR)
INPUT = (WANTED, NUMBER, TEXT)
KINDS = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
WAYS = ((256, None, None), (1, None, None), (None, None, None), (256, 0, None), (256, 3, None), (256, 1000, 1))
"""Rows that are joined as tuples, and when the map is held: above so many rows, or so many entries of an index."""
LEFTS: Rows = [
    (1, 1.0, "a"),
    (None, None, None),
    (5, math.nan, ""),
    (1000, 77.0, "zz"),
    (1, -0.0, "b"),
    (301, 2.0, None),
    (4, float("nan"), "a"),
    (509, math.inf, "a"),
]


@pytest.fixture(scope="module")
def snapshot() -> Iterator[MapSnapshot]:
    store = Store.open(None, partitions=13)
    store.create_map(MAP)
    map_store = store.map(MAP)
    map_store.load(table_of(MAP, [row(id_) for id_ in range(500)]), "append")
    map_store.checkpoint()
    map_store.put([row(id_) for id_ in range(500, 540)])
    map_store.delete([4])
    yield map_store.snapshot()
    store.close()


STORED: Rows = [row(id_) for id_ in range(540) if id_ != 4]


def is_equal(one: Any, other: Any) -> bool:
    return one is not None and other is not None and (one == other or (one != one and other != other))


def run(
    snapshot: MapSnapshot,
    node: LookupJoin,
    lefts: Rows = LEFTS,
    shape: str = "one batch",
    form: str = "tuples",
    partitions: np.ndarray | None = None,
) -> Rows:
    """Look up every row, as tuples and as columns; hold the map from the first one on, and after a few rows or entries.

    The answer is the same.
    """
    answers = []
    for row_cutover, hold_cutover, hold_entries in WAYS:
        source = ScriptedExec(INPUT, script(INPUT, lefts, SHAPES[shape], form))
        context = ExecContext(Parameters((), ()), {MAP.id: snapshot}, partitions)
        entries = None if node.index is None else hold_entries
        chosen = replace(node, row_cutover=row_cutover, hold_cutover=hold_cutover, hold_entries=entries)
        answers.append(ordered(drain(LookupJoinExec(chosen, source, ExpressionCache()), context)))
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def ordered(rows: Rows) -> Rows:
    return sorted([tuple("NaN" if value != value else value for value in each) for each in rows], key=repr)


def node_of(
    kind: JoinKind,
    index: IndexDefinition | None,
    keys: tuple[Expression, ...],
    filter_: Expression | None = None,
    condition: Expression | None = None,
    columns: tuple[Column, ...] = (S, ID),
) -> LookupJoin:
    return LookupJoin(kind, source_node(INPUT), MAP, index, columns, keys, filter_, condition, Traits())


def expected(kind: JoinKind, lefts: Rows, matches: list[Rows]) -> Rows:
    rows: Rows = []
    for left, rights in zip(lefts, matches, strict=True):
        match kind:
            case JoinKind.SEMI:
                rows.extend([left] if rights else [])
            case JoinKind.ANTI:
                rows.extend([] if rights else [left])
            case _:
                rows.extend((*left, s, id_) for id_, _, s in rights)
                rows.extend([(*left, None, None)] if kind is JoinKind.LEFT and not rights else [])
    return ordered(rows)


@pytest.mark.parametrize("each", [0, 1 << 40], ids=["one by one", "at once"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_a_memtable_of_more_or_fewer_entries_than_keys(
    snapshot: MapSnapshot, kind: JoinKind, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_join, "ENTRIES_FOR_EACH", each)
    monkeypatch.setattr(snapshot, "keyed_memtable", None)
    matches = [[stored for stored in STORED if is_equal(left[0], stored[0])] for left in LEFTS]
    found = run(snapshot, node_of(kind, None, (WANTED,)), form="arrow")
    assert found == expected(kind, LEFTS, matches)
    assert (snapshot.keyed_memtable is None) == (each == 0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@pytest.mark.parametrize(("shape", "form"), [(shape, form) for shape in SHAPES for form in FORMS], ids=str)
def test_matches_by_key_are_those_with_equal_keys(snapshot: MapSnapshot, kind: JoinKind, shape: str, form: str) -> None:
    matches = [[stored for stored in STORED if is_equal(left[0], stored[0])] for left in LEFTS]
    assert run(snapshot, node_of(kind, None, (WANTED,)), LEFTS, shape, form) == expected(kind, LEFTS, matches)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("index", [SORTED, HASH], ids=["sorted", "hash"])
def test_matches_by_index_are_those_with_equal_values(
    snapshot: MapSnapshot, kind: JoinKind, form: str, index: IndexDefinition
) -> None:
    matches = [[stored for stored in STORED if is_equal(left[1], stored[1])] for left in LEFTS]
    assert run(snapshot, node_of(kind, index, (NUMBER,)), form=form) == expected(kind, LEFTS, matches)


@pytest.mark.parametrize("form", FORMS)
def test_by_two_columns_of_an_index(snapshot: MapSnapshot, form: str) -> None:
    matches = [
        [stored for stored in STORED if is_equal(left[1], stored[1]) and is_equal(left[2], stored[2])] for left in LEFTS
    ]
    node = node_of(JoinKind.LEFT, SORTED, (NUMBER, TEXT))
    assert run(snapshot, node, form=form) == expected(JoinKind.LEFT, LEFTS, matches)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@pytest.mark.parametrize("form", FORMS)
def test_filter_of_the_map_and_condition_of_the_pair(snapshot: MapSnapshot, kind: JoinKind, form: str) -> None:
    below = Call("<", (ID, Literal(100, BIGINT)), BOOLEAN)
    other = Call("<", (TEXT, S), BOOLEAN)
    node = node_of(kind, HASH, (NUMBER,), below, other)
    matches = [
        [
            stored
            for stored in STORED
            if is_equal(left[1], stored[1])
            and stored[0] < 100
            and None not in (left[2], stored[2])
            and left[2] < stored[2]
        ]
        for left in LEFTS
    ]
    assert run(snapshot, node, form=form) == expected(kind, LEFTS, matches)


def test_only_the_partitions_of_the_fragment(snapshot: MapSnapshot) -> None:
    partitions = np.arange(0, 13, 2)
    lefts: Rows = [(id_, 1.0, "a") for id_ in range(0, 540, 3)]
    here = {id_ for id_ in range(540) if partition_of(hash_values((id_,), (BIGINT,)), 13) % 2 == 0}
    by_key = run(snapshot, node_of(JoinKind.INNER, None, (WANTED,)), lefts, partitions=partitions)
    assert [each[4] for each in by_key] == [each[0] for each in by_key]
    assert {each[4] for each in by_key} == {left[0] for left in lefts} & here
    by_index = run(snapshot, node_of(JoinKind.INNER, HASH, (NUMBER,)), lefts[:1], partitions=partitions)
    assert {each[4] for each in by_index} == {stored[0] for stored in STORED if stored[1] == 1.0} & here


def test_columns_of_the_key_need_not_be_delivered(snapshot: MapSnapshot) -> None:
    assert run(snapshot, node_of(JoinKind.INNER, None, (WANTED,), columns=(S,)), LEFTS[:1]) == [
        (1, 1.0, "a", row(1)[2])
    ]
    arrow = run(snapshot, node_of(JoinKind.INNER, None, (WANTED,), columns=(S, N)), LEFTS[:1], form="arrow")
    assert arrow == [(1, 1.0, "a", row(1)[2], "NaN")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_a_map_of_which_no_row_passes_ends_the_join_early(snapshot: MapSnapshot, kind: JoinKind) -> None:
    """Where left rows without a match make no difference, no further one is read."""
    nothing = Call("<", (ID, Literal(0, BIGINT)), BOOLEAN)
    node = replace(node_of(kind, None, (WANTED,), nothing), hold_cutover=0)
    batches = script(INPUT, LEFTS, SHAPES["one by one"], "tuples")
    source = ScriptedExec(INPUT, batches)
    context = ExecContext(Parameters((), ()), {MAP.id: snapshot}, None)
    found = drain(LookupJoinExec(node, source, ExpressionCache()), context)
    assert ordered(found) == expected(kind, LEFTS, [[] for _ in LEFTS])
    assert source.advanced == (1 if kind in {JoinKind.INNER, JoinKind.SEMI} else len(LEFTS))


@pytest.mark.parametrize("form", FORMS)
def test_a_skewed_reference_is_counted_before_it_is_read(snapshot: MapSnapshot, form: str) -> None:
    """Many matches of few rows come as columns, the matches of most of the map by reading it."""
    matches = [[stored for stored in STORED if is_equal(left[1], stored[1])] for left in LEFTS[:1]]
    assert len(matches[0]) > 1
    notes = {}
    for hold_entries in (0, 1, 1000):
        node = replace(
            node_of(JoinKind.INNER, HASH, (NUMBER,)), row_cutover=1, hold_cutover=1000, hold_entries=hold_entries
        )
        source = ScriptedExec(INPUT, script(INPUT, LEFTS[:1], SHAPES["one batch"], form))
        context = ExecContext(Parameters((), ()), {MAP.id: snapshot}, None)
        found = drain(LookupJoinExec(node, source, ExpressionCache()), context)
        assert ordered(found) == expected(JoinKind.INNER, LEFTS[:1], matches)
        notes[hold_entries] = context.activity.decisions
    counted = (len(matches[0]),)
    assert notes[0] == notes[1] == {"map held: {} entries": counted}
    assert notes[1000] == ({"by columns: {} entries": counted} if form == "tuples" else {})
