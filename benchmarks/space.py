"""What the rows take: in a folder, by kind of file, and in memory while they are loaded."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

import remuda
from remuda.bench.data import CREATE_TABLE, INDEXES
from remuda.catalog import IndexType

if TYPE_CHECKING:
    from remuda.bench.data import Data

KEY_BYTES, SORTED_BYTES, HASH_BYTES = 7, 12, 4
"""For each row: what an index over arrays must take, measured on a prototype before there was an engine."""

BATCH_ROWS = 1 << 20
REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes a row of one kind of file, and of what it has to hold."""

    name: str
    taken: float
    needed: float


@dataclass(frozen=True, slots=True)
class Peak:
    """Bytes of a process that loads, at its greatest, with all that it holds; `bare` of them without any data."""

    name: str
    peak: int
    bare: int
    seconds: float


def sizes(data: Data) -> list[Size]:
    """The sizes of a folder with both indexes, and all of them together."""
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        folder = Path(name, "space.remuda")
        with remuda.open(folder) as grid:
            for statement in (CREATE_TABLE, *INDEXES):
                grid.sql(statement)
            grid.load("orders", data.table)
            (definition,) = grid.store.catalog.maps.values()
        (hash_index,) = (index.id for index in definition.indexes if index.type is IndexType.HASH)
        found = {"rows": 0, "key index, zone maps": 0, "HASH index": 0, "SORTED index": 0, "all else": 0}
        for path in folder.rglob("*.*"):
            found[_kind(path, hash_index)] += path.stat().st_size
    needed = [_encoded_bytes(data.table), KEY_BYTES, HASH_BYTES, SORTED_BYTES, 0]
    each = [Size(name, taken / data.rows, need) for (name, taken), need in zip(found.items(), needed, strict=True)]
    return [*each, Size("in all", sum(size.taken for size in each), sum(needed))]


def peaks(data: Data) -> list[Peak]:
    """Each in a fresh process. The first two hold the table that they load, and it is counted."""
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        source = Path(name, "source.arrow")
        with pa.OSFile(str(source), "wb") as file, pa.ipc.new_file(file, data.table.schema) as writer:
            writer.write_table(data.table, BATCH_ROWS)
        return [
            _load("a table, into memory", source, "table"),
            _load("a table, into a folder", source, "table", str(Path(name, "one.remuda"))),
            _load("batches, into a folder", source, "batches", str(Path(name, "two.remuda"))),
        ]


def _load(name: str, source: Path, *arguments: str) -> Peak:
    command = [sys.executable, "-m", "benchmarks.load_once", str(source), *arguments]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    answer = json.loads(ended.stdout)
    return Peak(name, answer["peak"], answer["bare"], answer["seconds"])


def _kind(path: Path, hash_index: str) -> str:
    match path.suffix:
        case ".arrow":
            return "rows"
        case ".keys":
            return "key index, zone maps"
        case ".index":
            return "HASH index" if hash_index in path.name else "SORTED index"
        case _:
            return "all else"


def _encoded_bytes(table: pa.Table) -> float:
    """Bytes a row of Arrow data whose strings are dictionaries."""
    columns = [pc.dictionary_encode(column) if column.type == pa.string() else column for column in table.columns]
    return float(sum(column.combine_chunks().nbytes for column in columns)) / table.num_rows
