"""Random histories of a map against a plain dictionary: writes, loads, checkpoints, indexes, snapshots, re-opening."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from remuda.catalog import IndexType
from remuda.errors import ErrorCode, SqlError
from remuda.storage import Durability, Lookup, MapSnapshot, Range, Store, open_snapshot
from remuda.storage.load import map_load, segment_cut
from remuda.storage.load.change_format import ChangeFormat
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.merge_changes import ChangeCounts
from remuda.storage.state.applied_batches import BatchId
from remuda.types import BIGINT, DOUBLE, VARCHAR
from remuda.types.partition_hash import hash_values, partition_of
from tests.storage.maps import contents, in_order, index_on, map_of, same, table_of

Row = tuple[Any, ...]

COLUMNS = (("id", BIGINT), ("part", VARCHAR), ("customer", VARCHAR), ("amount", DOUBLE))
KEY_TYPES = [BIGINT, VARCHAR]
ids = st.integers(-3, 12)
parts = st.sampled_from(["", "a", "é"])
rows = st.tuples(
    ids,
    parts,
    st.none() | st.sampled_from(["x", "y", "zz"]),
    st.none() | st.sampled_from([float("nan"), -0.0, 0.0, 1.5, -7.25]),
)
row_lists = st.lists(rows, max_size=8)


def _key(row: Row) -> tuple[int, str]:
    return row[0], row[1]


class _History(RuleBasedStateMachine):
    """The key is (id, part), partitions go by `part` alone: the general case of both."""

    durable = False
    group_bytes = segment_cut.GROUP_BYTES

    def __init__(self) -> None:
        super().__init__()
        self.group_bytes_before, segment_cut.GROUP_BYTES = segment_cut.GROUP_BYTES, self.group_bytes
        self.folder = Path(tempfile.mkdtemp(prefix="remuda-test-")) if self.durable else None
        self.store = Store.open(self.folder, durability=Durability.OS)
        definition = map_of(COLUMNS, ("id", "part"), partitioned_by=("part",), partitions=5)
        self.store.create_map(definition)
        self.map = self.store.map(definition)
        self.model: dict[tuple[int, str], Row] = {}
        self.batch = -1
        """The number of the last batch that was applied."""
        self.held: list[tuple[MapSnapshot, list[Row]]] = []

    def teardown(self) -> None:
        segment_cut.GROUP_BYTES = self.group_bytes_before
        self.store.close()
        for snapshot, expected in self.held:
            assert same(contents(snapshot), expected)
        self.held.clear()
        if self.folder is not None:
            shutil.rmtree(self.folder)

    @rule(given=row_lists)
    def insert(self, given: list[Row]) -> None:
        keys = [_key(row) for row in given]
        if len(set(keys)) < len(keys) or any(key in self.model for key in keys):
            with pytest.raises(SqlError) as caught:
                self.map.insert(given)
            assert caught.value.code is ErrorCode.DATA_EXCEPTION
            assert "duplicate key" in caught.value.message
        else:
            assert self.map.insert(given) == len(given)
            self.model.update(zip(keys, given, strict=True))

    @rule(given=row_lists)
    def put(self, given: list[Row]) -> None:
        self.map.put(given)
        self.model.update((_key(row), row) for row in given)

    @rule(given=row_lists)
    def exchange(self, given: list[Row]) -> None:
        for row in given:
            old = self.map.exchange(row, tuple(range(len(COLUMNS))))
            expected = self.model.get(_key(row))
            assert same([each for each in (old,) if each], [each for each in (expected,) if each])
            self.model[_key(row)] = row

    @rule(keys=st.lists(st.tuples(ids, parts), max_size=6))
    def delete(self, keys: list[tuple[int, str]]) -> None:
        assert self.map.delete(keys) == len(set(keys) & self.model.keys())
        for key in keys:
            self.model.pop(key, None)

    @rule(given=row_lists, mode=st.sampled_from(["append", "replace", "upsert"]), bulk=st.booleans())
    def load(self, given: list[Row], mode: Any, bulk: bool) -> None:
        keys = [_key(row) for row in given]
        table = table_of(self.map.definition, given)
        repeated = len(set(keys)) < len(keys)
        small, map_load.SMALL_LOAD = map_load.SMALL_LOAD, 0 if bulk else map_load.SMALL_LOAD
        try:
            if repeated or (mode == "append" and any(key in self.model for key in keys)):
                with pytest.raises(SqlError):
                    self.map.load(table, mode)
                return
            assert self.map.load(table, mode) == len(given)
        finally:
            map_load.SMALL_LOAD = small
        if mode == "replace":
            self.model.clear()
        self.model.update(zip(keys, given, strict=True))

    @rule(given=row_lists, deletes=st.lists(st.booleans(), min_size=8, max_size=8), number=st.integers(0, 5))
    def apply_changes(self, given: list[Row], deletes: list[bool], number: int) -> None:
        """A batch of a stream, whose number may be one that was applied or left behind."""
        keys = [_key(row) for row in given]
        words = pa.array(["d" if gone else "u" for gone, _ in zip(deletes, given, strict=False)], pa.string())
        changes = table_of(self.map.definition, given).append_column("op", words)
        rules = ChangeRules(batch=BatchId("stream", number))
        if len(set(keys)) < len(keys):
            with pytest.raises(SqlError):
                self.map.load_changes([changes], ChangeFormat("op"), rules)
            return
        counts = self.map.load_changes([changes], ChangeFormat("op"), rules)
        if number <= self.batch:
            assert counts == ChangeCounts()
            return
        self.batch = number
        for row, gone in zip(given, deletes, strict=False):
            if gone:
                self.model.pop(_key(row), None)
            else:
                self.model[_key(row)] = row

    @rule()
    def optimize(self) -> None:
        self.map.optimize()
        assert all(len(each.deleted) == 0 for each in self.map.stored)

    @rule()
    def truncate(self) -> None:
        assert self.map.truncate() == len(self.model)
        self.model.clear()

    @rule()
    def checkpoint(self) -> None:
        self.store.checkpoint()

    @rule(
        columns=st.sampled_from([("amount",), ("customer",), ("customer", "amount")]),
        kind=st.sampled_from(IndexType),
    )
    def create_index(self, columns: tuple[str, ...], kind: IndexType) -> None:
        if len(self.map.definition.indexes) < 4:
            self.store.create_index(self.map.definition, index_on(*columns, type_=kind))

    @precondition(lambda self: self.map.definition.indexes)
    @rule()
    def drop_index(self) -> None:
        self.store.drop_index(self.map.definition, self.map.definition.indexes[0])

    @rule()
    def hold_a_snapshot(self) -> None:
        self.held = [*self.held[-3:], (self.map.snapshot(), in_order(list(self.model.values())))]

    @rule()
    def describe_a_snapshot(self) -> None:
        if self.durable:
            opened = open_snapshot(self.map.snapshot().describe())
            assert same(contents(opened), in_order(list(self.model.values())))
            self._check_indexes(opened)

    @rule()
    def open_again(self) -> None:
        if self.durable:
            definition, catalog = self.map.definition, self.store.catalog
            self.store.close()
            self.store = Store.open(self.folder, durability=Durability.OS)
            assert self.store.catalog == catalog
            self.map = self.store.map(definition)

    @rule()
    def read_from_another_store(self) -> None:
        if self.durable:
            reader = Store.open(self.folder, read_only=True)
            assert same(contents(reader.map(self.map.definition).snapshot()), in_order(list(self.model.values())))

    @invariant()
    def everything_agrees(self) -> None:
        expected = in_order(list(self.model.values()))
        snapshot = self.map.snapshot()
        assert len(self.map) == snapshot.rows == len(self.model)
        assert same(contents(snapshot), expected)
        for key in [*self.model, (99, "a")]:
            found = self.map.lookup(key, (0, 1, 2, 3))
            assert (found is None) == (key not in self.model)
            assert found is None or same([found], [self.model[key]])
        keys = [(1, "a"), (2, "é"), (99, ""), (3, "")]
        at_keys = [row for source in snapshot.sources for row in source.rows_at((0, 1), source.key_positions(keys))]
        assert sorted(at_keys) == sorted(key for key in keys if key in self.model)
        self._check_indexes(snapshot)
        for held, rows_then in self.held:
            assert same(contents(held), rows_then)

    @invariant()
    def pruned_reads_see_their_partitions(self) -> None:
        chosen = np.array([0, 2, 3])
        expected = [row for row in self.model.values() if partition_of(hash_values(row[1:2], [VARCHAR]), 5) in chosen]
        assert same(contents(self.map.snapshot(), chosen), in_order(expected))

    def _check_indexes(self, snapshot: MapSnapshot) -> None:
        model = list(self.model.values())
        for index in snapshot.definition.indexes:
            column = snapshot.definition.position(index.columns[0])
            if index.type.serves.order:
                everything = Lookup()
                self._check_lookup(snapshot, index.id, everything, model)
                values = [row for row in model if row[column] is not None]
                self._check_lookup(snapshot, index.id, Lookup((), Range()), values)
            if len(index.columns) == 1:
                for value in (None, "x") if index.columns == ("customer",) else (None, 0.0):
                    matching = [row for row in model if row[column] == value]
                    self._check_lookup(snapshot, index.id, Lookup((value,)), matching)

    def _check_lookup(self, snapshot: MapSnapshot, index_id: str, lookup: Lookup, expected: list[Row]) -> None:
        found = [
            row
            for source in snapshot.sources
            for row in source.rows_at((0, 1, 2, 3), source.positions(index_id, lookup))
        ]
        assert same(in_order(found), in_order(expected))


class _DurableHistory(_History):
    durable = True


class _DurableHistoryOfGroups(_DurableHistory):
    group_bytes = 150
    """A few rows."""


class TestInMemory(_History.TestCase):  # type: ignore[valid-type,misc]
    settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class TestInAFolder(_DurableHistory.TestCase):  # type: ignore[valid-type,misc]
    settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


class TestInAFolderOfGroups(_DurableHistoryOfGroups.TestCase):  # type: ignore[valid-type,misc]
    settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
