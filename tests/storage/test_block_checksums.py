"""A damaged block of a map that is too large to be verified first is an error with file and offset at its first use."""

from __future__ import annotations

import io
import itertools
import shutil
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

import remuda
from remuda.catalog import MapDefinition
from remuda.errors import StorageError
from remuda.storage import MapStore, Store
from remuda.storage.folder.store_files import map_file
from remuda.storage.folder.verification import Verification
from remuda.storage.segment import array_file
from remuda.storage.segment.array_file import open_array_file
from remuda.storage.segment.block_guard import BlockGuard, GuardedArray, check_fixed, guarded, view_of
from remuda.storage.segment.checksum import BLOCK_BYTES, BlockDigest, damaged_ranges
from remuda.storage.snapshot import open_snapshot
from remuda.storage.state import map_availability
from tests.storage.folders import abandon

ROWS = 250_000
KEY = 123_456
"""The row whose values are damaged."""
OTHER = 7
WAYS = {
    "aggregate": "SELECT SUM(n), MAX(s), SUM(d), COUNT(x), MIN(c) FROM t",
    "filter": "SELECT id, n, s, c, d, x FROM t WHERE g > 120000 AND g < 130000",
    "text filter": "SELECT COUNT(*) FROM t WHERE s LIKE '%99' AND c <> 'c3' AND n <> 5 AND d <> 5 AND x <> 0.5",
    "group": "SELECT c, COUNT(*), MAX(s), SUM(n), SUM(d), SUM(x) FROM t GROUP BY c",
    "order": "SELECT n, s, c, d, x FROM t ORDER BY g LIMIT 200000",
    "point": f"SELECT n, s, c, d, x FROM t WHERE id = {KEY}",
    "sorted index": f"SELECT n, s, c, d, x FROM t WHERE g = {KEY}",
    "range of an index": f"SELECT n, s, c, d, x FROM t WHERE g BETWEEN {KEY - 50} AND {KEY + 50}",
    "hash index": f"SELECT n, s, c, d, x FROM t WHERE h = 'h{KEY // 10}'",
    "join": "SELECT SUM(a.n), MAX(b.s), MIN(b.c), SUM(b.d), SUM(b.x) FROM t a JOIN t b ON a.id = b.g",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "store"
    numbers = np.arange(ROWS)
    with remuda.open(path, durability="os") as grid:
        grid.sql(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, s VARCHAR, c VARCHAR, d DECIMAL(20, 2), x DOUBLE, "
            "g BIGINT, h VARCHAR)"
        )
        grid.sql("CREATE INDEX t_g ON t (g) TYPE SORTED")
        grid.sql("CREATE INDEX t_h ON t (h) TYPE HASH")
        grid.load(
            "t",
            pa.table(
                {
                    "id": numbers,
                    "n": numbers * 3,
                    "s": [f"s{number}" for number in range(ROWS)],
                    "c": [f"c{number % 5}" for number in range(ROWS)],
                    "d": pa.array(numbers.astype(np.int32)).cast(pa.decimal128(20, 2)),
                    "x": pa.array(numbers / 2, mask=numbers % 100 == 0),
                    "g": numbers,
                    "h": [f"h{number // 10}" for number in range(ROWS)],
                }
            ),
        )
        grid.sql("CREATE TABLE sound (id BIGINT PRIMARY KEY)")
        grid.sql("INSERT INTO sound VALUES (1)")
    (rows,) = rows_files(path)
    assert rows.stat().st_size > map_availability.VERIFIED_FIRST
    return path


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "store")


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Verification, "start", lambda *_: None)


def rows_files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("maps/*/*.arrow") if path.stat().st_size > BLOCK_BYTES]


def batch_of(raw: bytes) -> tuple[pa.RecordBatch, int]:
    """The rows, and where in memory the file begins."""
    buffer = pa.py_buffer(raw)
    return pa.ipc.open_file(buffer).get_batch(0), buffer.address


def damage_value(folder: Path, column: str, key: int = KEY) -> tuple[Path, int]:
    """Flip a bit of a value; returns where, as an error should say."""
    (path,) = rows_files(folder)
    raw = path.read_bytes()
    batch, start = batch_of(raw)
    array, position = batch.column(column), batch.column("id").to_pylist().index(key)
    if pa.types.is_dictionary(array.type):
        place = array.buffers()[1].address + position * array.indices.type.bit_width // 8
    elif array.type == pa.string():
        place = array.buffers()[2].address + array.buffers()[1].to_pybytes()[0]
        place += int(np.frombuffer(array.buffers()[1], "<i4")[position]) + 1
    else:
        place = array.buffers()[1].address + position * array.type.bit_width // 8
    return path, flip(path, place - start)


def flip(path: Path, offset: int) -> int:
    """Change a byte in its lowest bit: a code stays a code, a digit a digit. Returns where its block begins."""
    with path.open("r+b") as file:
        file.seek(offset)
        value = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([value ^ 1]))
    return offset // BLOCK_BYTES * BLOCK_BYTES


def array_offset(path: Path, name: str, index: int) -> tuple[int, int]:
    """Where a value of an array file lies, and where its blocks begin."""
    mapped = map_file(path, levels=2)
    header, body = array_file._read_header(path, mapped)
    (entry,) = [each for each in header.arrays if each.name == name]
    return body + entry.offset + index * np.dtype(entry.dtype).itemsize, body


def answers(grid: remuda.Grid) -> dict[str, Any]:
    found = {name: sorted(grid.sql(query).fetchall(), key=repr) for name, query in WAYS.items()}
    return {**found, "get": repr(grid.map("t").get(KEY))}


@pytest.fixture(scope="module")
def sound(template: Path) -> dict[str, Any]:
    with remuda.open(template, read_only=True) as grid:
        return answers(grid)


@pytest.mark.usefixtures("unverified")
def test_an_unverified_map_gives_the_right_answers(template: Path, sound: dict[str, Any]) -> None:
    with remuda.open(template, read_only=True) as grid:
        assert not map_of(grid).state.version.segments[0].proven
        assert answers(grid) == sound


@pytest.mark.usefixtures("unverified")
@pytest.mark.parametrize("column", ["n", "s", "c", "d", "x"])
def test_a_damaged_value_is_never_read(folder: Path, column: str) -> None:
    path, offset = damage_value(folder, column)
    ways: dict[str, Callable[[remuda.Grid], object]] = {
        name: lambda grid, query=query: grid.sql(query).fetchall() for name, query in WAYS.items()
    }
    ways["get"] = lambda grid: grid.map("t").get(KEY)
    ways["arrow"] = lambda grid: grid.sql(f"SELECT {column} FROM t").to_arrow()
    ways["put"] = lambda grid: grid.sql(f"UPDATE t SET {column} = {column} WHERE id = {KEY}")
    for name, use in ways.items():
        with remuda.open(folder, durability="os") as grid:
            # Twice: a block that was found damaged stays so.
            for _ in range(2):
                with pytest.raises(StorageError) as caught:
                    use(grid)
                assert (caught.value.path, caught.value.offset) == (str(path), offset), name


@pytest.mark.parametrize("column", ["n", "s", "c", "d", "x"])
def test_a_damaged_value_is_not_read_after_verification_either(folder: Path, column: str) -> None:
    path, offset = damage_value(folder, column)
    with remuda.open(folder, read_only=True) as grid:
        grid.store.verification.wait()
        for query in WAYS.values():
            with pytest.raises(StorageError, match=rf"t cannot be used: .*{path.name}, offset {offset}"):
                grid.sql(query).fetchall()
        with pytest.raises(StorageError, match=rf"t cannot be used: .*{path.name}, offset {offset}") as caught:
            grid.map("t").get(KEY)
        assert (caught.value.path, caught.value.offset) == (str(path), offset)
        assert grid.sql("SELECT * FROM sound").fetchall() == [(1,)]


@pytest.mark.usefixtures("unverified")
def test_other_blocks_stay_readable(folder: Path, sound: dict[str, Any]) -> None:
    damage_value(folder, "n")
    with remuda.open(folder, read_only=True) as grid:
        assert grid.map("t").get(OTHER)["n"] == 3 * OTHER
        assert grid.sql(f"SELECT s FROM t WHERE id = {KEY}").fetchall() == [(f"s{KEY}",)]
        assert grid.sql("SELECT SUM(g), COUNT(*) FROM t").fetchall() == [(sum(range(ROWS)), ROWS)]
        with pytest.raises(StorageError):
            grid.map("t").get(KEY)
        assert grid.map("t").get(OTHER)["n"] == 3 * OTHER


@pytest.mark.usefixtures("unverified")
def test_damaged_nulls_are_never_read(folder: Path) -> None:
    (path,) = rows_files(folder)
    raw = path.read_bytes()
    batch, start = batch_of(raw)
    offset = flip(path, batch.column("x").buffers()[0].address - start + 1000)
    for use in ("SELECT COUNT(x) FROM t", f"SELECT x FROM t WHERE id = {KEY}", "SELECT SUM(x) FROM t WHERE g > 5"):
        with remuda.open(folder, read_only=True) as grid, pytest.raises(StorageError) as caught:
            grid.sql(use).fetchall()
        assert (caught.value.path, caught.value.offset) == (str(path), offset)


@pytest.mark.usefixtures("unverified")
def test_damaged_keys_and_indexes_are_never_followed(folder: Path) -> None:
    with remuda.open(folder, read_only=True) as grid:
        (segment,) = map_of(grid).state.version.segments
        keys_path = next(path for path in segment.hold.path.parent.glob("*.keys") if segment.id in path.name)  # type: ignore[attr-defined]
        slot = int(
            np.flatnonzero(segment.key_table == segment.probe(KEY, map_of(grid).state.version.key_hash(KEY)) + 1)[0]
        )
        ids = {index.name: index.id for index in segment.definition.indexes}
        place = int(np.flatnonzero(np.asarray(segment.index_arrays[ids["t_g"]]["keys0"]) == KEY)[0])
        groups = len(segment.index_arrays[ids["t_h"]]["starts"])
    sorted_path, hash_path = (keys_path.parent / f"{segment.id}.{ids[name]}.index" for name in ("t_g", "t_h"))
    by_key, by_g = f"SELECT n FROM t WHERE id = {KEY}", f"SELECT n FROM t WHERE g = {KEY}"
    cases = [
        (keys_path, "table", slot, [by_key, f"UPDATE t SET n = 1 WHERE id = {KEY}", f"DELETE FROM t WHERE id = {KEY}"]),
        (sorted_path, "keys0", place, [by_g, f"SELECT n FROM t WHERE g BETWEEN {KEY - 9} AND {KEY + 9}"]),
        (sorted_path, "order", place, [by_g, f"SELECT MAX(n) FROM t WHERE g BETWEEN {KEY - 9} AND {KEY + 9}"]),
        (keys_path, "low6", 5, ["SELECT SUM(n) FROM t WHERE g > 200000 AND n > 0"]),
    ]
    hash_values = [f"h{number}" for number in range(0, ROWS // 10, 7)]
    for path, name, index, statements in cases:
        before = path.read_bytes()
        offset, first = array_offset(path, name, index)
        flip(path, offset)
        for statement in statements:
            with remuda.open(folder, durability="os") as grid, pytest.raises(StorageError) as caught:
                grid.sql(statement).fetchall()
            assert caught.value.path == str(path)
            assert caught.value.offset == first + (offset - first) // BLOCK_BYTES * BLOCK_BYTES
        path.write_bytes(before)
    for name in ("table", "starts", "positions"):
        before = hash_path.read_bytes()
        for index in Random(name).sample(range(groups - 1), 5):
            flip(hash_path, array_offset(hash_path, name, index)[0])
        with remuda.open(folder, read_only=True) as grid:
            refused = [value for value in hash_values if not is_answered(grid, value)]
        assert 0 < len(refused) < len(hash_values)
        hash_path.write_bytes(before)


def is_answered(grid: remuda.Grid, value: str) -> bool:
    try:
        rows = grid.sql("SELECT g FROM t WHERE h = ?", value).fetchall()
    except StorageError:
        return False
    first = int(value[1:]) * 10
    assert sorted(rows) == [(number,) for number in range(first, first + 10)]
    return True


def test_queries_beside_the_verification_are_right_or_refused(folder: Path, sound: dict[str, Any]) -> None:
    choose = Random(3)
    (path,) = rows_files(folder)
    raw = path.read_bytes()
    for _ in range(25):
        flip(path, choose.randrange(len(raw)))
        with remuda.open(folder, read_only=True) as grid:
            for name in choose.sample(sorted(WAYS), 4):
                try:
                    found = sorted(grid.sql(WAYS[name]).fetchall(), key=repr)
                except StorageError:
                    continue
                assert found == sound[name]
        path.write_bytes(raw)


def test_nothing_is_checked_after_the_proof(template: Path, sound: dict[str, Any]) -> None:
    with remuda.open(template, read_only=True) as grid:
        held = map_of(grid)
        before = grid.map("t").get(KEY)
        grid.store.verification.wait()
        (segment,) = held.state.version.segments
        assert segment.proven
        assert held.state.version.point_lookups == {}
        assert grid.map("t").get(KEY) == before
        assert isinstance(segment.reader(0).numbers, memoryview)
        assert isinstance(segment.key_slots, memoryview)
        assert all(isinstance(segment.index(each).positions, np.ndarray) for each in segment.definition.indexes)
        assert answers(grid) == sound


@pytest.mark.usefixtures("unverified")
def test_a_record_of_the_log_that_meets_a_damaged_block(folder: Path) -> None:
    """The row that it replaces cannot be found: the map is damaged, the others are not."""
    store = remuda.open(folder, durability="os").store
    store.map(map_definition(store)).put([(KEY, 1, "s", "c", Decimal(1), 0.5, KEY, "h")])
    abandon(store)
    (path,) = rows_files(folder)
    raw = path.read_bytes()
    _, offset = damage_value(folder, "id")
    with remuda.open(folder, durability="os") as grid:
        with pytest.raises(StorageError) as caught:
            grid.map("t").get(OTHER)
        assert (caught.value.path, caught.value.offset) == (str(path), offset)
        assert grid.sql("SELECT * FROM sound").fetchall() == [(1,)]
    path.write_bytes(raw)
    with remuda.open(folder, read_only=True) as grid:
        assert grid.map("t").get(KEY)["n"] == 1


@pytest.mark.usefixtures("unverified")
def test_another_process_verifies_what_it_reads(folder: Path) -> None:
    """As a task of Spark does, which has no background verification."""
    path, offset = damage_value(folder, "n")
    with remuda.open(folder, read_only=True) as grid:
        (source,) = open_snapshot(map_of(grid).snapshot().describe()).sources
        assert source.read(["g"], 0, ROWS).num_rows == ROWS
        with pytest.raises(StorageError) as caught:
            source.read(["n"], 0, ROWS)
        assert (caught.value.path, caught.value.offset) == (str(path), offset)


def test_each_damaged_range_is_listed(folder: Path) -> None:
    path, offset = damage_value(folder, "n")
    flip(path, offset + BLOCK_BYTES)
    _, second = damage_value(folder, "s")
    index = next(each for each in path.parent.glob("*.index") if each.stat().st_size > BLOCK_BYTES)
    place, first = array_offset(index, open_first_array(index), 30_000)
    flip(index, place)
    with remuda.open(folder, read_only=True) as grid:
        found = [(row.file, row.position) for row in grid.sql("CHECK TABLE t")]
        expected = {(str(path), offset), (str(path), second)}
        expected.add((str(index), first + (place - first) // BLOCK_BYTES * BLOCK_BYTES))
        assert set(found) == expected
        assert len(found) == len(expected)
        assert [row.status for row in grid.sql("CHECK TABLE sound")] == ["ok"]


def open_first_array(path: Path) -> str:
    return next(name for name, array in open_array_file(path).arrays.items() if len(array) > 100_000)


@pytest.mark.usefixtures("unverified")
def test_damaged_metadata_of_the_rows_is_found_before_arrow_reads_it(folder: Path) -> None:
    (path,) = rows_files(folder)
    raw = path.read_bytes()
    batch, start = batch_of(raw)
    body = min(buffer.address for array in batch.columns for buffer in array.buffers() if buffer) - start
    for offset in (100, body - 40, len(raw) - 12, len(raw) - 200):
        flip(path, offset)
        with remuda.open(folder, read_only=True) as grid, pytest.raises(StorageError, match=path.name):
            grid.map("t").get(OTHER)
        path.write_bytes(raw)


@pytest.mark.usefixtures("unverified")
def test_damaged_checksums_are_an_error(folder: Path) -> None:
    for path in [*folder.glob("maps/*/*.keys"), *folder.glob("maps/*/*.index")]:
        if path.stat().st_size < BLOCK_BYTES:
            continue
        before = path.read_bytes()
        mapped = map_file(path, levels=2)
        header, body = array_file._read_header(path, mapped)
        assert header.blocks is not None
        flip(path, body + header.blocks.offset + 9)
        with remuda.open(folder, read_only=True) as grid:
            with pytest.raises(StorageError, match=path.name):
                answers(grid)
            assert [row.position for row in grid.sql("CHECK TABLE t")] == [body + header.blocks.offset]
        path.write_bytes(before)


def test_folders_without_checksums_of_blocks(folder: Path, sound: dict[str, Any]) -> None:
    for path in [*folder.glob("maps/*/*.keys"), *folder.glob("maps/*/*.index")]:
        forget_blocks(path)
    with remuda.open(folder, read_only=True) as grid:
        assert answers(grid) == sound
        grid.store.verification.wait()
        assert answers(grid) == sound
    with remuda.open(folder, durability="os") as grid:
        grid.sql("UPDATE t SET n = n + 1 WHERE id < 10000")
        grid.checkpoint()
        assert grid.sql("SELECT SUM(n - 3 * id) FROM t").fetchall() == [(10_000,)]
    path = max(rows_files(folder), key=lambda each: each.stat().st_size)
    flip(path, path.stat().st_size // 2)
    with remuda.open(folder, read_only=True) as grid:
        grid.store.verification.wait()
        with pytest.raises(StorageError, match=rf"{path.name}, offset 0"):
            grid.sql("SELECT SUM(n) FROM t").fetchall()


def forget_blocks(path: Path) -> None:
    """Write an array file as versions before the checksums of blocks did."""
    mapped = map_file(path, levels=2)
    header, _ = array_file._read_header(path, mapped)
    arrays = {name: array.copy() for name, array in open_array_file(path).arrays.items() if not name.startswith("row_")}
    entries, offset = [], 0
    for name, array in arrays.items():
        checksum = xxh3_64_hexdigest(array.tobytes()) if array.size else ""
        entries.append(
            {"name": name, "dtype": array.dtype.str, "count": array.size, "offset": offset, "checksum": checksum}
        )
        offset = array_file._aligned(offset + array.nbytes)
    assert header.blocks is not None
    raw = msgspec.json.encode({"arrays": entries})
    prefix = array_file._PREFIX.pack(array_file.MAGIC, len(raw), zlib.crc32(raw)) + raw
    body = bytearray(array_file._aligned(len(prefix)) + offset)
    body[: len(prefix)] = prefix
    for entry, array in zip(entries, arrays.values(), strict=True):
        start = array_file._aligned(len(prefix)) + int(str(entry["offset"]))
        body[start : start + array.nbytes] = array.tobytes()
    path.write_bytes(body)


def map_definition(store: Store) -> MapDefinition:
    (definition,) = [each for each in store.catalog.maps.values() if each.name == "t"]
    return definition


def map_of(grid: remuda.Grid) -> MapStore:
    return grid.store.map(map_definition(grid.store))


# The parts


def pieces(raw: bytes, random: Random) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        size = random.choice([1, 5, 64, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
        yield raw[at : at + size]
        at += size


@pytest.mark.parametrize(
    "size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES, 7 * BLOCK_BYTES + 3]
)
def test_checksums_of_blocks_do_not_depend_on_the_pieces(size: int) -> None:
    raw = Random(size).randbytes(size)
    expected = [xxh3_64_intdigest(raw[at : at + BLOCK_BYTES]) for at in range(0, size, BLOCK_BYTES)]
    for seed in range(20):
        digest = BlockDigest()
        for piece in pieces(raw, Random(seed)):
            digest.update(piece)
        assert digest.blocks().tolist() == expected


def test_neighbouring_damaged_blocks_are_one_range() -> None:
    raw = bytearray(Random(1).randbytes(6 * BLOCK_BYTES + 10))
    digest = BlockDigest()
    digest.update(b"".join([raw]))
    checksums = digest.blocks()
    assert list(damaged_ranges(io.BytesIO(b"head" + raw), 4, len(raw), checksums)) == []
    for block in (1, 2, 4, 6):
        raw[block * BLOCK_BYTES + 3] ^= 1
    found = list(damaged_ranges(io.BytesIO(b"head" + raw), 4, len(raw), checksums))
    ends = [(1, 3), (4, 5)]
    assert found == [
        *((4 + first * BLOCK_BYTES, 4 + end * BLOCK_BYTES) for first, end in ends),
        (4 + 6 * BLOCK_BYTES, 4 + len(raw)),
    ]


class Hold:
    """The files of a segment that is not verified."""

    verified = False

    def __init__(self, *guards: BlockGuard) -> None:
        self.guards = guards


@pytest.fixture
def numbers(tmp_path: Path) -> tuple[np.ndarray, Hold, BlockGuard]:
    """Ascending numbers in a mapped file, 24 bytes from its beginning, and the guard of the file."""
    path = tmp_path / "numbers"
    raw = bytes(24) + np.arange(20_000, dtype=np.int64).tobytes()
    path.write_bytes(raw)
    digest = BlockDigest()
    digest.update(raw)
    mapped = map_file(path, levels=0)
    guard = BlockGuard(path, mapped, 0, digest.blocks())
    return np.frombuffer(mapped, np.int64, 20_000, 24), Hold(guard), guard


def test_a_guarded_array_reads_as_an_array_does(numbers: tuple[np.ndarray, Hold, BlockGuard]) -> None:
    array, hold, guard = numbers
    found = guarded(array, hold)
    assert isinstance(found, GuardedArray)
    assert sum(guard.verified) == 0
    assert (found[5], found[-1], len(found)) == (5, 19_999, 20_000)
    assert sum(guard.verified) == 2
    assert found[7:9].tolist() == [7, 8]
    assert found[9:7].tolist() == []
    assert found[np.array([3, 15_000], np.uint32)].tolist() == [3, 15_000]
    assert found.searchsorted((-1, 77)).tolist() == [0, 77]
    assert found.view(np.float64)[:2].tolist() == array.view(np.float64)[:2].tolist()
    values = view_of(found)
    assert (type(values[4_000]), values[4_000], list(values[10:12])) == (int, 4_000, [10, 11])
    for beyond in (20_000, 10**9):
        with pytest.raises(IndexError):
            values[beyond]
        with pytest.raises(IndexError):
            found[np.array([beyond])]


def test_only_what_is_touched_is_verified(numbers: tuple[np.ndarray, Hold, BlockGuard]) -> None:
    array, hold, guard = numbers
    column = pa.Array.from_buffers(
        pa.int64(), 20_000, [None, pa.foreign_buffer(array.ctypes.data, array.nbytes, array)]
    )
    in_a_block = BLOCK_BYTES // 8
    check_fixed(column, np.array([0, 3 * in_a_block], np.int64), hold)
    assert [number for number, flag in enumerate(guard.verified) if flag] == [0, 3]
    check_fixed(column, slice(in_a_block, in_a_block + 1), hold)
    assert [number for number, flag in enumerate(guard.verified) if flag] == [0, 1, 3]
    hold.verified = True
    assert guarded(array, hold) is array


def test_every_byte_of_a_file_is_guarded(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    sizes = {"a": 1, "b": BLOCK_BYTES, "c": 0, "d": 100}
    array_file.write_array_file(path, {name: np.arange(size, dtype=np.uint16) for name, size in sizes.items()})
    raw = path.read_bytes()
    opened = open_array_file(path)
    assert opened.guard is not None
    for name, array in opened.arrays.items():
        assert array.tolist() == list(range(sizes[name]))
        opened.guard.check(0, len(raw) // 2)
    header, body = array_file._read_header(path, map_file(path, levels=2))
    for entry, at in itertools.product(header.arrays, (0, -1)):
        if entry.count:
            place = body + entry.offset + at % entry.count * 2
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            (found,) = array_file.array_file_damages(path)
            assert found.offset == body + (place - body) // BLOCK_BYTES * BLOCK_BYTES
