"""The pipeline of the demonstration: two days of raw files, a map that Spark fills, and who reads it meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import remuda.spark
from remuda.cli.demo_queries import timed
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda.grid import Grid

RAW = "id BIGINT, name STRING, city STRING"
MAP = "customers"


@dataclass(frozen=True, slots=True)
class Stage:
    what: str
    how: str
    rows: int
    seconds: float


def run_pipeline(session: Any, grid: Grid, folder: Path, customers: int) -> Iterator[Stage]:
    """Load a day, then the next one while keys are looked up, and read what the second has changed."""
    for day in (1, 2):
        _write_raw_files(session, folder / f"day={day}", customers, day)
    _, seconds = timed(lambda: _load(session, grid, folder / "day=1"))
    how = "created by the write, with a HASH index"
    yield Stage('remuda.spark.write(raw, path, "customers", key="id", indexes="city HASH")', how, customers, seconds)
    since = grid.sql(f"SHOW VERSIONS {MAP}").fetchall()[-1].version
    yield _look_up_during_the_next_load(session, grid, folder / "day=2", customers)
    changes, seconds = timed(lambda: grid.changes(MAP, since).read_all())
    words = changes.column("_change_type").to_pylist()
    how = ", ".join(f"{words.count(word):,} {word}" for word in ("insert", "update_postimage", "delete"))
    yield Stage(f'grid.changes("customers", since={since})', how, len(words), seconds)


def _write_raw_files(session: Any, folder: Path, customers: int, day: int) -> None:
    """Write the raw files; on the second day one customer of a hundred has moved, and as many are new."""
    moved = f"CASE WHEN id % 100 = 0 THEN {day} ELSE 1 END"
    rows = session.range(customers + (day - 1) * customers // 100)
    rows = rows.selectExpr("id", "'customer ' || id AS name", f"'city ' || (id % 50 + {moved}) AS city")
    rows.write.json(str(folder))


def _load(session: Any, grid: Grid, folder: Path) -> None:
    raw = session.read.schema(RAW).json(str(folder)).where("city IS NOT NULL")
    remuda.spark.write(raw, str(grid.store.path), MAP, mode="upsert", key="id", indexes="city HASH")


def _look_up_during_the_next_load(session: Any, grid: Grid, folder: Path, customers: int) -> Stage:
    found = 0
    read = grid.map(MAP).get
    with ThreadPoolExecutor(1) as threads:
        load = threads.submit(timed, lambda: _load(session, grid, folder))
        while not load.done():
            found += read(found * 7919 % customers) is not None
        _, seconds = load.result()
    each = seconds / max(found, 1) * 1e6
    return Stage(
        'grid.map("customers").get(key), while the files of the next day are loaded',
        f"lookups beside the load, one in {each:.0f} µs",
        found,
        seconds,
    )
