"""Remote stores are read block by block: what is fetched, and that what is read of it is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage.remote import range_reader
from remuda.storage.remote.remote_segments import RemoteSegments
from remuda.storage.remote.sparse_file import CHUNK_BYTES, REQUEST_CHUNKS, SparseFile, create_sparse, presence_path
from remuda.storage.segment import array_file
from remuda.storage.segment.segment_file import SegmentInfo
from tests.storage.remote_stores import forget_cached, held_bytes
from tests.storage.s3_server import BUCKET, S3Server, s3_server

ROWS = 200_000
COLUMN_BYTES = 8 * ROWS
PLACE = f"{BUCKET}/blocks/shop.remuda"
CREATE = (
    "CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, quantity INTEGER, day BIGINT, note VARCHAR, "
    "PRIMARY KEY (id))"
)
INDEXES = ("CREATE INDEX by_customer ON orders (customer) TYPE HASH", "CREATE INDEX by_day ON orders (day) TYPE SORTED")


def _orders() -> pa.Table:
    numbers = np.arange(ROWS)
    mixed = np.random.default_rng(7).permutation(ROWS)
    return pa.table(
        {
            "id": numbers,
            "customer": [f"C{number}" for number in mixed // 10],
            "amount": mixed / 4,
            "quantity": pa.array([None if number % 11 == 0 else number % 100 for number in mixed.tolist()], pa.int32()),
            "day": mixed,
            "note": [f"note {number} " * (number % 5) for number in mixed.tolist()],
        }
    )


def _fill(grid: Any) -> None:
    grid.sql(CREATE)
    for index in INDEXES:
        grid.sql(index)
    grid.load("orders", _orders())


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server() as server:
        cache = tmp_path_factory.mktemp("loading")
        with remuda.open(PLACE, filesystem=server.filesystem, durability="none", cache=cache) as grid:
            _fill(grid)
        yield server


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with remuda.open(tmp_path_factory.mktemp("local") / "shop.remuda") as grid:
        _fill(grid)
        yield grid


def _read(s3: S3Server, cache: Path, **options: Any) -> Any:
    return remuda.open(s3.uri(PLACE), read_only=True, cache=cache, **options)


def _fetched(s3: S3Server) -> dict[str, tuple[int, int]]:
    """Requests and bytes of the segments' files by their kinds, since the last time; planning reads group files."""
    found: dict[str, tuple[int, int]] = {}
    for name, (requests, size) in s3.traffic(PLACE).items():
        kind = name.rpartition(".")[2]
        if name.startswith("maps/") and kind != "group":
            before = found.get(kind, (0, 0))
            found[kind] = before[0] + requests, before[1] + size
    return found


def _by(query: str) -> Callable[[Any], list[Any]]:
    return lambda grid: sorted(grid.sql(query).fetchall(), key=repr)


def test_opening_and_planning_fetch_no_segment(s3: S3Server, tmp_path: Path) -> None:
    _fetched(s3)
    with _read(s3, tmp_path) as grid:
        assert len(grid.map("orders")) == ROWS
        assert "KeyLookup" in grid.explain("SELECT * FROM orders WHERE id IN (17, 18)")
        grid.explain("SELECT customer, quantity, COUNT(*) FROM orders GROUP BY customer, quantity ORDER BY 3")
        grid.refresh()
        assert _fetched(s3) == {}
        assert list((tmp_path / "blocks").rglob("*.*")) == []
        # EXPLAIN counts the entries of an index as the execution would.
        assert "by_day" in grid.explain("SELECT * FROM orders WHERE day = 5 AND quantity = 7")
        assert sum(size for _, size in _fetched(s3).values()) <= 16 * CHUNK_BYTES


LOOKUPS: dict[str, tuple[Callable[[Any], Any], set[str], int]] = {
    # Each with the kinds of files that it reads, and how many chunks of them at most.
    "key": (_by("SELECT * FROM orders WHERE id = 17"), {"keys", "arrow"}, 24),
    "get": (lambda grid: tuple(grid.map("orders")[17]), {"keys", "arrow"}, 24),
    "hash index": (_by("SELECT amount FROM orders WHERE customer = 'C77'"), {"keys", "arrow", "index"}, 60),
    "sorted index": (_by("SELECT amount FROM orders WHERE day BETWEEN 100 AND 109"), {"keys", "arrow", "index"}, 60),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_fetches_the_blocks_that_it_touches(s3: S3Server, local: Any, tmp_path: Path, name: str) -> None:
    run, kinds, chunks = LOOKUPS[name]
    _fetched(s3)
    with _read(s3, tmp_path) as grid:
        assert run(grid) == run(local)
        found = _fetched(s3)
        assert found.keys() == kinds
        assert sum(size for _, size in found.values()) <= chunks * CHUNK_BYTES
        assert run(grid) == run(local)
        assert _fetched(s3) == {}


SCANS = {
    "SELECT SUM(amount) FROM orders": 1.0,
    "SELECT SUM(quantity) FROM orders": 0.6,
    "SELECT COUNT(*) FROM orders WHERE amount < 100": 1.0,
    "SELECT SUM(amount), SUM(day) FROM orders": 2.0,
}


@pytest.mark.parametrize("query", SCANS)
def test_a_scan_fetches_the_columns_that_it_reads(s3: S3Server, local: Any, tmp_path: Path, query: str) -> None:
    columns = SCANS[query]
    _fetched(s3)
    with _read(s3, tmp_path) as grid:
        assert _by(query)(grid) == _by(query)(local)
    requests, size = _fetched(s3)["arrow"]
    assert size <= columns * COLUMN_BYTES + 6 * CHUNK_BYTES
    # Files are compressed there.
    assert size >= columns * COLUMN_BYTES / 4
    assert requests <= 12


def test_a_scan_of_some_partitions_fetches_their_ranges(s3: S3Server, tmp_path: Path) -> None:
    """Partitions that pruning leaves lie together, each a small part of a column."""
    _fetched(s3)
    with _read(s3, tmp_path) as grid:
        (definition,) = grid.store.catalog.maps.values()
        (snapshot,) = grid.store.snapshot([definition])
        (source,) = snapshot.sources
        ((start, stop),) = source.ranges(np.arange(10, 20))
        source.segment.expect(["amount"], [(start, stop)])
        for first in range(start, stop, 1000):
            source.read(["amount"], first, min(first + 1000, stop))
    assert _fetched(s3)["arrow"][1] <= 8 * (stop - start) + 8 * CHUNK_BYTES


def test_random_queries_read_the_same_as_of_a_local_folder(s3: S3Server, local: Any, tmp_path: Path) -> None:
    random = Random(5)
    conditions = [
        lambda: f"id = {random.randrange(-5, ROWS + 5)}",
        lambda: f"id IN ({', '.join(str(random.randrange(ROWS)) for _ in range(random.choice([2, 30])))})",
        lambda: f"customer = 'C{random.randrange(ROWS // 9)}'",
        lambda: f"day BETWEEN {(low := random.randrange(ROWS))} AND {low + random.choice([3, 50, 5000])}",
        lambda: f"quantity = {random.randrange(120)}",
        lambda: "quantity IS NULL",
        lambda: f"note LIKE 'note {random.randrange(1000)}%'",
        lambda: f"amount > {random.randrange(ROWS) / 4}",
    ]
    shown = ["*", "id, note", "COUNT(*), SUM(amount), MAX(customer)", "quantity, COUNT(*)", "MIN(note), MAX(day)"]
    for round_ in range(6):
        with _read(s3, tmp_path / str(round_ % 3)) as grid:
            for _ in range(12):
                what, chosen = random.choice(shown), random.sample(conditions, random.choice([1, 1, 2]))
                text = f"SELECT {what} FROM orders WHERE {' AND '.join(each() for each in chosen)}"
                if what.startswith("quantity"):
                    text += " GROUP BY quantity"
                assert _by(text)(grid) == _by(text)(local), text
            keys = [random.randrange(ROWS + 9) for _ in range(40)]
            assert grid.map("orders").get_all(keys) == local.map("orders").get_all(keys)


def test_threads_that_want_the_same_fetch_it_once(s3: S3Server, local: Any, tmp_path: Path) -> None:
    expected = _by("SELECT SUM(amount), COUNT(*) FROM orders")(local)
    _fetched(s3)
    with _read(s3, tmp_path) as grid, ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: _by("SELECT SUM(amount), COUNT(*) FROM orders")(grid), range(6)))
    assert answers == [expected] * 6
    assert _fetched(s3)["arrow"][1] <= COLUMN_BYTES + 8 * CHUNK_BYTES


def test_processes_share_what_they_fetch(s3: S3Server, tmp_path: Path) -> None:
    query = "SELECT SUM(amount) FROM orders"
    with _read(s3, tmp_path) as grid:
        _by(query)(grid)
        _fetched(s3)
        code = "import remuda, sys; a = sys.argv; remuda.open(a[1], read_only=True, cache=a[2]).sql(a[3]).fetchall()"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", code, s3.uri(PLACE), str(tmp_path), query]
        subprocess.run(command, check=True, env=environment)
    assert _fetched(s3) == {}


READER = """
import sys, remuda
grid = remuda.open(sys.argv[1], read_only=True, cache=sys.argv[2])
print("began", flush=True)
while True:
    grid.sql("SELECT * FROM orders").fetchall()
"""


def test_a_process_that_is_killed_while_it_fetches_does_no_harm(s3: S3Server, local: Any, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", READER, s3.uri(PLACE), str(tmp_path)], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"began\n"
        while held_bytes(tmp_path) < 10 * CHUNK_BYTES:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    with _read(s3, tmp_path) as grid:
        assert _by("SELECT * FROM orders")(grid) == _by("SELECT * FROM orders")(local)
        grid.store.verify()


def test_marks_without_bytes_and_damaged_copies_are_fetched_again(s3: S3Server, local: Any, tmp_path: Path) -> None:
    """A crash of the machine may leave marks of chunks that were never written; a disk may lose bits."""
    queries = [*SCANS, "SELECT * FROM orders WHERE id = 17", "SELECT * FROM orders WHERE day = 170"]
    with _read(s3, tmp_path) as grid:
        grid.store.verify()
    files = [path for path in (tmp_path / "blocks").rglob("*.*") if path.suffix != ".present"]
    assert len(files) == 4
    for path in files:
        raw = bytearray(path.read_bytes())
        for start in range(0, len(raw), 3 * CHUNK_BYTES):
            raw[start + 64 : start + CHUNK_BYTES] = bytes(len(raw[start + 64 : start + CHUNK_BYTES]))
        path.write_bytes(raw)
    with _read(s3, tmp_path) as grid:
        for query in queries:
            assert _by(query)(grid) == _by(query)(local)
        grid.store.verify()
    for path in files:
        presence = presence_path(path)
        presence.write_bytes(presence.read_bytes()[:-1])
    with _read(s3, tmp_path) as grid:
        for query in queries:
            assert _by(query)(grid) == _by(query)(local)


def test_a_server_that_fails_is_asked_again_and_then_reported(
    s3: S3Server, local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_PAUSE", 0.01)
    query = "SELECT SUM(amount) FROM orders"
    with _read(s3, tmp_path) as grid:
        s3.inject("fail", 3)
        assert _by("SELECT SUM(quantity) FROM orders")(grid) == _by("SELECT SUM(quantity) FROM orders")(local)
        s3.inject("fail", 10_000)
        with pytest.raises(StorageError, match=rf"a file cannot be fetched.* \(s3://{PLACE}/maps/.*arrow\)"):
            _by(query)(grid)
        s3.inject("fail", 0)
        assert _by(query)(grid) == _by(query)(local)


def test_a_segment_that_is_whole_is_proven(s3: S3Server, local: Any, tmp_path: Path) -> None:
    with _read(s3, tmp_path) as grid:
        (stored,) = grid.store.map(next(iter(grid.store.catalog.maps.values()))).stored
        assert not stored.segment.is_whole
        grid.map("orders").get(17)
        assert not stored.segment.is_whole
        grid.store.verify()
        assert stored.segment.is_whole
        assert stored.segment.proven
        assert tuple(grid.map("orders")[17]) == tuple(local.map("orders")[17])


def test_a_segment_that_was_read_as_a_whole_is_proven_later(s3: S3Server, local: Any, tmp_path: Path) -> None:
    with _read(s3, tmp_path) as grid:
        for query in ("SELECT * FROM orders", "SELECT * FROM orders WHERE customer = 'C5'"):
            assert _by(query)(grid) == _by(query)(local)
        (stored,) = grid.store.map(next(iter(grid.store.catalog.maps.values()))).stored
        assert not stored.segment.proven
        for source in stored.segment._all_sources():
            source.fetch([(0, source.size)])
        stored.segment.index_arrays[next(iter(set(stored.info.indexes) - stored.segment.index_arrays._opened.keys()))]
        grid.store.verification.start()
        grid.store.verification.wait()
        assert stored.segment.proven
        assert _by("SELECT * FROM orders")(grid) == _by("SELECT * FROM orders")(local)


def test_files_without_checksums_of_blocks_are_fetched_and_compared_as_a_whole(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{BUCKET}/{new_id()}/old.remuda"
    write = array_file.write_array_file

    def write_old(path: Path, arrays: dict[str, Any]) -> None:
        kept = {name: array for name, array in arrays.items() if name not in ("row_checksums", "row_metadata")}
        write(path, kept)
        raw = path.read_bytes()
        header = msgspec.json.decode(raw[16 : 16 + int.from_bytes(raw[8:12], "little")])
        del header["blocks"]
        body = array_file._aligned(16 + int.from_bytes(raw[8:12], "little"))
        text = msgspec.json.encode(header)
        text += b" " * (body - 16 - len(text))
        path.write_bytes(array_file._PREFIX.pack(array_file.MAGIC, len(text), zlib.crc32(text)) + text + raw[body:])

    with monkeypatch.context() as patch:
        patch.setattr("remuda.storage.segment.segment_file.write_array_file", write_old)
        with remuda.open(place, filesystem=s3.filesystem, durability="none", cache=tmp_path / "there") as grid:
            grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, s VARCHAR)")
            grid.load("t", pa.table({"id": range(20_000), "s": [f"s{number}" for number in range(20_000)]}))
    with remuda.open(s3.uri(place), read_only=True, cache=tmp_path / "here") as grid:
        assert grid.map("t")[7].s == "s7"
        assert grid.sql("SELECT COUNT(*), MAX(s) FROM t").fetchall() == [(20_000, "s9999")]
    (rows,) = [name for name in s3.files(place) if name.endswith(".arrow")]
    raw = bytearray(s3.read(f"{place}/{rows}"))
    raw[len(raw) // 2] ^= 1
    s3.write(f"{place}/{rows}", bytes(raw))
    forget_cached(tmp_path / "here")
    with (
        remuda.open(s3.uri(place), read_only=True, cache=tmp_path / "here") as grid,
        pytest.raises(StorageError, match="not as it was written"),
    ):
        grid.sql("SELECT COUNT(*), MAX(s) FROM t").fetchall()


def test_the_cache_is_bounded_while_a_grid_reads(s3: S3Server, local: Any, tmp_path: Path) -> None:
    """Between queries nothing is in use: what was fetched by those before makes room."""
    limit = 3 << 20
    queries = [*SCANS, "SELECT MAX(note) FROM orders", "SELECT * FROM orders WHERE day = 170"]
    with _read(s3, tmp_path, cache_bytes=limit) as grid:
        for round_ in range(2):
            with ThreadPoolExecutor(3) as pool:
                answers = pool.map(lambda query: _by(query)(grid), queries)
            assert list(answers) == [_by(query)(local) for query in queries]
            for key in range(round_, ROWS, ROWS // 60):
                assert tuple(grid.map("orders")[key]) == tuple(local.map("orders")[key])
        until = time.monotonic() + 120
        while held_bytes(tmp_path) > limit and time.monotonic() < until:
            time.sleep(0.2)
        assert held_bytes(tmp_path) <= limit
        for query in queries:
            assert _by(query)(grid) == _by(query)(local)


def test_what_is_fetched_of_a_file_is_what_was_missing(tmp_path: Path) -> None:
    """Any ranges, in any order: each byte is there when it is asked for, and none is asked for twice."""
    random = Random(3)
    size = 300 * CHUNK_BYTES + 77
    content = random.randbytes(size)
    path = tmp_path / "held"
    create_sparse(path, size)
    asked: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> memoryview:
        asked.append((start, stop))
        return memoryview(content)[start:stop]

    (tmp_path / "link").hardlink_to(path)
    file = SparseFile(tmp_path / "link", presence_path(path), "far", read, lambda _: _Free(), lambda: None)
    for _ in range(200):
        ranges = []
        for _ in range(random.choice([1, 2, 5])):
            start = random.randrange(size)
            ranges.append((start, min(size, start + random.choice([1, 100, CHUNK_BYTES, 20 * CHUNK_BYTES]))))
        file.fetch(ranges)
        raw = path.read_bytes()
        assert all(raw[start:stop] == content[start:stop] for start, stop in ranges)
    file.fetch([(0, size)])
    assert file.is_whole
    assert path.read_bytes() == content
    assert all(stop - start <= REQUEST_CHUNKS * CHUNK_BYTES for start, stop in asked)
    count = len(asked)
    again = SparseFile(tmp_path / "link", presence_path(path), "far", read, lambda _: _Free(), lambda: None)
    again.fetch([(0, size)])
    assert len(asked) == count


class _Free:
    """A turn that is always free."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_segment_is_opened_with_its_first_read(s3: S3Server, tmp_path: Path) -> None:
    with _read(s3, tmp_path) as grid:
        (stored,) = grid.store.map(next(iter(grid.store.catalog.maps.values()))).stored
        assert stored.segment.rows == ROWS
        assert isinstance(stored.info, SegmentInfo)
        with pytest.raises(AttributeError):
            object.__getattribute__(stored.segment, "batch")
        assert stored.segment.batch.num_rows == ROWS
        with pytest.raises(AttributeError):
            stored.segment.nothing_of_this_name  # noqa: B018
        assert isinstance(stored.segment._sources, RemoteSegments)
