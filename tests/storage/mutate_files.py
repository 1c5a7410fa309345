"""Change bytes of a store's files at random and use the store: a process of its own, as it may be the one that dies.

    python -m tests.storage.mutate_files <template> <scratch> <first seed> <number of seeds> <first|later|fetched>

For each seed one file of a copy of the template is changed and the store is opened and used at once. As the map is
small it is verified first; with "later" it is not, like a large one, and is used before the background verification
gets there, so that the checksums of blocks are all that stands between a flipped bit and a wrong answer. With "fetched"
it is a remote store, which is read block by block. A line of JSON says what came of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from msgspec.structs import replace
from pyarrow import fs

import remuda
from remuda.errors import RemudaError
from remuda.storage.folder import verification
from remuda.storage.folder.group_file import group_name
from remuda.storage.folder.manifest import read_manifest, replace_manifest
from remuda.storage.state import map_availability

ROWS = 3_000

QUERIES = (
    "SELECT COUNT(*), SUM(n), MIN(s), MAX(d) FROM t",
    "SELECT s, c, x FROM t WHERE n > 10",
    "SELECT c, COUNT(*), MAX(s) FROM t GROUP BY c",
    "SELECT * FROM t WHERE s = 's77'",
    "SELECT s, n FROM t WHERE n BETWEEN 5 AND 900 ORDER BY n LIMIT 300",
    "SELECT a.s FROM t a JOIN t b ON a.s = b.s WHERE b.n < 50",
    "SELECT DISTINCT c, b FROM t ORDER BY c",
)


def make(path: Path) -> None:
    """A store with strings of both kinds, NULLs, two indexes, deletions, and records in the log."""
    with remuda.open(path, durability="os") as grid:
        grid.sql(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER, s VARCHAR, c VARCHAR, d DECIMAL(20, 2), x VARBINARY, "
            "b BOOLEAN)"
        )
        grid.sql("CREATE INDEX t_n ON t (n) TYPE SORTED")
        grid.sql("CREATE INDEX t_s ON t (s) TYPE HASH")
        numbers = range(ROWS)
        grid.load(
            "t",
            pa.table(
                {
                    "id": numbers,
                    "n": [None if number % 50 == 0 else number % 1000 for number in numbers],
                    "s": [f"s{number}" for number in numbers],
                    "c": [None if number % 7 == 0 else f"c{number % 5}" for number in numbers],
                    "d": pa.array([number * 3 for number in numbers], pa.int32()).cast(pa.decimal128(20, 2)),
                    "x": [bytes([number % 256]) * (number % 4) for number in numbers],
                    "b": [number % 3 == 0 for number in numbers],
                }
            ),
        )
        grid.sql("DELETE FROM t WHERE id IN (3, 4, 5)")
        grid.checkpoint()
        grid.sql("INSERT INTO t (id, s) VALUES (100000, 'new')")
        grid.sql("UPDATE t SET s = 'other' WHERE id = 9")


def opened(path: Path, verified: str) -> Any:
    if verified != "fetched":
        return remuda.open(path, read_only=True)
    filesystem = fs.SubTreeFileSystem(str(path.parent), fs.LocalFileSystem())
    cache = path.with_name("cache")
    shutil.rmtree(cache, ignore_errors=True)
    return remuda.open(path.name, filesystem=filesystem, read_only=True, cache=cache)


def use(path: Path, verified: str = "first") -> dict[str, Any]:
    """Answers, or the error that came instead, of each way to read."""
    answers: dict[str, Any] = {}
    with opened(path, verified) as grid:
        held = grid.map("t")

        def get_all() -> str:
            return repr([held.get(key) for key in (0, 7, 9, 1234, 2999, 100000, 555555)])

        ways: dict[str, Callable[[], str]] = {"get": get_all, "size": lambda: str(len(held))}
        for query in QUERIES:
            ways[query] = lambda query=query: repr(sorted(grid.sql(query).fetchall(), key=repr))
            ways[f"{query}, arrow"] = lambda query=query: str(grid.sql(query).to_arrow().num_rows)
        for name, way in ways.items():
            try:
                answers[name] = way()
            except RemudaError as error:
                answers[name] = f"refused: {error}"
    return answers


def mutate(path: Path, random: Random) -> str:
    """Change one file; a manifest and an array file get the right checksum, as a stranger would see to."""
    files = sorted(each for each in path.rglob("*") if each.is_file() and each.name != "LOCK")
    # The rows first of all: it is there that libraries trust what they read.
    often = {".arrow", ".keys", ".index", ".group"}
    file = random.choice([*files, *[each for each in files if each.suffix in often] * 3])
    raw = bytearray(file.read_bytes())
    kind = random.choice(["flip", "flip", "word", "word", "zeros", "cut", "grow", "swap"])
    at = random.randrange(max(len(raw), 1))
    match kind:
        case "flip":
            for _ in range(random.choice([1, 1, 4])):
                place = random.randrange(max(len(raw), 1))
                raw[place : place + 1] = bytes([raw[place] ^ 1 << random.randrange(8)]) if raw else b""
        case "word":
            value = random.choice([b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0\0\0\x80", random.randbytes(8), b"\1\0\0\0"])
            raw[at : at + len(value)] = value
        case "zeros":
            raw[at : at + 64] = bytes(64)
        case "cut":
            del raw[at:]
        case "grow":
            raw += random.randbytes(100)
        case _:
            other = random.randrange(max(len(raw), 1))
            raw[at : at + 16], raw[other : other + 16] = raw[other : other + 16], raw[at : at + 16]
    if file.name == "MANIFEST" and random.random() < 0.8:
        head, _, body = bytes(raw).partition(b"\n")
        raw = bytearray(b" ".join([*head.split()[:2], f"{zlib.crc32(body):08x}".encode()]) + b"\n" + body)
    if file.suffix in {".keys", ".index", ".deleted"} and random.random() < 0.5 and len(raw) > 16:
        length = int.from_bytes(raw[8:12], "little")
        raw[12:16] = zlib.crc32(raw[16 : 16 + length]).to_bytes(4, "little")
    if file.suffix == ".group" and random.random() < 0.8:
        raw = bytearray(_vouch_for(path, file, bytes(raw)))
    file.write_bytes(raw)
    return f"{kind} at {at} of {file.name}"


def _vouch_for(store: Path, file: Path, raw: bytes) -> bytes:
    """Give a changed group file the right head, and name it in the root as it is now."""
    manifest = read_manifest(store)
    body = raw.partition(b"\n")[2]
    checksum = zlib.crc32(body)
    raw = b"REMUDA GROUP 2 %08x\n" % checksum + body
    maps = [
        replace(
            entry,
            groups=tuple(
                replace(group, checksum=checksum, file_bytes=len(raw)) if group_name(group) == file.name else group
                for group in entry.groups
            ),
        )
        for entry in manifest.maps
    ]
    replace_manifest(store, replace(manifest, maps=maps))
    return raw


def main(template: str, scratch: str, first: str, count: str, verified: str) -> None:
    if verified == "later":
        map_availability.VERIFIED_FIRST = 0
        verification.PAUSE = 0.2
    sound = use(Path(template))
    for seed in range(int(first), int(first) + int(count)):
        path = Path(scratch) / "store"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(template, path)
        what = mutate(path, Random(seed))
        print(json.dumps({"seed": seed, "began": what}), flush=True)
        outcome: dict[str, Any] = {"seed": seed, "what": what}
        try:
            answers = use(path, verified)
        except RemudaError as error:
            outcome["refused"] = str(error)
            if error.sqlstate == "XX000":
                outcome["foreign"] = f"a damage without its SQLSTATE: {error}"
        except Exception as error:  # noqa: BLE001 - which is what is looked for
            outcome["foreign"] = f"{type(error).__name__}: {error}"
        else:
            wrong = [name for name, answer in answers.items() if answer != sound[name]]
            outcome["wrong"] = [name for name in wrong if not answers[name].startswith("refused: ")]
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
