"""TPC-H and TPC-DS query by query beside DuckDB: the same tables in memory, in one process, in turns.

A query's time is the least of several runs from the text to the last batch, its plan in the cache as DuckDB's
statement is prepared. The two use the same number of threads: as many as the machine has cores.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import remuda
from remuda.bench.measure import Budget, interleave
from remuda.presentation.durations import duration
from tests.tpcds import tpcds
from tests.tpch import tpch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUDGET = Budget(seconds=0.5, fewest_turns=3, slow_call=5.0)


@dataclass(frozen=True, slots=True)
class Compared:
    """Seconds of one query."""

    name: str
    own: float
    peer: float

    @property
    def ratio(self) -> float:
        return self.own / self.peer


def show(scale: float) -> None:
    for suite, compared in {"TPC-H": _tpch(scale), "TPC-DS": _tpcds(scale)}.items():
        print(f"\n{suite}, scale {scale:g} {'Remuda':>21} {'DuckDB':>12} {'ratio':>7}")
        for each in compared:
            print(f"  {each.name:<24} {duration(each.own):>12} {duration(each.peer):>12} {each.ratio:>7.2f}")
        print(f"  {'geometric mean':<50} {geometric_mean([each.ratio for each in compared]):>7.2f}")


def geometric_mean(ratios: Sequence[float]) -> float:
    """
    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def _tpch(scale: float) -> list[Compared]:
    with tempfile.TemporaryDirectory() as name, remuda.open() as grid:
        folder = Path(name)
        tpch.generate(folder, scale)
        tpch.create_tables(grid)
        tpch.load(grid, folder)
        return _compare(grid, folder, {f"Q{number}": text for number, text in tpch.QUERIES.items()})


def _tpcds(scale: float) -> list[Compared]:
    try:
        folder = tpcds.prepare(scale)
    except tpcds.NotInstalledError as error:
        print(f"\nTPC-DS is left out: {error}")
        return []
    with remuda.open() as grid:
        tpcds.load(grid, folder)
        return _compare(grid, folder, {f"Q{number}": tpcds.text_of(folder, number) for number in tpcds.queries()})


def _compare(grid: Any, folder: Path, queries: Mapping[str, str]) -> list[Compared]:
    found = []
    with duckdb.connect() as peer:
        for path in sorted(folder.glob("*.parquet")):
            peer.sql(f"CREATE TABLE {path.stem} AS FROM '{path}'")
        for name, text in queries.items():
            statement = text.strip().rstrip(";")
            times = interleave(
                {
                    "own": lambda statement=statement: grid.sql(statement).arrow(),
                    "peer": lambda statement=statement: peer.sql(statement).to_arrow_table(),
                },
                BUDGET,
            )
            found.append(Compared(name, times["own"].minimum, times["peer"].minimum))
    return found
