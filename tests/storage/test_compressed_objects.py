"""Files on object stores are compressed by the chunk: any range is read as it was, damage is told, tables choose."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

import remuda
from remuda.errors import SqlError, StorageError
from remuda.storage.remote.compressed_object import _TRAILER, CHUNK_BYTES, ObjectFile, compressed_pieces

SIZES = (0, 1, 19, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 77)


def contents(size: int, seed: int) -> bytes:
    """Bytes of which some chunks are shorter when they are compressed and others are not."""
    random_ = np.random.default_rng(seed)
    noise = random_.integers(0, 256, size, np.uint8)
    noise[: size // 2] //= 64
    return noise.tobytes()


def packed(raw: bytes, codec: str) -> bytes:
    return b"".join(compressed_pieces(io.BytesIO(raw), codec))


def opened(raw: bytes) -> ObjectFile:
    return ObjectFile(pa.BufferReader(raw), "shop/file")


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none"])
@pytest.mark.parametrize("size", SIZES)
def test_every_range_is_read_as_it_was(size: int, codec: str) -> None:
    raw, random_ = contents(size, size), random.Random(size)
    found = opened(raw if codec == "none" else packed(raw, codec))
    assert found.size() == size
    ends = [random_.randrange(size + 1) for _ in range(60)]
    for start, stop in [(0, size), (0, 0), *(sorted(pair) for pair in zip(ends[::2], ends[1::2], strict=True))]:
        assert bytes(found.read(start, stop)) == raw[start:stop]


def test_a_compressed_object_is_shorter_and_never_much_longer() -> None:
    text = b"remuda " * 100_000
    assert len(packed(text, "zstd")) < len(text) / 50
    noise = np.random.default_rng(1).bytes(10 * CHUNK_BYTES)
    assert len(packed(noise, "lz4")) == len(noise) + 4 * 10 + _TRAILER.size


def read_or_refused(raw: bytes) -> bytes | None:
    """Read a whole object; None where it is refused as damaged, and nothing else may be raised."""
    try:
        found = opened(raw)
        return bytes(found.read(0, found.size()))
    except StorageError:
        return None


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_told_or_changes_bytes_but_nothing_else(seed: int) -> None:
    """The bytes that come of a chunk are compared with checksums by those who read the file."""
    raw, random_ = contents(6 * CHUNK_BYTES, 3), random.Random(seed)
    damaged = bytearray(packed(raw, random_.choice(("zstd", "lz4"))))
    place = random_.choice((random_.randrange(len(damaged)), len(damaged) - 1 - random_.randrange(60)))
    damaged[place] ^= 1 << random_.randrange(8)
    read = read_or_refused(bytes(damaged))
    assert read is None or len(read) == len(raw) or read == bytes(damaged)


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none", None])
def test_a_table_says_how_its_files_are_compressed(tmp_path: Path, codec: str | None) -> None:
    (tmp_path / "remote").mkdir()
    filesystem = fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())
    rows = pa.table({"id": range(40_000), "s": [f"customer {number % 50}" for number in range(40_000)]})
    option = "" if codec is None else f" WITH (compression = '{codec}')"
    with remuda.open("shop", filesystem=filesystem, durability="none", cache=tmp_path / "one") as grid:
        grid.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, s VARCHAR){option}")
        grid.sql("CREATE INDEX t_s ON t (s) TYPE HASH")
        grid.load("t", rows)
    (entry,) = list((tmp_path / "remote").rglob("*.arrow"))
    assert (entry.read_bytes()[-8:] == b"REMUDAZ1") == (codec != "none")
    assert entry.read_bytes().startswith(b"ARROW1") == (codec == "none")
    with remuda.open("shop", filesystem=filesystem, read_only=True, cache=tmp_path / "two") as grid:
        assert grid.sql("SELECT s FROM t WHERE id = 77").fetchall() == [("customer 27",)]
        assert grid.sql("SELECT COUNT(*), SUM(id) FROM t WHERE s = 'customer 3'").fetchall() == [(800, 15_982_400)]
        assert grid.sql("SELECT COUNT(DISTINCT s), SUM(id) FROM t").fetchall() == [(50, 799_980_000)]
        assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]
        (definition,) = grid.store.catalog.maps.values()
        assert definition.compression == codec


def test_a_local_folder_keeps_what_a_table_says_and_maps_its_files_as_they_are(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY) WITH (compression = 'ZSTD')")
        grid.load("t", pa.table({"id": range(20_000)}))
        with pytest.raises(SqlError, match="by 'zstd' or 'lz4', or 'none', not by 'gzip'"):
            grid.sql("CREATE TABLE u (id BIGINT PRIMARY KEY) WITH (compression = 'gzip')")
    with remuda.open(tmp_path) as grid:
        (definition,) = grid.store.catalog.maps.values()
        assert definition.compression == "zstd"
    (rows,) = tmp_path.rglob("*.arrow")
    assert rows.read_bytes().startswith(b"ARROW1")
