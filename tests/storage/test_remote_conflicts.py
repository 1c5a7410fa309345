"""Several writers of one remote store: what merges, what is a conflict, and what a plain model says of both."""

from __future__ import annotations

import dataclasses
import random
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError
from pyarrow import fs

import remuda
from remuda.errors import OutcomeUnknownError, RemudaError, SqlError, StorageError
from remuda.storage.commit.store_loader import StoreLoader
from remuda.storage.folder.manifest import MOVED, NAME, decode_manifest, encode_manifest
from remuda.storage.load import segment_cut
from remuda.storage.remote import remote_folder, retention, roots
from remuda.storage.remote.remote_files import RemoteFiles
from remuda.storage.remote.remote_folder import RemoteFolder
from tests.storage.remote_stores import forget_cached

CREATE = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id))"
Open = Callable[[], Any]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens one more writer of a store: a folder behind the interface of remote ones."""
    (tmp_path / "remote").mkdir()
    filesystem = fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())
    grids: list[Any] = []

    def open_one() -> Any:
        grids.append(remuda.open("shop", filesystem=filesystem, durability="none", cache=tmp_path / "cache"))
        return grids[-1]

    with open_one() as first:
        first.sql(CREATE)
        first.load("t", _rows(range(100)))
    yield open_one
    for grid in grids:
        if not grid.store.closed:
            grid.store.leave("the test is over")


def _rows(keys: Any, value: int = 0) -> pa.Table:
    return pa.table({"id": list(keys), "v": pa.array([value] * len(keys), pa.int64())})


def _contents(grid: Any) -> dict[int, int]:
    return dict(grid.sql("SELECT id, v FROM t").fetchall())


def test_appends_upserts_and_deletions_of_other_keys_merge(opened: Open) -> None:
    one, other, third = opened(), opened(), opened()
    one.load("t", _rows(range(100, 200), 1))
    other.load("t", _rows(range(50, 60), 2), "upsert")
    third.sql("DELETE FROM t WHERE id < 10")
    third.sql("UPDATE t SET v = 3 WHERE id BETWEEN 10 AND 19")
    third.checkpoint()
    expected = dict.fromkeys(range(20, 100), 0) | dict.fromkeys(range(100, 200), 1)
    expected |= dict.fromkeys(range(50, 60), 2) | dict.fromkeys(range(10, 20), 3)
    assert _contents(third) == expected == _contents(opened())
    one.close()
    assert _contents(opened()) == expected


def test_changes_of_other_maps_and_of_the_catalog_merge(opened: Open) -> None:
    one, other = opened(), opened()
    one.sql("CREATE TABLE u (id BIGINT, PRIMARY KEY (id))")
    other.sql("CREATE VIEW w AS SELECT COUNT(*) AS n FROM t")
    one.sql("INSERT INTO u VALUES (1)")
    other.sql("CREATE INDEX by_v ON t (v) TYPE SORTED")
    one.load("t", _rows([1000], 7))
    assert one.sql("SELECT n FROM w").fetchall() == [(101,)]
    other.load("t", _rows([1001], 7))
    assert other.sql("SELECT id FROM t WHERE v = 7 ORDER BY id").fetchall() == [(1000,), (1001,)]
    assert other.sql("SELECT id FROM u").fetchall() == [(1,)]


def test_an_append_of_a_key_that_another_writer_has_added_is_an_error(opened: Open) -> None:
    one, other = opened(), opened()
    one.load("t", _rows([500], 1))
    with pytest.raises(SqlError, match="500"):
        other.load("t", _rows([499, 500], 2))
    assert _contents(other)[500] == 1
    other.load("t", _rows([499], 2))
    assert {499: 2, 500: 1}.items() <= _contents(opened()).items()


def test_an_upsert_of_a_key_that_another_writer_has_changed_comes_on_top(opened: Open) -> None:
    one, other = opened(), opened()
    one.load("t", _rows([5, 6], 1), "upsert")
    other.load("t", _rows([6, 7], 2), "upsert")
    assert {5: 1, 6: 2, 7: 2}.items() <= _contents(opened()).items()
    assert len(_contents(other)) == 100


def test_a_writer_sees_what_others_have_committed_after_a_refresh(opened: Open) -> None:
    one, other = opened(), opened()
    other.sql("INSERT INTO t VALUES (600, 6)")
    one.load("t", _rows([500], 1))
    assert 500 not in _contents(other)
    other.refresh()
    assert {500: 1, 600: 6}.items() <= _contents(other).items()
    assert 600 not in _contents(opened())
    one.sql("SINK INTO t VALUES (500, 2)")
    other.sql("UPDATE t SET v = 3 WHERE id = 500")
    one.close()
    with pytest.raises(StorageError, match="500 was changed by another writer"):
        other.refresh()


def test_blind_puts_of_one_key_are_both_applied(opened: Open) -> None:
    one, other = opened(), opened()
    one.map("t").set(5, (1,))
    other.map("t").set(5, (2,))
    other.map("t").set(6, (2,))
    one.close()
    other.close()
    assert {5: 2, 6: 2}.items() <= _contents(opened()).items()


DEPENDING: dict[str, Callable[[Any], Any]] = {
    "insert": lambda grid: grid.sql("INSERT INTO t VALUES (500, 2)"),
    "update": lambda grid: grid.sql("UPDATE t SET v = v + 1 WHERE id = 5"),
    "update some": lambda grid: grid.sql("UPDATE t SET v = v + 1 WHERE id BETWEEN 4 AND 6"),
    "delete": lambda grid: grid.sql("DELETE FROM t WHERE id = 5"),
    "on conflict": lambda grid: grid.sql(
        "INSERT INTO t VALUES (5, 2) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v"
    ),
    "put_if_absent": lambda grid: grid.map("t").put_if_absent(500, (2,)),
    "replace": lambda grid: grid.map("t").replace(5, (2,)),
    "compare and set": lambda grid: grid.map("t").replace(5, (0,), (2,)),
    "increment": lambda grid: grid.map("t").increment(5, "v"),
    "update columns": lambda grid: grid.map("t").update(5, {"v": 2}),
    "remove": lambda grid: grid.map("t").remove(5),
}


@pytest.mark.parametrize("name", DEPENDING)
def test_writes_that_depend_on_a_row_that_another_writer_has_changed_are_refused(opened: Open, name: str) -> None:
    write = DEPENDING[name]
    one, other = opened(), opened()
    one.load("t", _rows([5, 500], 1), "upsert")
    write(other)
    other.map("t").set(7, (7,))
    with pytest.raises(StorageError, match=r"of t with the key (5|500) was changed by another writer.*open the store"):
        other.checkpoint()
    put, load = (lambda: other.map("t").set(8, (8,))), (lambda: other.load("t", _rows([600])))
    for again in (other.checkpoint, put, load, other.close):
        with pytest.raises(StorageError, match="was changed by another writer"):
            again()
    assert {5: 1, 7: 0, 500: 1}.items() <= _contents(opened()).items()


@pytest.mark.parametrize("name", DEPENDING)
def test_writes_that_depend_on_rows_that_are_as_they_were_merge(opened: Open, name: str) -> None:
    one, other, alone = opened(), opened(), opened()
    one.load("t", _rows([90], 1), "upsert")
    DEPENDING[name](other)
    other.close()
    after = _contents(opened())
    assert after.pop(90) == 1
    DEPENDING[name](alone)
    expected = _contents(alone)
    assert expected.pop(90) == 0
    assert after == expected


def test_writes_to_a_map_that_another_writer_has_dropped_are_refused(opened: Open) -> None:
    one, other, third = opened(), opened(), opened()
    other.map("t").set(5, (1,))
    one.sql("DROP TABLE t")
    with pytest.raises(StorageError, match="the map t was dropped by another writer"):
        other.checkpoint()
    with pytest.raises(RemudaError, match="t was dropped"):
        third.load("t", _rows([700]))
    third.sql(CREATE)
    third.load("t", _rows([1]))
    assert _contents(opened()) == {1: 0}


def test_two_maps_of_one_name_are_refused(opened: Open) -> None:
    one, other = opened(), opened()
    one.sql("CREATE TABLE u (id BIGINT, PRIMARY KEY (id))")
    with pytest.raises(SqlError, match="already a map u"):
        other.sql("CREATE TABLE u (id BIGINT, x BIGINT, PRIMARY KEY (id))")
    other.sql("INSERT INTO u VALUES (3)")
    other.checkpoint()
    assert opened().sql("SELECT id FROM u").fetchall() == [(3,)]


def test_replacing_and_emptying_come_after_what_was_committed_before(opened: Open) -> None:
    one, other, third = opened(), opened(), opened()
    one.load("t", _rows([500], 1))
    other.load("t", _rows([1, 2], 3), "replace")
    assert _contents(opened()) == {1: 3, 2: 3}
    third.map("t").clear()
    assert _contents(opened()) == {}


def test_a_deletion_of_all_rows_spares_those_of_another_writer(opened: Open) -> None:
    one = opened()
    one.load("t", _rows(range(1000, 12_000)))
    other = opened()
    one.load("t", _rows([500], 9))
    other.sql("DELETE FROM t WHERE v = 0")
    other.close()
    assert _contents(opened()) == {500: 9}


def test_two_writers_that_begin_a_store_begin_one(tmp_path: Path) -> None:
    (tmp_path / "remote").mkdir()
    filesystem = fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())

    def begin(number: int) -> None:
        with remuda.open("new", filesystem=filesystem, durability="none", cache=tmp_path / "cache") as grid:
            grid.sql(CREATE.replace(" t ", f" t{number} "))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin, range(4)))
    with remuda.open("new", filesystem=filesystem, read_only=True, cache=tmp_path / "cache") as grid:
        assert sorted(each.name for each in grid.store.catalog.maps.values()) == ["t0", "t1", "t2", "t3"]


class Writer:
    """A grid with what it should hold: the state it last committed on, and what it has written since."""

    def __init__(self, grid: Any, committed: dict[int, int]) -> None:
        self.grid = grid
        self.base = dict(committed)
        self.pending: dict[int, int | None] = {}
        self.checked: set[int] = set()

    @property
    def view(self) -> dict[int, int]:
        merged = {**self.base, **self.pending}
        return {key: value for key, value in merged.items() if value is not None}

    def rebased(self, committed: dict[int, int]) -> dict[int, int] | None:
        """What a commit on top of this state leaves; None if it is refused."""
        if any(self.base.get(key) != committed.get(key) for key in self.checked):
            return None
        merged = {**committed, **self.pending}
        return {key: value for key, value in merged.items() if value is not None}

    def has_committed(self, state: dict[int, int]) -> None:
        self.base, self.pending, self.checked = dict(state), {}, set()


@pytest.mark.parametrize("seed", range(6))
def test_random_writers_agree_with_a_model(opened: Open, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(segment_cut, "GROUP_BYTES", 400)
    _compare_with_model(opened, random.Random(seed), steps=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_writers_agree_with_a_model(opened: Open, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(segment_cut, "GROUP_BYTES", 400)
    _compare_with_model(opened, random.Random(seed), steps=250)


def _compare_with_model(opened: Open, random_: random.Random, steps: int) -> None:
    committed = dict.fromkeys(range(100), 0)
    writers = [Writer(opened(), committed) for _ in range(3)]
    for step in range(1, steps):
        ordinal = random_.randrange(len(writers))
        writer = writers[ordinal]
        key = random_.randrange(140)
        kinds = ("set", "set", "insert", "update", "delete", "append", "upsert", "apply", "replace", "optimize")
        match random_.choice((*kinds, "checkpoint")):
            case "set":
                writer.grid.map("t").set(key, (step,))
                writer.pending[key] = step
            case "insert":
                if key in writer.view:
                    with pytest.raises(SqlError):
                        writer.grid.sql("INSERT INTO t VALUES (?, ?)", key, step)
                else:
                    writer.grid.sql("INSERT INTO t VALUES (?, ?)", key, step)
                    writer.pending[key] = step
                    writer.checked.add(key)
            case "update":
                writer.grid.sql("UPDATE t SET v = v + 1000 WHERE id = ?", key)
                if key in writer.view:
                    writer.pending[key] = writer.view[key] + 1000
                    writer.checked.add(key)
            case "delete":
                writer.grid.sql("DELETE FROM t WHERE id BETWEEN ? AND ?", key, key + 1)
                for each in {key, key + 1} & writer.view.keys():
                    writer.pending[each] = None
                    writer.checked.add(each)
            case mode:
                committed, lives = _commit(writer, committed, mode, random_, step)
                if not lives:
                    writer.grid.store.leave("it was refused")
                    writers[ordinal] = Writer(opened(), committed)
        assert _contents(writers[ordinal].grid) == writers[ordinal].view
    assert _contents(opened()) == committed


def _commit(
    writer: Writer, committed: dict[int, int], mode: str, random_: random.Random, step: int
) -> tuple[dict[int, int], bool]:
    """Commit by a checkpoint, OPTIMIZE or a load; return the state that is committed then, and whether the writer goes
    on."""
    keys = random_.sample(range(200), random_.choice((1, 5, 20)))
    gone = keys[:2] if mode == "apply" else []

    def act() -> None:
        match mode:
            case "checkpoint":
                writer.grid.checkpoint()
            case "optimize":
                writer.grid.sql("OPTIMIZE t")
            case "apply":
                words = pa.array(["d" if key in gone else "u" for key in keys])
                changes = _rows(keys, step).append_column("op", words)
                for _ in range(2):  # The second time the batch is known.
                    writer.grid.load("t", changes, mode="apply", operation="op", batch_id=("writers", step))
            case _:
                writer.grid.load("t", _rows(keys, step), mode)

    # A commit of nothing does not look at what others have done.
    if mode == "checkpoint" and not writer.pending:
        act()
        return committed, True
    merged = writer.rebased(committed)
    if merged is None:
        with pytest.raises(StorageError, match="was changed by another writer"):
            act()
        return committed, False
    loaded = {} if mode in {"checkpoint", "optimize"} else dict.fromkeys(keys, step)
    if mode == "append" and merged.keys() & loaded.keys():
        with pytest.raises(SqlError):
            act()
        # What was pending was committed before the rows of the load were compared.
        state = merged if writer.pending else committed
        writer.has_committed(state)
        return state, True
    act()
    state = loaded if mode == "replace" else {**merged, **loaded}
    state = {key: value for key, value in state.items() if key not in gone}
    writer.has_committed(state)
    return state, True


def _remote(grid: Any) -> RemoteFolder:
    folder = grid.store.state.folder.remote
    assert isinstance(folder, RemoteFolder)
    return folder


def _numbers(opened: Open) -> set[int]:
    return set(_remote(opened())._roots.dates())


def _sweeping(opened: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Two writers that sweep at each commit what is older than a fifth of a second."""
    monkeypatch.setattr(retention, "SWEEP_COMMITS", 1)
    one, other = opened(), opened()
    for grid in (one, other):
        _remote(grid).location = dataclasses.replace(_remote(grid).location, retention=0.2)
    return one, other


def _used_and_swept(opened: Open, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A writer whose next number another writer has used and swept, without any clock that has told it so."""
    one, other = _sweeping(opened, monkeypatch)
    for key in range(200, 206):
        other.load("t", _rows([key]))
        time.sleep(0.25)
    assert not {_remote(one)._version, _remote(one)._version + 1} & _numbers(opened)
    return one


def test_a_writer_on_a_machine_that_was_suspended_rebases(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The monotonic clock stands still while a machine is suspended; the wall clock does not."""
    one = _used_and_swept(opened, monkeypatch)
    seen = _remote(one)._seen._monotonic
    monkeypatch.setattr(time, "monotonic", lambda: seen)
    assert one.load("t", _rows([500])) == 1
    monkeypatch.undo()
    assert {200, 205, 500} <= _contents(opened()).keys()


def test_a_commit_whose_number_may_have_been_used_before_is_not_acknowledged(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine was suspended between the look at the newest root and the put."""
    one = _used_and_swept(opened, monkeypatch)
    monkeypatch.setattr(remote_folder, "_LONG_PAUSE", 0.0)
    monkeypatch.setattr(_remote(one), "_confirm_newest", lambda: None)
    with pytest.raises(OutcomeUnknownError, match="suspended"):
        one.load("t", _rows([500]))
    assert {200, 205} <= _contents(opened()).keys()


def test_a_slow_commit_whose_number_was_free_is_acknowledged(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_folder, "_LONG_PAUSE", 0.0)
    one = opened()
    _remote(one).location = dataclasses.replace(_remote(one).location, retention=0.0)
    for key in (500, 501):
        assert one.load("t", _rows([key])) == 1
    assert {500, 501} <= _contents(opened()).keys()


def test_a_fetch_that_outlasts_the_retention_goes_on_to_the_newer_root(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A writer that rebases reads a root whose files another writer drops and sweeps before they are fetched."""
    one, other = _sweeping(opened, monkeypatch)
    other.load("t", _rows(range(200)), "replace")
    find_state, overtaken = _remote(one)._find_state, [1, 2, 3]

    def find_and_wait() -> Any:
        found = find_state()
        while overtaken:
            time.sleep(0.25)
            other.load("t", _rows(range(200), overtaken.pop()), "replace")
            forget_cached(tmp_path / "cache")
        return found

    monkeypatch.setattr(_remote(one), "_find_state", find_and_wait)
    assert one.load("t", _rows([500], 3)) == 1
    assert not overtaken
    assert _contents(one) == _contents(opened()) == {**dict.fromkeys(range(200), 1), 500: 3}


def test_a_comparison_that_outlasts_the_retention_goes_on_to_the_newer_root(
    opened: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A writer that rebases compares rows of a root that another writer drops and sweeps before they are fetched."""
    one, other = _sweeping(opened, monkeypatch)
    other.load("t", _rows(range(200)), "replace")
    one.sql("UPDATE t SET v = 7 WHERE id = 5")
    compare, overtaken = StoreLoader._rebase_maps, [1, 2, 3]

    def wait_and_compare(self: StoreLoader, *given: Any) -> None:
        while overtaken and self is one.store._loader:
            time.sleep(0.25)
            other.load("t", _rows(range(200 + overtaken.pop())), "replace")
            forget_cached(tmp_path / "cache")
        compare(self, *given)

    monkeypatch.setattr(StoreLoader, "_rebase_maps", wait_and_compare)
    one.checkpoint()
    assert not overtaken
    assert _contents(one) == _contents(opened()) == {**dict.fromkeys(range(201), 0), 5: 7}


@pytest.mark.parametrize(
    ("files", "what"), [("*.keys", r"a file of the store is gone.*\.keys"), ("*.group", "missing")]
)
def test_a_file_that_the_newest_root_names_and_that_is_missing_is_told(
    opened: Open, tmp_path: Path, files: str, what: str
) -> None:
    one, other = opened(), opened()
    other.load("t", _rows(range(200)), "replace")
    forget_cached(tmp_path / "cache")
    for file in (tmp_path / "remote").rglob(files):
        file.unlink()
    with pytest.raises(StorageError, match=what):
        one.load("t", _rows([500], 3))


class _Answers:
    """An object store whose puts raise what is listed, the first one after it was applied."""

    def __init__(self, store: Any, errors: list[Exception], applied: bool) -> None:
        self._store, self._errors, self._applied = store, errors, applied

    def put(self, *arguments: Any, **options: Any) -> Any:
        if self._applied:
            self._applied = False
            self._store.put(*arguments, **options)
        if self._errors:
            raise self._errors.pop(0)
        return self._store.put(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("denials", [1, 3])
@pytest.mark.parametrize("applied", [True, False])
def test_a_denial_after_a_lost_answer_does_not_refuse_what_is_committed(
    opened: Open, monkeypatch: pytest.MonkeyPatch, applied: bool, denials: int
) -> None:
    """A token that expires between two tries of one put."""
    monkeypatch.setattr(roots, "_PAUSE", 0.001)
    one = opened()
    errors = [GenericError("timed out"), *[PermissionDeniedError("expired token") for _ in range(denials)]]
    answers = _Answers(_remote(one)._roots._store(), errors, applied)
    monkeypatch.setattr(_remote(one)._roots, "_opened", answers)
    assert one.load("t", _rows([500])) == 1
    assert 500 in _contents(opened())


def test_denials_up_to_the_last_try_leave_the_outcome_unknown(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "_PAUSE", 0.001)
    one = opened()
    errors = [GenericError("timed out"), *[PermissionDeniedError("expired token") for _ in range(20)]]
    monkeypatch.setattr(_remote(one)._roots, "_opened", _Answers(_remote(one)._roots._store(), errors, True))
    with pytest.raises(OutcomeUnknownError, match="expired token"):
        one.load("t", _rows([500]))
    assert 500 in _contents(opened())


def test_a_denial_of_the_first_put_refuses_the_commit(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one = opened()
    answers = _Answers(_remote(one)._roots._store(), [PermissionDeniedError("denied")], False)
    monkeypatch.setattr(_remote(one)._roots, "_opened", answers)
    with pytest.raises(StorageError, match="denied") as raised:
        one.load("t", _rows([500]))
    assert not isinstance(raised.value, OutcomeUnknownError)
    assert 500 not in _contents(opened())


@pytest.mark.parametrize("same_writer", [True, False])
def test_the_old_manifest_is_marked_before_the_second_root(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_writer: bool
) -> None:
    """Also where the first writer has failed to mark it: versions that know no roots would go on from it."""
    base = tmp_path / "remote" / "shop"
    newest = min((base / "roots").glob("*.root"))
    (base / NAME).write_bytes(encode_manifest(decode_manifest(newest.read_bytes(), str(newest))))
    shutil.rmtree(base / "roots")
    one, replace = opened(), RemoteFiles.replace

    def fails(self: RemoteFiles, name: str, content: bytes) -> None:
        if name == NAME:
            raise StorageError("the disk of the server is full", self.name)
        replace(self, name, content)

    monkeypatch.setattr(RemoteFiles, "replace", fails)
    with pytest.raises(StorageError, match="full"):
        one.load("t", _rows([500]))
    monkeypatch.undo()
    assert (base / NAME).read_bytes() != MOVED
    (one if same_writer else opened()).load("t", _rows([501]))
    assert (base / NAME).read_bytes() == MOVED
    assert _contents(opened()).keys() == {*range(100), 501}
