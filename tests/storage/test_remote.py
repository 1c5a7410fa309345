"""Stores on a remote file system: a real S3 server on this machine, and a plain folder behind the same interface."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyarrow import fs

import remuda
from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage import SnapshotDescription, open_snapshot
from remuda.storage.folder.manifest import NAME, decode_manifest, encode_manifest
from remuda.storage.remote.file_cache import CACHE_BYTES, FileCache
from remuda.storage.remote.remote_files import RemoteFiles
from remuda.storage.remote.remote_folder import RemoteFolder
from remuda.storage.remote.remote_location import RemoteLocation
from remuda.storage.remote.roots import root_name
from tests.storage.folders import flipped
from tests.storage.remote_stores import held_bytes, newest_root, to_old_form
from tests.storage.s3_server import BUCKET, S3Server, s3_server

CREATE = "CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, PRIMARY KEY (id))"
INDEX = "CREATE INDEX by_amount ON orders (amount) TYPE SORTED"
ROWS = 12_000


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def place() -> str:
    """A path on the server that no other test uses."""
    return f"{BUCKET}/{new_id()}/shop.remuda"


def _orders(first: int = 0, count: int = ROWS, customer: str = "C") -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": ids, "customer": [f"{customer}{n % 10}" for n in ids], "amount": [n / 2 for n in ids]})


def _loaded(filesystem: Any, place: str, cache: Path) -> None:
    """A store with `ROWS` orders, written by way of the file system."""
    with remuda.open(place, filesystem=filesystem, durability="none", cache=cache) as grid:
        grid.sql(CREATE)
        grid.sql(INDEX)
        grid.load("orders", _orders())


@pytest.fixture(scope="module")
def files(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What such a store consists of: loading it once is enough for most tests."""
    place = f"{BUCKET}/loaded/shop.remuda"
    _loaded(s3.filesystem, place, tmp_path_factory.mktemp("loading"))
    return {name: s3.read(f"{place}/{name}") for name in s3.files(place)}


@pytest.fixture
def shop(s3: S3Server, place: str, files: dict[str, bytes]) -> str:
    """A place on the server that has such a store."""
    for name, raw in files.items():
        s3.write(f"{place}/{name}", raw)
    return place


def _check(grid: Any, rows: int = ROWS) -> None:
    assert grid.sql("SELECT COUNT(*), SUM(amount) FROM orders").fetchall() == [(rows, sum(range(rows)) / 2)]
    assert grid.map("orders")[7].customer == "C7"
    assert grid.sql("SELECT id FROM orders WHERE amount BETWEEN 50 AND 51 ORDER BY amount").fetchall() == [
        (100,),
        (101,),
        (102,),
    ]


@pytest.mark.parametrize("behind", ["s3", "folder"])
def test_a_remote_store_is_loaded_read_and_refreshed(s3: S3Server, place: str, behind: str, tmp_path: Path) -> None:
    filesystem: Any = s3.filesystem
    if behind == "folder":
        (tmp_path / "remote").mkdir()
        filesystem = fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())
    with remuda.open(place, filesystem=filesystem, durability="none", cache=tmp_path / "there") as writer:
        writer.sql(CREATE)
        writer.sql(INDEX)
        writer.load("orders", _orders())
        with remuda.open(place, filesystem=filesystem, read_only=True, cache=tmp_path / "here") as reader:
            _check(reader)
            held = reader.sql("SELECT id FROM orders")
            writer.load("orders", _orders(ROWS))
            writer.sql("DELETE FROM orders WHERE id >= ?", ROWS + 5)
            _check(reader)
            writer.checkpoint()
            reader.refresh()
            _check(reader, ROWS + 5)
            assert len(held.fetchall()) == ROWS
            with pytest.raises(StorageError, match="reading only"):
                reader.sql("DELETE FROM orders")
        writer.sql("INSERT INTO orders VALUES (-1, 'late', 0)")
    with remuda.open(place, filesystem=filesystem, read_only=True, cache=tmp_path / "here") as reader:
        assert reader.map("orders")[-1].customer == "late"


def test_a_folder_that_was_copied_is_read_by_its_uri(s3: S3Server, place: str, tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop.remuda") as grid:
        grid.sql(CREATE)
        grid.sql(INDEX)
        grid.load("orders", _orders())
        grid.sql("INSERT INTO orders VALUES (-1, 'in the log', 0)")
    fs.copy_files(str(tmp_path / "shop.remuda"), place, fs.LocalFileSystem(), s3.filesystem)
    with remuda.open(s3.uri(place), read_only=True, cache=tmp_path / "cache") as grid:
        assert grid.map("orders")[7].customer == "C7"
        assert grid.map("orders")[-1].customer == "in the log"
        assert len(grid.map("orders")) == ROWS + 1


def test_an_address_of_this_machine_is_a_folder(tmp_path: Path) -> None:
    with remuda.open(f"file://{tmp_path}/shop.remuda") as grid:
        grid.sql(CREATE)
    assert (tmp_path / "shop.remuda" / NAME).exists()


def test_what_is_in_the_cache_is_not_fetched_again(s3: S3Server, shop: str, tmp_path: Path) -> None:
    with remuda.open(s3.uri(shop), read_only=True, cache=tmp_path / "cache") as grid:
        _check(grid)
    for name in s3.files(f"{shop}/maps"):
        if not name.endswith(".group"):
            s3.filesystem.delete_file(f"{shop}/maps/{name}")
    with remuda.open(s3.uri(shop), read_only=True, cache=tmp_path / "cache") as grid:
        _check(grid)
    with (
        remuda.open(s3.uri(shop), read_only=True, cache=tmp_path / "empty") as grid,
        pytest.raises(StorageError, match=r"a file of the store is gone.*refresh.* \(s3://stores/.*/maps/"),
    ):
        _check(grid)


def test_opening_is_refused_with_a_reason(s3: S3Server, place: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r'no write-ahead log: .* durability="none"'):
        remuda.open(s3.uri(place), cache=tmp_path)
    with pytest.raises(StorageError, match=r"there is no store in this folder \(s3://stores/[^?@]*shop.remuda\)"):
        remuda.open(s3.uri(place), read_only=True, cache=tmp_path)
    with pytest.raises(StorageError, match="the address of the store cannot be reached"):
        remuda.open("nowhere://user:password@host/shop", read_only=True, cache=tmp_path)
    assert s3.files(place) == set()
    assert list((tmp_path / "mirrors").iterdir()) == []


def test_a_file_that_does_not_arrive_whole_is_named_and_not_kept(s3: S3Server, shop: str, tmp_path: Path) -> None:
    number = newest_root(s3, shop)
    for name in [root_name(number), *sorted(name for name in s3.files(shop) if name.startswith("maps/"))]:
        path = f"{shop}/{name}"
        raw = s3.read(path)
        damaged = {"flipped": flipped(raw, len(raw) // 2), "cut": raw[:-70]}
        caches = {kind: tmp_path / f"{name.replace('/', '-')}-{kind}" for kind in damaged}
        for kind, cache in caches.items():
            s3.write(path, damaged[kind])
            with pytest.raises(StorageError, match=name):
                _read_all(s3.uri(shop), cache)
        s3.write(path, raw)
        for cache in caches.values():
            _read_all(s3.uri(shop), cache)


def _read_all(address: str, cache: Path) -> None:
    """Reads that meet damage tell it, and the others are right."""
    with remuda.open(address, read_only=True, cache=cache) as grid:
        try:
            _check(grid)
        finally:
            grid.store.verify()


def test_a_manifest_that_is_replaced_while_it_is_read_is_read_again(s3: S3Server, shop: str, tmp_path: Path) -> None:
    """Each is longer than the one before, and comes cut off where its size was asked for before it was there.

    Only old stores have one that is replaced.
    """
    to_old_form(s3, shop)
    path = f"{shop}/{NAME}"
    manifest = decode_manifest(s3.read(path), path)
    done = threading.Event()

    def commit() -> None:
        deliveries: list[str] = []
        while not done.is_set():
            deliveries.append(new_id())
            s3.write(path, encode_manifest(replace(manifest, deliveries=tuple(deliveries))))

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        remote = RemoteFolder(RemoteLocation(RemoteFiles(s3.filesystem, shop, shop), str(tmp_path), CACHE_BYTES))
        assert all(remote.fetch() for _ in range(20))
        remote.close()
    finally:
        done.set()
        thread.join()


def test_a_manifest_cannot_name_files_outside_of_the_store(s3: S3Server, shop: str, tmp_path: Path) -> None:
    path = f"{shop}/{root_name(newest_root(s3, shop))}"
    manifest = decode_manifest(s3.read(path), shop)
    s3.write(path, encode_manifest(replace(manifest, maps=[replace(manifest.maps[0], id="../../up")])))
    with pytest.raises(StorageError, match="no name that a store gives"):
        remuda.open(s3.uri(shop), read_only=True, cache=tmp_path / "cache")


def test_the_cache_is_bounded_but_for_what_is_in_use(s3: S3Server, place: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    places = [f"{place}-{number}" for number in range(3)]
    for each in places:
        _loaded(s3.filesystem, each, tmp_path / "other")

    def held() -> int:
        return held_bytes(cache)

    with remuda.open(s3.uri(places[0]), read_only=True, cache=cache) as first:
        first.store.verify()
        size = held()
        limit = 2 * size + size // 2
        for each in places[1:]:
            with remuda.open(s3.uri(each), read_only=True, cache=cache, cache_bytes=limit) as grid:
                grid.store.verify()
                _check(grid)
        assert held() <= limit
        with remuda.open(s3.uri(places[1]), read_only=True, cache=cache, cache_bytes=0) as second:
            second.store.verify()
            assert held() == 2 * size
            _check(first)
            _check(second)
    FileCache(cache, 0).make_room()
    assert held() == 0


def test_of_all_who_want_a_file_one_fetches_it(tmp_path: Path) -> None:
    cache, fetched = FileCache(tmp_path / "cache"), []
    names = [f"map/{number}" for number in range(3)]

    def fetch(path: Path) -> None:
        fetched.append(path)
        path.write_bytes(b"rows")

    def want(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            cache.link(name, folder / name.replace("/", "-"), fetch)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(want, range(8)))
    assert len(fetched) == len(names)

    def fail(path: Path) -> None:
        raise StorageError("no")

    with pytest.raises(StorageError):
        cache.link("map/absent", tmp_path / "absent", fail)
    cache.link("map/absent", tmp_path / "absent", fetch)


READER = """
import sys
from remuda.storage import Store
from remuda.storage.remote.remote_location import open_address
store = Store.open(read_only=True, remote=open_address(sys.argv[1], cache=sys.argv[2]))
(definition,) = store.catalog.maps.values()
print(len(store.map(definition)), flush=True)
sys.stdin.read()
"""


def test_processes_share_a_cache_and_a_killed_one_leaves_nothing(s3: S3Server, shop: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", READER, s3.uri(shop), str(cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        for _ in range(2)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"%d\n" % ROWS
        assert len(list((cache / "mirrors").glob("*.lock"))) == 2
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        with remuda.open(s3.uri(shop), read_only=True, cache=cache) as grid:
            _check(grid)
            assert len(list((cache / "mirrors").glob("*.lock"))) == 2
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    FileCache(cache, 0).new_mirror().release()
    assert [path for path in cache.rglob("*") if path.is_file() and path.parent.name != "turns"] == []


def test_a_reader_refreshes_while_the_store_is_replaced(s3: S3Server, shop: str, tmp_path: Path) -> None:
    """A reader sees one whole state after the other."""
    done = threading.Event()

    def replace_it() -> None:
        try:
            with remuda.open(shop, filesystem=s3.filesystem, durability="none", cache=tmp_path / "there") as grid:
                for number in range(5):
                    grid.load("orders", _orders(customer=f"replaced {number} "), "replace")
        finally:
            done.set()

    thread = threading.Thread(target=replace_it)
    thread.start()
    with remuda.open(s3.uri(shop), read_only=True, cache=tmp_path / "here") as reader:
        while not done.is_set():
            reader.refresh()
            assert reader.sql("SELECT COUNT(*), COUNT(DISTINCT customer) FROM orders").fetchall() == [(ROWS, 10)]
        thread.join()
        reader.refresh()
        assert reader.map("orders")[1].customer == "replaced 4 1"


def _described(s3: S3Server, place: str, cache: Path) -> SnapshotDescription:
    """As a process on another machine is told."""
    with remuda.open(place, filesystem=s3.filesystem, read_only=True, cache=cache) as grid:
        (definition,) = grid.store.catalog.maps.values()
        (snapshot,) = grid.store.snapshot([definition])
        description = pickle.loads(pickle.dumps(snapshot.describe()))
    assert isinstance(description, SnapshotDescription)
    assert description.remote is not None
    return description


def _elsewhere(description: SnapshotDescription, cache: Path) -> SnapshotDescription:
    assert description.remote is not None
    return dataclasses.replace(description, remote=dataclasses.replace(description.remote, cache=str(cache)))


def test_a_described_snapshot_is_fetched_by_whoever_is_told_of_it(s3: S3Server, shop: str, tmp_path: Path) -> None:
    description = _described(s3, shop, tmp_path / "here")
    told = _elsewhere(description, tmp_path / "there")
    assert open_snapshot(told).rows == ROWS
    assert held_bytes(tmp_path / "there") == 0
    expected = _orders().column("amount").combine_chunks()
    assert _amounts(told) == expected
    s3.filesystem.delete_dir(f"{shop}/maps")
    assert _amounts(told) == expected
    with pytest.raises(StorageError, match=f"a file of the store is gone.*refresh.*{shop}/maps"):
        _amounts(_elsewhere(description, tmp_path / "a third"))


def _amounts(description: SnapshotDescription) -> pa.Array:
    """The amounts of all rows in order."""
    (source,) = open_snapshot(description).sources
    return source.read(["amount"], 0, ROWS).column(0).sort()


def test_segments_that_are_asked_for_no_more_make_room(s3: S3Server, shop: str, tmp_path: Path) -> None:
    cache = tmp_path / "there"
    before = _elsewhere(_described(s3, shop, tmp_path / "here"), cache)
    _amounts(before)
    with remuda.open(shop, filesystem=s3.filesystem, durability="none", cache=tmp_path / "here") as grid:
        grid.load("orders", _orders(customer="D"), "replace")
    after = _elsewhere(_described(s3, shop, tmp_path / "here"), cache)
    _amounts(after)
    FileCache(cache, 0).make_room()
    held = {path.name.partition(".")[0] for path in (cache / "blocks").rglob("*.*")}
    assert held == {info.id for info in after.segments}
