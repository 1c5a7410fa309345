"""Commits to one S3 bucket by several processes: none lost, none doubled, whole or not at all, whatever fails."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import remuda
from remuda.catalog import new_id
from remuda.errors import ErrorCode, OutcomeUnknownError, StorageError
from remuda.storage import Store
from remuda.storage.folder.manifest import MOVED, NAME
from remuda.storage.load import segment_cut
from remuda.storage.remote import retention, roots
from remuda.storage.remote.remote_folder import RemoteFolder
from remuda.storage.remote.remote_location import open_address
from remuda.storage.remote.retention import expired_roots
from remuda.storage.remote.roots import root_name
from remuda.storage.wal.durability import Durability
from tests.storage.remote_stores import newest_root, root_numbers, to_old_form
from tests.storage.remote_writer import SHARED
from tests.storage.s3_server import BUCKET, S3Server, s3_server

CREATE = "CREATE TABLE {} (id BIGINT, v BIGINT, PRIMARY KEY (id))"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def shop(s3: S3Server, tmp_path: Path) -> str:
    """A store with two maps, one of which has the rows that all writers change."""
    place = f"{BUCKET}/{new_id()}/shop.remuda"
    with _open(s3, place, tmp_path) as grid:
        for name in ("t", "u"):
            grid.sql(CREATE.format(name))
        grid.load("t", _rows(range(SHARED)))
    return place


def _open(s3: S3Server, place: str, tmp_path: Path, **options: Any) -> Any:
    return remuda.open(s3.uri(place), durability="none", cache=tmp_path / "cache", **options)


def _rows(keys: Any, value: int = 0) -> pa.Table:
    return pa.table({"id": list(keys), "v": pa.array([value] * len(keys), pa.int64())})


def _contents(grid: Any, name: str = "t") -> dict[int, int]:
    return dict(grid.sql(f"SELECT id, v FROM {name}").fetchall())


def _reopened(s3: S3Server, place: str, tmp_path: Path, name: str = "t") -> dict[int, int]:
    with remuda.open(s3.uri(place), read_only=True, cache=tmp_path / "new cache") as grid:
        return _contents(grid, name)


# Several processes


class Process:
    """A writer process, and what it has acknowledged."""

    def __init__(self, address: str, number: int, commits: int, cache: Path, fault: int | None = None) -> None:
        program = str(Path(__file__).with_name("remote_writer.py"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        if fault is not None:
            environment["FAULT"] = str(fault)
        self.log = cache.parent / f"log-{number}"
        self.errors = self.log.with_suffix(".errors")
        with self.log.open("wb") as log, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, program, address, str(number), str(commits), str(cache)],
                stdout=log,
                stderr=errors,
                env=environment,
            )

    def acknowledged(self) -> tuple[list[dict[str, Any]], dict[str, Any] | None, bool]:
        """The changes that are committed, the one whose outcome is not known, and whether it came to its end."""
        lines = self.log.read_text().splitlines()
        begun = [json.loads(line.removeprefix("begin ")) for line in lines if line.startswith("begin ")]
        done = lines.count("done")
        return begun[:done], (begun[done] if len(begun) > done else None), lines[-1:] == ["closed"]


def _check(processes: list[Process], held: dict[str, dict[int, int]]) -> None:
    """Compare the store with all that was acknowledged.

    A commit that was not acknowledged is there as a whole or not at all. Of keys that all writers upsert, the value is
    one that a commit has written, and not one that the same writer has replaced later.
    """
    own: dict[str, dict[int, int]] = {"t": {}, "u": {}}
    newest: dict[int, set[int]] = {key: {0} for key in range(SHARED)}
    for process in processes:
        done, unknown, _ = process.acknowledged()
        latest: dict[int, int] = {}
        for change in done:
            _apply(change, own, latest)
        if unknown is not None:
            copy: dict[str, dict[int, int]] = {name: dict(rows) for name, rows in own.items()}
            copied = dict(latest)
            _apply(unknown, copy, copied)
            present = _is_applied(unknown, held)
            if present:
                own = copy
                latest = copied
        for key, value in latest.items():
            newest[key].add(value)
    for name, rows in own.items():
        assert {key: value for key, value in held[name].items() if key >= SHARED} == rows
    assert held["t"].keys() >= newest.keys()
    assert {key for key in newest if held["t"][key] not in newest[key]} == set()


def _apply(change: dict[str, Any], own: dict[str, dict[int, int]], latest: dict[int, int]) -> None:
    for name, put in change["put"].items():
        for key, value in put.items():
            (latest if int(key) < SHARED else own[name])[int(key)] = value
    for name, deleted in change["deleted"].items():
        for key in deleted:
            del own[name][key]


def _is_applied(change: dict[str, Any], held: dict[str, dict[int, int]]) -> bool:
    """Tell whether a change is in the store, of which nothing or all must be; upserts may have been replaced since."""
    found = {
        held[name].get(int(key)) == value
        for name, put in change["put"].items()
        for key, value in put.items()
        if int(key) >= SHARED
    } | {key not in held[name] for name, deleted in change["deleted"].items() for key in deleted}
    assert len(found) <= 1, "a commit is there in part"
    if not found:
        return any(held["t"].get(int(key)) == value for key, value in change["put"]["t"].items())
    return found.pop()


def _watch(s3: S3Server, place: str, tmp_path: Path, processes: list[Process]) -> int:
    """Read the store while the processes write it: each state has whole commits. Returns how many were seen."""
    seen = set()
    with remuda.open(s3.uri(place), read_only=True, cache=tmp_path / "reader") as reader:
        while any(each.process.poll() is None for each in processes):
            reader.refresh()
            ids = [key for key, _ in reader.sql("SELECT id, v FROM u").fetchall()]
            # Appends come with 20 rows each, statements with 2.
            values = reader.sql("SELECT v, COUNT(*) AS n FROM u GROUP BY v").fetchall()
            assert {count for _, count in values} <= {2, 20}
            seen.add(len(ids))
            time.sleep(0.02)
    return len(seen)


def _run(s3: S3Server, place: str, tmp_path: Path, writers: int, commits: int, kills: int = 0) -> None:
    processes = [Process(s3.uri(place), number, commits, tmp_path / f"cache-{number}") for number in range(writers)]
    random_ = random.Random(writers)
    try:
        number = writers
        for _ in range(kills):
            time.sleep(random_.uniform(1.0, 3.0))
            victim = random_.choice(processes)
            victim.process.send_signal(signal.SIGKILL)
            fault = random_.choice((None, random_.randrange(1, commits)))
            processes.append(Process(s3.uri(place), number, commits, tmp_path / f"cache-{number}", fault))
            number += 1
        assert _watch(s3, place, tmp_path, processes) > 1
        for each in processes:
            assert each.process.wait() in ((0, -signal.SIGKILL) if kills else (0,)), each.errors.read_text()
            assert each.process.returncode != 0 or each.acknowledged()[2]
    finally:
        for each in processes:
            each.process.kill()
            each.process.wait()
    assert kills or sum(len(each.acknowledged()[0]) for each in processes) == writers * commits
    _check(processes, {name: _reopened(s3, place, tmp_path, name) for name in ("t", "u")})


def test_two_processes_lose_no_commit(s3: S3Server, shop: str, tmp_path: Path) -> None:
    _run(s3, shop, tmp_path, writers=2, commits=12)


@pytest.mark.slow
@pytest.mark.parametrize("group_bytes", [segment_cut.GROUP_BYTES, 500], ids=["one group", "many groups"])
@pytest.mark.parametrize(("writers", "commits"), [(2, 200), (4, 50)])
def test_many_commits_of_several_processes(
    s3: S3Server,
    shop: str,
    tmp_path: Path,
    writers: int,
    commits: int,
    group_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROUP_BYTES", str(group_bytes))
    _run(s3, shop, tmp_path, writers, commits)


@pytest.mark.slow
@pytest.mark.parametrize("group_bytes", [segment_cut.GROUP_BYTES, 500], ids=["one group", "many groups"])
@pytest.mark.parametrize(("writers", "commits", "kills"), [(2, 200, 8), (4, 40, 12)])
def test_processes_are_killed_while_others_commit(
    s3: S3Server,
    shop: str,
    tmp_path: Path,
    writers: int,
    commits: int,
    kills: int,
    group_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROUP_BYTES", str(group_bytes))
    _run(s3, shop, tmp_path, writers, commits, kills)


@pytest.mark.parametrize("fault", [1, 3])
def test_a_process_that_dies_between_upload_and_root_has_committed_nothing(
    s3: S3Server, shop: str, tmp_path: Path, fault: int
) -> None:
    before = s3.files(shop)
    process = Process(s3.uri(shop), 0, 6, tmp_path / "cache-0", fault)
    assert process.process.wait() == -signal.SIGKILL
    assert process.acknowledged()[1] is not None
    assert len(s3.files(shop) - before) > 3 * (fault - 1)
    _check([process], {name: _reopened(s3, shop, tmp_path, name) for name in ("t", "u")})


# Puts whose outcome is unknown


@pytest.mark.parametrize("lost", [1, 5])
def test_an_answer_that_is_lost_does_not_double_a_commit(s3: S3Server, shop: str, tmp_path: Path, lost: int) -> None:
    """One lost answer is met by the retries of single requests, five by those of the commit."""
    before = newest_root(s3, shop)
    with _open(s3, shop, tmp_path) as grid:
        s3.inject("lose", lost)
        grid.load("t", _rows([500], 1))
        assert len(_contents(grid)) == SHARED + 1
    s3.inject("lose", 0)
    assert newest_root(s3, shop) == before + 1
    assert _reopened(s3, shop, tmp_path)[500] == 1


def test_a_put_that_is_refused_for_a_while_is_tried_again(s3: S3Server, shop: str, tmp_path: Path) -> None:
    with _open(s3, shop, tmp_path) as grid:
        s3.inject("refuse", 6)
        grid.load("t", _rows([500], 1))
    assert _reopened(s3, shop, tmp_path)[500] == 1


def test_a_lost_answer_and_a_faster_writer_are_told_apart(s3: S3Server, shop: str, tmp_path: Path) -> None:
    """The server fails until the other writer has committed: the first one must not take that root for its own."""
    one, other = _open(s3, shop, tmp_path), _open(s3, shop, tmp_path)
    other.load("t", _rows([501], 2))
    s3.inject("refuse", 2)
    one.load("t", _rows([500], 1))
    one.close()
    other.close()
    assert {500: 1, 501: 2}.items() <= _reopened(s3, shop, tmp_path).items()


def test_an_outcome_that_stays_unknown_is_told(
    s3: S3Server, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "_PAUSE", 0.001)
    grid = _open(s3, shop, tmp_path)
    s3.inject("refuse", 1000)
    try:
        with pytest.raises(OutcomeUnknownError, match="unknown whether the statement is committed") as raised:
            grid.load("t", _rows([500], 1))
    finally:
        s3.inject("refuse", 0)
    assert raised.value.code == ErrorCode.OUTCOME_UNKNOWN
    assert 500 not in _contents(grid)
    with pytest.raises(StorageError, match="unknown whether the statement is committed"):
        grid.load("t", _rows([501], 1))
    with pytest.raises(StorageError, match="unknown whether the statement is committed"):
        grid.map("t").set(502, (1,))
    grid.close()
    with _open(s3, shop, tmp_path) as again:
        again.load("t", _rows([500], 1))
    assert _reopened(s3, shop, tmp_path)[500] == 1


# Old stores, other servers, other file systems


def test_an_old_store_goes_over_to_roots_once(s3: S3Server, shop: str, tmp_path: Path) -> None:
    to_old_form(s3, shop)
    assert len(_reopened(s3, shop, tmp_path)) == SHARED
    one, other = _open(s3, shop, tmp_path), _open(s3, shop, tmp_path)
    assert root_numbers(s3, shop) == []
    one.load("t", _rows([500], 1))
    assert len(root_numbers(s3, shop)) == 2
    assert s3.read(f"{shop}/{NAME}") == MOVED
    other.load("t", _rows([501], 2))
    assert len(root_numbers(s3, shop)) == 3
    one.close()
    other.close()
    assert {500: 1, 501: 2}.items() <= _reopened(s3, shop, tmp_path).items()


def test_the_log_of_a_copied_folder_is_flushed_by_its_first_writer(s3: S3Server, tmp_path: Path) -> None:
    """A second writer that replayed it later would put old rows on top of new ones."""
    place = f"{BUCKET}/{new_id()}/shop.remuda"
    with remuda.open(tmp_path / "shop") as grid:
        grid.sql(CREATE.format("t"))
        grid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    fs.copy_files(str(tmp_path / "shop"), place, fs.LocalFileSystem(), s3.filesystem)
    assert _reopened(s3, place, tmp_path) == {1: 1, 2: 2}
    one = _open(s3, place, tmp_path)
    other = _open(s3, place, tmp_path)
    one.sql("UPDATE t SET v = 10 WHERE id = 1")
    one.close()
    other.load("t", _rows([3], 3))
    other.close()
    assert _reopened(s3, place, tmp_path) == {1: 10, 2: 2, 3: 3}


def test_a_store_whose_first_root_was_never_created_is_begun_again(s3: S3Server, tmp_path: Path) -> None:
    place = f"{BUCKET}/{new_id()}/shop.remuda"
    s3.write(f"{place}/{NAME}", MOVED)
    with pytest.raises(StorageError, match="no store in this folder"):
        _reopened(s3, place, tmp_path)
    with _open(s3, place, tmp_path) as grid:
        grid.sql(CREATE.format("t"))
    assert _reopened(s3, place, tmp_path) == {}


def test_a_copy_of_a_remote_store_is_no_local_folder(s3: S3Server, shop: str, tmp_path: Path) -> None:
    fs.copy_files(shop, str(tmp_path / "copy"), s3.filesystem, fs.LocalFileSystem())
    with pytest.raises(StorageError, match="copy of a remote store"):
        remuda.open(tmp_path / "copy")


def test_a_server_that_ignores_conditions_is_refused(s3: S3Server, tmp_path: Path) -> None:
    place = f"{BUCKET}/{new_id()}/shop.remuda"
    s3.inject("replace", 2)
    with pytest.raises(StorageError, match="replaces objects that were to be created only if absent"):
        _open(s3, place, tmp_path)
    s3.inject("replace", 0)
    assert s3.files(place) == set()
    with _open(s3, place, tmp_path) as grid:
        grid.sql(CREATE.format("t"))


def _delegating(name: str) -> Any:
    return lambda _self, *given: getattr(_base, name)(*given)


_base: Any = fs.LocalFileSystem()
_READING = "get_file_info normalize_path open_input_file open_input_stream"
_WRITING = "copy_file delete_dir delete_dir_contents delete_file move open_append_stream"
FolderHandler = type(
    "FolderHandler",
    (fs.FileSystemHandler,),
    {name: _delegating(name) for name in f"{_READING} {_WRITING}".split()}
    | {
        "__doc__": "A file system of a kind that is not known: local folders, as another library would give them.",
        "get_type_name": lambda _self: "other",
        "get_file_info_selector": _delegating("get_file_info"),
        "create_dir": lambda _self, path, recursive: _base.create_dir(path, recursive=recursive),
        "open_output_stream": lambda _self, path, _metadata: _base.open_output_stream(path),
        "delete_root_dir_contents": lambda _self: None,
    },
)


def test_a_file_system_without_conditional_puts_has_one_writer(tmp_path: Path) -> None:
    (tmp_path / "remote").mkdir()
    place = str(tmp_path / "remote" / "shop")
    given = {"filesystem": fs.PyFileSystem(FolderHandler()), "cache": tmp_path / "cache"}
    with pytest.raises(StorageError, match=r"cannot create a file only if it is absent.*sole_writer=True"):
        remuda.open(place, durability="none", **given)
    assert list((tmp_path / "remote").iterdir()) == []
    one = remuda.open(place, durability="none", sole_writer=True, **given)
    one.sql(CREATE.format("t"))
    other = remuda.open(place, durability="none", sole_writer=True, **given)
    one.load("t", _rows([1], 1))
    other.load("t", _rows([2], 2))
    one.close()
    other.close()
    with remuda.open(place, read_only=True, **given) as reader:
        assert _contents(reader) == {1: 1, 2: 2}


# Old roots and their files


SWEEPS_AFTER = 4


@pytest.fixture
def sweeps_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SWEEP_COMMITS", SWEEPS_AFTER)
    monkeypatch.setattr(retention, "ORPHAN_COMMITS", 2 * SWEEPS_AFTER)


def _keeping(s3: S3Server, place: str, tmp_path: Path, seconds: float) -> Store:
    """Open a store for writing with a retention of so many seconds."""
    given = open_address(s3.uri(place), cache=tmp_path / "cache")
    assert isinstance(given, RemoteFolder)
    location = dataclasses.replace(given.location, retention=seconds)
    given.close()
    return Store.open(durability=Durability.NONE, remote=RemoteFolder(location))


def _replace_all(store: Store, times: int) -> None:
    (definition,) = (each for each in store.catalog.maps.values() if each.name == "t")
    for number in range(times):
        store.map(definition).load(_rows(range(SHARED), number), "replace")


@pytest.mark.usefixtures("sweeps_often")
def test_roots_and_their_files_go_when_the_retention_is_over(s3: S3Server, shop: str, tmp_path: Path) -> None:
    orphan = f"maps/{'0' * 16}/{'1' * 16}.arrow"
    s3.write(f"{shop}/{orphan}", b"left by a writer that was killed")
    s3.write(f"{shop}/maps/{'0' * 16}/notes.txt", b"of a person")
    store = _keeping(s3, shop, tmp_path, 3600)
    _replace_all(store, 2 * SWEEPS_AFTER)
    store.close()
    assert root_numbers(s3, shop)[0] == 1
    assert len([name for name in s3.files(shop) if name.endswith(".keys")]) >= 2 * SWEEPS_AFTER
    assert orphan in s3.files(shop)
    time.sleep(1.5)  # Dates of S3 have whole seconds.
    store = _keeping(s3, shop, tmp_path, 0)
    while newest_root(s3, shop) < 4 * SWEEPS_AFTER:
        _replace_all(store, 1)
    store.close()
    files = s3.files(shop)
    assert root_numbers(s3, shop) == [4 * SWEEPS_AFTER]
    assert len([name for name in files if name.endswith(".keys")]) == 1
    assert orphan not in files
    assert f"maps/{'0' * 16}/notes.txt" in files
    assert _reopened(s3, shop, tmp_path) == dict.fromkeys(range(SHARED), 0)


@pytest.mark.usefixtures("sweeps_often")
def test_a_writer_that_slept_does_not_use_a_number_that_was_removed(s3: S3Server, shop: str, tmp_path: Path) -> None:
    """The next number after its root was used, and its root removed: creating it would succeed and be lost."""
    asleep, awake = _keeping(s3, shop, tmp_path, 0), _keeping(s3, shop, tmp_path, 0)
    before = newest_root(s3, shop)
    _replace_all(awake, 2 * SWEEPS_AFTER)
    assert before + 1 not in root_numbers(s3, shop)
    (definition,) = (each for each in asleep.catalog.maps.values() if each.name == "u")
    asleep.map(definition).load(_rows([7], 7))
    assert newest_root(s3, shop) == before + 2 * SWEEPS_AFTER + 1
    asleep.close()
    awake.close()
    assert _reopened(s3, shop, tmp_path, "u") == {7: 7}


@pytest.mark.usefixtures("sweeps_often")
def test_a_reader_of_an_older_root_finds_its_files(s3: S3Server, shop: str, tmp_path: Path) -> None:
    """The files of a root are kept with it, for tasks that fetch them later."""
    number = newest_root(s3, shop)
    named = {name for name in s3.files(shop) if name.startswith("maps/")}
    with _open(s3, shop, tmp_path) as grid:
        for _ in range(SWEEPS_AFTER + 1):
            grid.load("t", _rows(range(SHARED), 1), "replace")
    assert s3.files(shop) >= named | {root_name(number)}


def test_a_root_expires_when_its_successor_is_old_enough() -> None:
    dates = {1: 0.0, 2: 10.0, 3: 20.0, 5: 25.0, 6: 100.0}
    assert expired_roots(dates, 75.0) == [1, 2, 3]
    assert expired_roots(dates, 80.0) == [1, 2]
    assert expired_roots(dates, 0.0) == [1, 2, 3, 5]
    assert expired_roots(dates, 1000.0) == []
    assert expired_roots({}, 0.0) == []
