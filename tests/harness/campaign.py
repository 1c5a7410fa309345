"""Runs every random generator in turn, in all local configurations, until so many statements have been compared.

    python -m tests.harness.campaign --statements 200000 --seed 50000 --processes 2

Each generator makes its own maps for a seed and compares what Remuda answers with DuckDB, or with a definition. A wrong
answer, an exception that is not ours, and a statement of more than 10 s of processor time are faults: they are printed
with the generator and the seed that show them again. The exit status is the number of faults, at most 100.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from remuda.grid.session import Session
from tests.harness.wider_queries import WiderGenerator
from tests.properties import (
    test_casts,
    test_composite_keys,
    test_decisions,
    test_estimates,
    test_first_rows,
    test_growing_queries,
    test_index_choice,
    test_lookup_joins,
    test_outer_join_queries,
    test_quantified,
    test_random_aggregates,
    test_random_changes,
    test_random_queries,
    test_random_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRESS = 20_000
"""Statements between two lines that tell how far it is."""
MOST_SECONDS = 10.0
"""Processor time of one statement."""


def _decisions(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        test_decisions.Trial(seed, Path(folder) / "grid").run(20)


def _index_choice(seed: int) -> None:
    profiles = test_index_choice.PROFILES
    test_index_choice.compare(seed, 60, 1 + 2 * (seed % 2), profiles[seed % len(profiles)])


def _lookup_joins(seed: int) -> None:
    profiles = list(test_lookup_joins.PROFILES.values())
    test_lookup_joins.compare(seed, 60, 1 + 2 * (seed % 2), profiles[seed % len(profiles)])


GENERATORS: dict[str, Callable[[int], object]] = {
    "queries": lambda seed: test_random_queries.compare(seed, 100, 1 + seed % 3),
    "wider queries": lambda seed: test_random_queries.compare(seed, 100, 1 + seed % 3, WiderGenerator),
    "queries over replicated maps": lambda seed: test_random_queries.compare(
        seed, 100, 3, WiderGenerator, replicated=True
    ),
    "changes": lambda seed: test_random_changes.compare(seed, 60, 1 + seed % 3),
    "changes of replicated maps": lambda seed: test_random_changes.compare(seed, 60, 3, replicated=True),
    "outer joins": lambda seed: test_outer_join_queries.compare(seed, 60),
    "decisions": _decisions,
    "index choice": _index_choice,
    "lookup joins": _lookup_joins,
    "keys of several columns": lambda seed: test_composite_keys.compare(seed, 100, 1 + 2 * (seed % 2)),
    "first rows": lambda seed: test_first_rows.compare(seed, 60, 1 + 2 * (seed % 2)),
    "growing queries": test_growing_queries.check_round,
    "aggregates": lambda seed: test_random_aggregates.compare(seed, 100, 1 + 2 * (seed % 2)),
    "quantified": lambda seed: test_quantified.test_definition(seed, 1 + 2 * (seed % 2)),
    "casts": lambda seed: test_casts.compare(seed, 1 + 2 * (seed % 2), 0.05),
    "precedence": lambda seed: test_random_texts.check_precedence(seed, 200),
    "literals": lambda seed: test_random_texts.check_literals(seed, 100),
    "arithmetic": lambda seed: test_random_texts.check_arithmetic(seed, 200),
    "estimates": lambda seed: test_estimates.check(seed, 100),
}


class _Watch:
    """Counts the statements of a process and finds those that take too long."""

    def __init__(self) -> None:
        self.statements = 0
        self.slow: list[str] = []
        self._sql = Session.sql

    def __enter__(self) -> Self:
        watch, run = self, self._sql

        def counted(session: Session, text: str, /, *parameters: Any, **named: Any) -> Any:
            watch.statements += 1
            started = time.thread_time()
            try:
                return run(session, text, *parameters, **named)
            finally:
                if time.thread_time() - started > MOST_SECONDS:
                    watch.slow.append(text)

        Session.sql = counted
        return self

    def __exit__(self, *_: object) -> None:
        Session.sql = self._sql


def run(name: str, seed: int) -> tuple[str, int, int, list[str]]:
    """One seed of one generator: its name, the seed, how many statements ran, and what was wrong."""
    warnings.simplefilter("ignore")
    with _Watch() as watch:
        faults = []
        try:
            GENERATORS[name](seed)
        except Exception:  # noqa: BLE001 - it is what is looked for
            faults.append(traceback.format_exc(limit=-3)[-3_000:])
    return name, seed, watch.statements, faults + [f"took over {MOST_SECONDS:g} s: {text}" for text in watch.slow]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--statements", type=int, default=200_000)
    options.add_argument("--seed", type=int, default=50_000)
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options.add_argument("--only", nargs="*", default=list(GENERATORS), metavar="GENERATOR")
    given = options.parse_args()
    counts: Counter[str] = Counter()
    faults = 0
    begun = 0
    with ProcessPoolExecutor(given.processes, max_tasks_per_child=20) as pool:
        waiting = set()
        while counts.total() < given.statements:
            while len(waiting) < 2 * given.processes:
                round_, number = divmod(begun, len(given.only))
                waiting.add(pool.submit(run, given.only[number], given.seed + round_))
                begun += 1
            done = next(as_completed(waiting))
            waiting.discard(done)
            name, its_seed, statements, found = done.result()
            before = counts.total()
            counts[name] += statements
            if before // PROGRESS != counts.total() // PROGRESS:
                print(f"{counts.total():,} statements, {faults} faults", flush=True)
            faults += len(found)
            for fault in found:
                print(f"FAULT: {name}, seed {its_seed}\n{fault}\n", flush=True)
        pool.shutdown(cancel_futures=True)
    for name, number in sorted(counts.items()):
        print(f"{number:9,} {name}")
    print(f"{counts.total():9,} statements, {faults} faults, seeds from {given.seed}, {begun} runs")
    return min(faults, 100)


if __name__ == "__main__":
    raise SystemExit(main())
