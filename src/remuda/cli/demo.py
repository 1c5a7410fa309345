"""`remuda demo`: a million orders, loaded through Spark into a folder, and what each query costs, Spark beside it."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow.parquet as pq

import remuda
from remuda.cli.demo_pipeline import run_pipeline
from remuda.cli.demo_queries import DEFINITION, access_path, best_of, changes, orders, questions, timed
from remuda.cli.demo_spark import PlainSpark, start_spark
from remuda.presentation.durations import duration
from remuda.presentation.text_table import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.cli.demo_queries import Question
    from remuda.grid import Grid

T = TypeVar("T")

WIDTH = 98
RUNS = 5


def run_demo(rows: int, *, with_spark: bool) -> int:
    print(f"\nRemuda {remuda.__version__}: one folder of maps, embedded in Python and on Spark\n")
    with tempfile.TemporaryDirectory(prefix="remuda-demo-") as name:
        folder = Path(name)
        session = _step("Start Spark", lambda: start_spark(folder / "spark.log")) if with_spark else None
        try:
            _demonstrate(folder, rows, session)
        finally:
            if session is not None:
                session.stop()
    return 0


def _demonstrate(folder: Path, rows: int, session: Any) -> None:
    parquet, shop = folder / "orders.parquet", folder / "shop.remuda"
    table = orders(rows)
    _step(f"Write {counted(rows, 'order')} to a Parquet file", lambda: pq.write_table(table, parquet))
    plain = None
    if session is not None:
        plain = _step("Cache them in Spark, for comparison", lambda: PlainSpark(session, parquet))
    with remuda.open(str(shop), spark=session) as grid:
        for statement in DEFINITION:
            grid.sql(statement)
        source, by = (table, "") if plain is None else (plain.dataframe, " by a Spark job")
        _step(f"Load them into a Remuda folder{by}, with two indexes", lambda: grid.load("orders", source))
    with _step("Open the folder again", lambda: remuda.open(str(shop), spark=session)) as grid:
        _show_questions(grid, rows, plain)
        _show_changes(grid, rows)
        if session is not None:
            _show_spark_engine(grid)
            _show_pipeline(grid, session, folder, rows)
        _show_plan(grid, rows)
    _show_what_next()


def _step(text: str, action: Callable[[], T]) -> T:
    """Show a step: its line is begun before it and written again after it, as a load draws its bar over it."""
    begun = f"  {text} "
    print(begun, end="", flush=True)
    result, seconds = timed(action)
    again = f"\r{begun}" if sys.stdout.isatty() else ""
    print(again + "·" * (WIDTH - 14 - len(text)), f"{duration(seconds):>9}")
    return result


def _row(left: str, rows: str, ours: str, cached: str, parquet: str) -> str:
    return f"  {left:<50}{rows:>8}{ours:>11}{cached:>13}{parquet:>14}".rstrip()


def _show_questions(grid: Grid, rows: int, plain: PlainSpark | None) -> None:
    peers = ("", "") if plain is None else ("Spark cached", "Spark Parquet")
    print("\n" + _row("Query and access path", "rows", "Remuda", *peers))
    print("  " + "─" * (WIDTH - 2))
    for question in questions(rows):
        ask = partial(_rows_of, grid, question)
        answer = ask()
        ours = best_of(ask, RUNS)
        theirs = ("", "")
        if plain is not None:
            text = question.with_literals
            theirs = (duration(plain.seconds(text, "cached")), duration(plain.seconds(text, "parquet")))
        print(f"  {question.sql}")
        path = _path_taken(grid, question)
        print(_row(f"  → {path}", f"{len(answer):,}", duration(ours), *theirs))


def _path_taken(grid: Grid, question: Question) -> str:
    """Return the path of the plan that runs, with the choice that is made when the values are known."""
    return access_path(grid.explain(question.sql, *question.parameters))


def _rows_of(grid: Grid, question: Question) -> list[Any]:
    rows: list[Any] = grid.sql(question.sql, *question.parameters).fetchall()
    return rows


def _show_changes(grid: Grid, rows: int) -> None:
    print("\n" + _row("Change", "rows", "Remuda", "", ""))
    print("  " + "─" * (WIDTH - 2))
    for change in changes(rows):
        path = _path_taken(grid, change)
        result, seconds = timed(partial(grid.sql, change.sql, *change.parameters))
        print(f"  {change.sql}")
        print(_row(f"  → {path}, safe on disk", f"{result.update_count:,}", duration(seconds), "", ""))


def _show_spark_engine(grid: Grid) -> None:
    text = "SELECT status, COUNT(*), SUM(amount) FROM orders GROUP BY status"
    grid.sql("SET engine = spark")
    answer = grid.sql(text).fetchall()
    taken = best_of(lambda: grid.sql(text).fetchall(), RUNS)
    grid.sql("SET engine = auto")
    print("\n" + _row("The same folder, the leaf fragments in Spark tasks", "rows", "Remuda", "", ""))
    print("  " + "─" * (WIDTH - 2))
    print(f"  SET engine = spark; {text}")
    print(_row("  → one task for each executor slot", f"{len(answer):,}", duration(taken), "", ""))


def _show_pipeline(grid: Grid, session: Any, folder: Path, rows: int) -> None:
    print("\n" + _row("A pipeline: raw files → Spark → map → lookups → change feed", "rows", "Remuda", "", ""))
    print("  " + "─" * (WIDTH - 2))
    for stage in run_pipeline(session, grid, folder, max(100, rows // 10)):
        print(f"  {stage.what}")
        print(_row(f"  → {stage.how}", f"{stage.rows:,}", duration(stage.seconds), "", ""))


def _show_plan(grid: Grid, rows: int) -> None:
    question = questions(rows)[1]
    print(f"\n  EXPLAIN {question.sql}\n")
    for line in grid.explain(question.sql, *question.parameters).splitlines():
        print(f"    {line}")


def _show_what_next() -> None:
    print("\n  What to try next")
    print("    remuda                                        a shell on maps in memory; \\? for help")
    print("    remuda -d shop.remuda                         the same on a folder; --create makes it")
    print('    remuda sql -d shop.remuda -c "SELECT ..."     one statement; --format csv or json')
    print('    python -c "import remuda; remuda.open()"      the same engine in a program: see README.md\n')
