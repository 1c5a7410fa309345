"""Rows that are counted, not stored: a long series, and one for each of many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench.case import REMUDA, Case, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator

LAST = 10_000_000
LONG = f"SELECT SUM(n) FROM generate_series(1, {LAST}) AS s(n)"
MANY = "SELECT COUNT(*), SUM(n) FROM generate_series(1, 2000) AS s(i), generate_series(1, i) AS t(n)"


def cases(setting: Setting) -> Iterator[Case]:
    ours = setting.peers.remuda
    yield Case(
        "sum of a series of 10M",
        {
            REMUDA: lambda: ours.arrow(LONG),
            **setting.contenders(["DuckDB"], lambda duck: lambda: duck.arrow(LONG)),
            **setting.contenders(["Polars"], lambda polars: lambda: polars.series(LAST)),
        },
    )
    yield Case(
        "2,000 series, 2M rows in all",
        {
            REMUDA: lambda: ours.arrow(MANY),
            **setting.contenders(["DuckDB"], lambda duck: lambda: duck.arrow(MANY)),
        },
    )
