"""Random changes of a map of which some cannot commit: none of these has an effect, and a kill never loses another."""

from __future__ import annotations

import gc
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from remuda.errors import StorageError
from remuda.storage import Durability, MapStore, Store
from remuda.storage.folder import kept_versions
from remuda.storage.load import map_load, segment_cut
from remuda.storage.load.statement_load import StatementLoad, delete_rows
from tests.storage.crash_writer import Row, apply_batch
from tests.storage.folders import names_in_force, only_map
from tests.storage.maps import contents, index_on, orders_map, table_of

Rows = dict[int, Row]


class History:
    """A map beside a plain dictionary. `saved` is what a kill leaves: without a log that of the last commit."""

    def __init__(self, folder: Path, durability: Durability, seed: int) -> None:
        self.folder = folder
        self.durability = durability
        self.random = random.Random(seed)
        self.store = Store.open(folder, durability=durability)
        self.store.create_map(orders_map())
        self.rows: Rows = {}
        self.saved: Rows = {}
        self.batch = 0

    @property
    def orders(self) -> MapStore:
        return only_map(self.store)

    @property
    def blocker(self) -> Path:
        """A folder in the place of the next manifest: no commit can be made while it is there."""
        return self.folder / "MANIFEST.new"

    def step(self) -> None:
        change, commits = self.random.choice(
            [
                (self.put, False),
                (self.delete, False),
                (self.load, True),
                (self.replace, True),
                (self.apply, True),
                (self.write_many, True),
                (self.delete_many, True),
                (self.truncate, True),
                (self.store.checkpoint, True),
                (self.store.checkpoint, True),
                (self.orders.optimize, True),
                (self.restore, True),
                (self.change_index, True),
                (self.store.vacuum, False),
            ]
        )
        is_blocked = self.random.random() < 0.4
        if is_blocked:
            self.blocker.mkdir()
        before = dict(self.rows)
        try:
            self._run(change, before, is_blocked=is_blocked, commits=commits)
        finally:
            if is_blocked:
                self.blocker.rmdir()
        assert {row[0]: row for row in contents(self.orders.snapshot())} == self.rows

    def _run(self, change: Callable[[], object], before: Rows, *, is_blocked: bool, commits: bool) -> None:
        try:
            change()
        except StorageError:
            assert is_blocked
            self.rows = before
        else:
            if self.durability is not Durability.NONE or (commits and not is_blocked):
                self.saved = dict(self.rows)

    def wait_for_removals(self) -> None:
        """Wait until no thread and no cycle holds a segment whose files are to go."""
        self.store.verification.wait()
        gc.collect()

    def check_killed(self, copy: Path) -> None:
        self.wait_for_removals()
        shutil.copytree(self.folder, copy)
        store = Store.open(copy)
        assert {row[0]: row for row in contents(only_map(store).snapshot())} == self.saved
        store.verify()
        store.close()
        shutil.rmtree(copy)

    def reopen(self) -> None:
        self.store.close()
        self.store = Store.open(self.folder, durability=self.durability)
        assert {row[0]: row for row in contents(self.orders.snapshot())} == self.rows
        self.saved = dict(self.rows)

    # Changes

    def keys(self, count: int) -> list[int]:
        return self.random.sample(range(40), count)

    def fresh(self, count: int) -> list[Row]:
        value = self.random.randrange(1000)
        rows = [(key, f"value {value}", float(value)) for key in self.keys(count)]
        self.rows.update((row[0], row) for row in rows)
        return rows

    def forget(self, keys: list[int]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if key not in keys}

    def put(self) -> None:
        self.orders.put(self.fresh(4))

    def delete(self) -> None:
        gone = self.keys(self.random.choice((3, 40)))
        self.orders.delete(gone)
        self.forget(gone)

    def load(self) -> None:
        self.orders.load(table_of(self.orders.definition, self.fresh(12)), "upsert")

    def replace(self) -> None:
        self.rows = {}
        self.orders.load(table_of(self.orders.definition, self.fresh(20)), "replace")

    def apply(self) -> None:
        self.batch += 1
        rows, gone = self.fresh(8), self.keys(5)
        gone = [key for key in gone if key not in {row[0] for row in rows}]
        apply_batch(self.orders, self.batch, rows, gone)
        self.forget(gone)

    def write_many(self) -> None:
        with self.orders.writing():
            load = StatementLoad(self.orders, "upsert")
            try:
                load.add(table_of(self.orders.definition, self.fresh(10)).columns)
                load.commit()
            finally:
                load.discard()

    def delete_many(self) -> None:
        gone = self.keys(10)
        with self.orders.writing():
            delete_rows(self.orders, [pa.array(gone, pa.int64())])
        self.forget(gone)

    def truncate(self) -> None:
        self.orders.truncate()
        self.rows = {}

    def restore(self) -> None:
        self.store.checkpoint()
        self.store.restore_map(self.orders.definition, self.store.history.newest())

    def change_index(self) -> None:
        indexes = self.orders.definition.indexes
        if len(indexes) < 3:
            self.store.create_index(self.orders.definition, index_on("amount", "customer"))
        else:
            self.store.drop_index(self.orders.definition, indexes[-1])


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 80))])
def test_changes_of_which_some_cannot_commit(
    tmp_path: Path, durability: Durability, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3:
        monkeypatch.setattr(segment_cut, "GROUP_BYTES", 300)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 3600 if seed % 2 else 0)
    history = History(tmp_path / "store", durability, seed)
    for number in range(40):
        history.step()
        if number % 2:
            history.check_killed(tmp_path / "killed")
        if number % 10 == 4:
            history.reopen()
    if seed % 2:  # The versions go with the next opening.
        monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 0)
        history.reopen()
    history.store.checkpoint()
    history.store.vacuum()
    history.wait_for_removals()
    left = {path.name.partition(".")[0] for path in (tmp_path / "store").glob("maps/*/*")}
    assert left == names_in_force(history.store)
    history.store.close()
