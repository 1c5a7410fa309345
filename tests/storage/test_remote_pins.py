"""Pins of Spark executions over remote stores: one root for all tasks that name the same execution."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import remuda
from remuda.errors import StorageError
from remuda.storage import Store
from remuda.storage.remote import remote_pins, retention
from remuda.storage.remote.remote_folder import RemoteFolder
from remuda.storage.remote.remote_location import open_address
from tests.storage.folders import only_map
from tests.storage.maps import contents
from tests.storage.s3_server import BUCKET, S3Server, s3_server

ONE, OTHER = "1" * 32, "2" * 32
CREATE = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id))"
Read = Callable[..., Store]


@pytest.fixture
def filesystem(tmp_path: Path) -> Any:
    """A folder behind the interface of remote ones."""
    (tmp_path / "remote").mkdir()
    return fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())


@pytest.fixture
def shop(filesystem: Any, tmp_path: Path) -> Iterator[Any]:
    with remuda.open("shop", filesystem=filesystem, durability="none", cache=tmp_path / "cache") as grid:
        grid.sql(CREATE)
        write(grid, 0)
        yield grid


@pytest.fixture
def read(filesystem: Any, tmp_path: Path) -> Iterator[Read]:
    """Opens the store as a task of an execution does, in a worker of its own."""
    opened: list[Store] = []

    def read_one(execution: str | None, sole_writer: bool = False) -> Store:
        found = open_address("shop", filesystem, tmp_path / "cache", sole_writer=sole_writer)
        assert isinstance(found, RemoteFolder)
        opened.append(Store.open(read_only=True, remote=found, verifies=False, execution=execution))
        return opened[-1]

    yield read_one
    for store in opened:
        store.close()


def write(grid: Any, number: int) -> None:
    grid.load("t", pa.table({"id": range(100), "v": [number] * 100}), mode="replace")


def values(store: Store) -> set[int]:
    return {row[1] for row in contents(only_map(store).snapshot())}


def test_readers_of_one_execution_read_one_root(shop: Any, read: Read) -> None:
    first = read(ONE)
    write(shop, 1)
    second, fresh, newest = read(ONE), read(OTHER), read(None)
    assert (values(first), values(second), values(fresh), values(newest)) == ({0}, {0}, {1}, {1})
    for number in range(2, 5):
        write(shop, number)
        assert values(read(ONE)) == {0}
        first.refresh()
        assert values(first) == {0}
    first.read_execution("3" * 32)
    assert values(first) == {4}
    first.read_execution(ONE)
    assert values(first) == {0}


def test_of_tasks_that_begin_at_once_one_pins(shop: Any, read: Read, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(1, 11):
            name = f"{number:032x}"
            readers = [pool.submit(read, name) for _ in range(8)]
            write(shop, number)
            assert len({str(values(each.result())) for each in readers}) == 1
    assert len(list((tmp_path / "remote" / "shop" / "pins").iterdir())) == 10


def test_a_task_that_comes_when_its_root_is_gone_is_refused(
    shop: Any, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never reads another root than the tasks before it, whether the root, or a file that it names, is gone."""
    monkeypatch.setattr(retention, "SWEEP_COMMITS", 1)
    remote = shop.store._folder.remote
    remote.location = dataclasses.replace(remote.location, retention=0)
    assert values(read(ONE)) == {0}
    for number in range(1, 4):
        write(shop, number)
    with pytest.raises(StorageError, match="began to read was given up after 60 minutes that other commits followed"):
        read(ONE)
    assert values(read(OTHER)) == {3}


def test_a_file_of_the_pinned_root_that_is_gone_is_no_damage(shop: Any, read: Read, tmp_path: Path) -> None:
    reader = read(ONE)
    assert values(reader) == {0}
    for group in (tmp_path / "remote").rglob("*.group"):
        group.unlink()
    for cached in (tmp_path / "cache").rglob("*.group"):
        cached.unlink()
    with pytest.raises(StorageError, match="began to read was given up"):
        read(ONE)


def test_pins_go_when_no_execution_can_need_them(
    shop: Any, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SWEEP_COMMITS", "ORPHAN_COMMITS"):
        monkeypatch.setattr(retention, name, 1)
    read(ONE)
    read(OTHER)
    pins = tmp_path / "remote" / "shop" / "pins"
    week = 7 * 24 * 3600
    now = (pins / OTHER).stat().st_mtime
    os.utime(pins / ONE, (now - week - 60, now - week - 60))
    write(shop, 1)
    assert [path.name for path in pins.iterdir()] == [OTHER]


def test_where_nothing_can_be_created_conditionally_the_newest_root_is_read(
    shop: Any, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sole = read(ONE, sole_writer=True)
    assert (sole.pin, values(sole)) == (None, {0})
    monkeypatch.setattr(remote_pins, "can_create", lambda _: False)
    unsafe = read(ONE)
    assert (unsafe.pin, values(unsafe)) == (None, {0})
    assert not (tmp_path / "remote" / "shop" / "pins").exists()


def test_a_pin_that_is_damaged_is_refused(shop: Any, read: Read, tmp_path: Path) -> None:
    read(ONE)
    (tmp_path / "remote" / "shop" / "pins" / ONE).write_bytes(b"")
    with pytest.raises(StorageError, match="the pin of a Spark execution is not as it was written"):
        read(ONE)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def address(s3: S3Server, tmp_path: Path) -> Iterator[str]:
    """A store on an object store that nobody has pinned."""
    yield s3.uri(f"{BUCKET}/shop.remuda")
    s3.filesystem.delete_dir(f"{BUCKET}/shop.remuda")


def read_object(address: str, execution: str, cache: Path) -> Store:
    found = open_address(address, cache=cache)
    assert isinstance(found, RemoteFolder)
    return Store.open(read_only=True, remote=found, verifies=False, execution=execution)


def pins_of(s3: S3Server) -> list[str]:
    return sorted(name for name in s3.files(f"{BUCKET}/shop.remuda") if name.startswith("pins/"))


def test_pins_on_an_object_store(s3: S3Server, address: str, tmp_path: Path) -> None:
    """The first task's put creates the object, the others' do not replace it."""
    with remuda.open(address, durability="none", cache=tmp_path / "writer") as grid:
        grid.sql(CREATE)
        write(grid, 0)
        with ThreadPoolExecutor(4) as pool:
            readers = list(pool.map(lambda number: read_object(address, ONE, tmp_path / f"{number}"), range(4)))
        write(grid, 1)
        readers += [read_object(address, each, tmp_path / "late") for each in (ONE, OTHER)]
        assert [values(each) for each in readers] == [{0}] * 5 + [{1}]
        assert pins_of(s3) == [f"pins/{ONE}", f"pins/{OTHER}"]
        for each in readers:
            each.close()


def test_a_put_of_a_pin_that_is_denied_or_whose_answer_is_lost(s3: S3Server, address: str, tmp_path: Path) -> None:
    """A task that may not write reads the newest root and pins nothing; a lost answer is no other root."""
    with remuda.open(address, durability="none", cache=tmp_path / "writer") as grid:
        grid.sql(CREATE)
        write(grid, 0)
        s3.inject("deny", 1)
        denied = read_object(address, ONE, tmp_path / "denied")
        assert (denied.pin, values(denied), pins_of(s3)) == (None, {0}, [])
        s3.inject("lose", 1)
        lost = read_object(address, ONE, tmp_path / "lost")
        write(grid, 1)
        late = read_object(address, ONE, tmp_path / "late")
        assert (values(lost), values(late), pins_of(s3)) == ({0}, {0}, [f"pins/{ONE}"])
        for each in (denied, lost, late):
            each.close()
