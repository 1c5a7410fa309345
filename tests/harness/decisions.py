"""Everything that is decided at execution by a number, and how a test forces either side of each decision.

A decision is a constant of a module: below it one way is taken, above it another, and both must give the same answer.
With the constants as they are, the small maps of tests would see one side only.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from remuda.exec.context import ExecContext
from remuda.expr import columns_of
from remuda.plan.physical import ScanCutover, SortRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random
    from types import ModuleType

NEVER = 1 << 40
PACKAGES = ("remuda.exec", "remuda.expr", "remuda.grid", "remuda.optimizer", "remuda.runtime", "remuda.storage")


@dataclass(frozen=True, slots=True)
class Decision:
    """`module` defines the constant `name`; `sides` are values that force what the constant itself does not choose."""

    module: str
    name: str
    sides: tuple[Any, ...]

    @property
    def key(self) -> str:
        return f"{self.module}.{self.name}"


def _direct_scan(limit: int) -> Any:
    return lambda *_: ScanCutover(((limit, 0.0),))


def _map_held(limit: int) -> Any:
    return lambda *_, **__: limit


def _looked_up(limit: int) -> Any:
    return lambda *_: (limit, limit)


def _sorted_below(share: float) -> Any:
    return lambda _, passing: SortRule(share, 0.3, passing)


def _filter_in_one_pass(limit: int) -> Any:
    return lambda node, *_: limit if columns_of(node.residual) else None


DECISIONS = (
    # Index scan or direct scan, one row at a time or Arrow, how much of an index is read at once.
    Decision(
        "optimizer.cost", "scan_cutover", (_direct_scan(0), _direct_scan(3), _direct_scan(40), _direct_scan(NEVER))
    ),
    Decision(
        "optimizer.cost",
        "filter_cutover",
        (_filter_in_one_pass(0), _filter_in_one_pass(60), _filter_in_one_pass(NEVER)),
    ),
    Decision("optimizer.cost", "union_cutover", (_direct_scan(0), _direct_scan(40), _direct_scan(NEVER))),
    Decision("optimizer.cost", "hold_cutover", (_map_held(0), _map_held(5), _map_held(NEVER))),
    Decision("optimizer.cost", "hold_entries", (_map_held(0), _map_held(5), _map_held(NEVER))),
    Decision("exec.scan.ordered_residual", "ROWS_AT_ONCE", (1, 16)),
    Decision("exec.scan.index_choice", "FEW_ROWS", (0, 3, NEVER)),
    Decision("exec.scan.ordered_index_scan", "FIRST_CHUNK", (1, 1000)),
    Decision("exec.scan.index_scan", "LARGEST_CHUNK", (2, 50)),
    Decision("exec.scan.ordered_index_scan", "LARGEST_CHUNK", (2, 50)),
    Decision("optimizer.cost", "sort_rule", (_sorted_below(0.0), _sorted_below(0.5), _sorted_below(1e12))),
    Decision("storage.row_source", "FIRST_PIECE", (1, 5)),
    Decision("storage.row_source", "LARGEST_PIECE", (2, 50)),
    # Which plan is the cheapest: on small maps no index and no exchange would be worth its start.
    Decision("optimizer.cost", "SCAN_START", (0.0, 1e6)),
    Decision("optimizer.cost", "SCAN_ROW", (0.0, 1e4)),
    Decision("optimizer.cost", "INDEX_START", (0.0, 1e6)),
    Decision("optimizer.cost", "KEY_LOOKUP", (0.0, 1e6)),
    Decision("optimizer.cost", "COUNT_START", (0.0, 1e6)),
    Decision("optimizer.cost", "OPERATOR_START", (0.0, 1e5)),
    Decision("optimizer.cost", "EXCHANGE_START", (0.0, 1e6)),
    Decision("optimizer.cost", "LOOKUP_ROW", (0.0, 1e6)),
    Decision("optimizer.cost", "INDEX_LOOKUP_ROW", (0.0, 1e6)),
    Decision("optimizer.cost", "BUILD_ROW", (0.0, 1e4)),
    Decision("optimizer.cost", "MERGE_ROW", (0.0, 1e4)),
    Decision("optimizer.cost", "GROUP_ROW", (0.0, 1e4)),
    Decision("optimizer.cost", "STREAM_ROW", (0.0, 1e4)),
    Decision("optimizer.cost", "SORT_COMPARISON", (0.0, 1e4)),
    Decision("optimizer.cost", "GATHER_COLUMN", (0.0, 1e3)),
    # Key lookups in pieces; bounds as points or as ranges.
    Decision("exec.scan.key_lookup", "MANY_KEYS", (1, 2)),
    Decision("exec.scan.index_matches", "KEYS_AT_ONCE", (1, 3)),
    Decision("exec.join.lookup_join", "ENTRIES_FOR_EACH", (0, NEVER)),
    Decision("exec.scan.concrete_bounds", "MAXIMUM_RANGE", (0, 3)),
    Decision("exec.scan.concrete_bounds", "MAXIMUM_COMBINATIONS", (1, 3)),
    # Compiled reads or fragments.
    Decision("grid.shortcuts.read_shortcuts", "MOST_ROWS", (0, 2, NEVER)),
    Decision("grid.shortcuts.ordered_shortcut", "MOST_ROWS", (0, 2, NEVER)),
    Decision("storage.lookup.ordered_rows", "MOST_TESTED", (0, 2)),
    # Batches of a direct scan, blocks left out by their extremes, best blocks first.
    Decision("exec.context", "SCAN_BATCH_ROWS", (1, 7, 64)),
    Decision("exec.batch_size", "FIRST_ROWS", (1, 7)),
    Decision("exec.batch_size", "FEWEST_ROWS", (1,)),
    Decision("exec.batch_size", "BATCH_BYTES", (1, 64)),
    Decision("runtime.local", "MOST_BYTES", (2,)),
    Decision("exec.scan.map_scan", "JOINED_ROWS", (0, 5, NEVER)),
    Decision("exec.scan.map_scan", "JOINED_BYTES", (0, 200)),
    Decision("exec.scan.zone_ranges", "SMALLEST_GAP", (1, 20)),
    Decision("storage.segment.zone_map", "ZONE_ROWS", (1, 4, 16)),
    Decision("optimizer.cost", "ZONES_FOR_EACH", (0,)),
    Decision("exec.scan.zone_order", "FIRST_ZONES", (1, 3)),
    Decision("exec.sort.sort", "SMALL_SHARE", (0.0, 1.0)),
    Decision("exec.sort.sort", "SAMPLE_ROWS", (1, 16)),
    Decision("exec.sort.sort", "SPARE_ROWS", (1,)),
    Decision("exec.sort.ordering", "NUMBERS_FOR_EACH", (0, NEVER)),
    Decision("exec.sort.ordering", "TEXTS_FOR_EACH", (0, NEVER)),
    # Columns in fewer bytes.
    Decision("exec.scan.frame_of_reference", "SCANS_BEFORE", (0,)),
    Decision("exec.scan.frame_of_reference", "FEWEST_ROWS", (0,)),
    # How the rows that pass are chosen and gathered.
    Decision("exec.selection", "DENSE", (0.0, 1.1)),
    Decision("exec.selection", "NEARLY_ALL", (0.0, 1.1)),
    Decision("exec.selection", "SPARSE", (0.0, 1.1)),
    Decision("exec.selection", "HANDFUL", (0, NEVER)),
    # Joins: tuples or Arrow, which side is read first and tells the other, how many pairs at once.
    Decision("optimizer.cost", "ARROW_JOIN_START", (0.0, 5e3, 1e15)),
    Decision("optimizer.cost", "FILTERED_BUILD_ROWS", (0,)),
    Decision("optimizer.cost", "SPOOLED_PROBE_SHARE", (0.0, 1e9)),
    Decision("optimizer.cost", "SPOOLED_PROBE_ROWS", (1, 10)),
    Decision("optimizer.cost", "RUNTIME_FILTER_SHARE", (0.0, 1e9)),
    Decision("optimizer.cost", "PRUNED_RANGE_ROWS", (0, NEVER)),
    Decision("optimizer.cost", "LOOKUP_DOUBT", (0, NEVER)),
    Decision("optimizer.cost", "dynamic_lookup_cutover", (_looked_up(0), _looked_up(3), _looked_up(NEVER))),
    Decision("optimizer.cost", "KEYS_FOR_EACH_PARTITION", (0, NEVER)),
    Decision("exec.join.join_table", "PAIRS_AT_ONCE", (1, 10)),
    Decision("exec.join.join_table", "COUNTED_AT_ONCE", (1, 5)),
    # In memory or spilled, where there is a limit.
    Decision("exec.memory", "SHARES", ((0.0, 0.0), (0.0, 1e-6))),
    Decision("exec.aggregate.spilled_groups", "LEAST_ROWS", (1,)),
    Decision("exec.aggregate.spilled_groups", "FIRST_ROWS", (1, 5)),
    Decision("exec.aggregate.spilled_groups", "DICTIONARIES_OF_ROOM", (NEVER,)),
    # Keys as integers: a table, hashed, or sorted; strings by their dictionary or by themselves.
    Decision("exec.keys.integer_interner", "SLOTS_FOR_EACH", (0, 1 << 12)),  # more would be tables of gigabytes
    Decision("exec.keys.integer_interner", "FREE_SLOTS", (0, 64)),
    Decision("exec.keys.integer_interner", "FREE_SLOTS_FOR_EACH", (0, 2)),
    Decision("exec.keys.integer_interner", "MANY", (1, 20)),
    Decision("exec.keys.integer_interner", "WIDE_SLOTS", (0, 64)),
    Decision("exec.keys.integer_interner", "LOOK_UPS_FOR_EACH", (0, NEVER)),
    Decision("exec.keys.integer_interner", "FEW_KNOWN", (-1.0, 1.1)),
    Decision("exec.keys.text_interner", "FOUND_SHARE", (0, NEVER)),
    Decision("exec.keys.text_interner", "INTERNED_SHARE", (0, 1)),
    Decision("expr.evaluate.mask", "DICTIONARY_SHARE", (0, NEVER)),
    Decision("storage.segment.segment_builder", "DICTIONARY_SHARE", (0.0, 1.1)),
    Decision("storage.segment.column_reader", "KEPT_STRINGS", (0,)),
    # Aggregates: several threads, their own states or rows sent on, sums in pieces.
    Decision("optimizer.cost", "FORK_ROWS", (0, 20)),
    Decision("optimizer.cost", "SAMPLE_ROWS", (1, 16)),
    Decision("optimizer.cost", "PARTIAL_FEW_GROUPS", (0, 3)),
    Decision("optimizer.cost", "PARTIAL_GROUP_ROWS", (0, NEVER)),
    Decision("exec.aggregate.aggregate", "FEW_GROUPS", (0, 3)),
    Decision("exec.aggregate.aggregate", "COLLECTED_ROWS", (1, 30)),
    Decision("exec.aggregate.accumulators", "_AT_ONCE", (1, 16)),
    Decision("exec.aggregate.accumulators", "ROWS_OF_COUNT", (0, NEVER)),
    Decision("exec.window.window_aggregates", "_ROWS_AT_ONCE", (1, 16)),
    Decision("exec.batch", "ROWS_AT_ONCE", (1, 16)),
    Decision("exec.relational.series", "ROWS_AT_ONCE", (1, 16)),
    # The thread of the reader or another one.
    Decision("exec.offload", "LIGHT_ROWS", (0, 8, NEVER)),
    Decision("grid.result", "CURSOR_BUFFER_SIZE", (1, 3)),
    Decision("grid.result", "ROWS_AT_ONCE", (1, 3)),
    Decision("grid.rows", "FEW_ROWS", (0, NEVER)),
    # Expressions: a branch of CASE on its rows only, a row at a time.
    Decision("expr.evaluate.conditional", "_FEW", (0, NEVER)),
    Decision("expr.evaluate.by_rows", "ROWS_AT_ONCE", (1, 3)),
    Decision("expr.functions.decimal_words", "FEW_ROWS", (2, NEVER)),
    Decision("expr.cast.cast", "_FEW", (0, NEVER)),
    # Where rows lie: in the log or in segments, in how many, which keys newer segments may have.
    Decision("storage.load.map_load", "SMALL_LOAD", (0, NEVER)),
    Decision("optimizer.cost", "SEGMENT_START", (0.0, 1e15)),
    Decision("grid.statement_writer", "TABLE_ROWS", (1, 10)),
    Decision("storage.map_store", "FLUSH_ENTRIES", (4, 40)),
    Decision("storage.load.segment_cut", "GROUP_BYTES", (100, 2_000)),
    Decision("storage.load.group_compaction", "MOST_SEGMENTS", (2,)),
    Decision("storage.load.group_compaction", "DELETED_SHARE", (0.0, 1.1)),
    Decision("storage.lookup.dirty_keys", "DIRTY_SHARE", (0.0, 1.1)),
    Decision("storage.index.interpolation_table", "ROWS_IN_A_SLOT", (1, 4)),
    Decision("storage.index.interpolation_table", "CROWD", (1, 4)),
    Decision("storage.index.sorted_index", "_NEAR", (0, 4)),
    Decision("storage.lookup.index_lookup", "FEW_ENTRIES", (0, NEVER)),
    Decision("storage.segment.row_memory", "LARGE", (0, NEVER)),
    Decision("storage.index.sorted_index", "_FEW", (0, NEVER)),
    Decision("storage.index.hash_index", "_COUNTED", (1, 4)),
)
BY_KEY = {decision.key: decision for decision in DECISIONS}

Profile = dict[str, int]
"""The side that is forced of each decision, by number; decisions that are not in it stay as they are."""


def random_profile(random: Random) -> Profile:
    """Sometimes nothing is forced, sometimes a few decisions are, sometimes most of them."""
    share = random.choice((0.0, 0.15, 0.5, 0.9))
    return {decision.key: random.randrange(len(decision.sides)) for decision in DECISIONS if random.random() < share}


@contextmanager
def forced(profile: Mapping[str, int]) -> Iterator[None]:
    """Force these sides in every module that has the constant. Grids are to be opened and closed within."""
    undo: list[tuple[ModuleType, str, Any]] = []
    with suppress(TypeError):  # it lacks its arguments; the first call has written `__init__`, with its defaults
        ExecContext()  # type: ignore[call-arg]
    defaults = ExecContext.__init__.__defaults__
    try:
        for key, side in profile.items():
            decision = BY_KEY[key]
            definer = importlib.import_module(f"remuda.{decision.module}")
            before, value = getattr(definer, decision.name), decision.sides[side]
            for module, name in _importers(definer, decision.name):
                undo.append((module, name, before))
                setattr(module, name, value)
            if decision.name == "SCAN_BATCH_ROWS":
                assert defaults is not None
                assert before in defaults
                ExecContext.__init__.__defaults__ = tuple(value if each == before else each for each in defaults)
        yield
    finally:
        ExecContext.__init__.__defaults__ = defaults
        for module, name, before in undo:
            setattr(module, name, before)


def _importers(definer: ModuleType, name: str) -> list[tuple[ModuleType, str]]:
    """The modules that have the constant, each with the name that it has there."""
    having = [module for module in _modules() if name in _source(module)]
    found = [(module, local) for module in having for local in _imported(module).get((definer.__name__, name), ())]
    return [(definer, name), *found]


@cache
def _modules() -> tuple[ModuleType, ...]:
    """All that may have a constant, loaded now: one that is loaded later would keep what is forced for the moment."""
    return tuple(
        importlib.import_module(found.name)
        for package in PACKAGES
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    )


@cache
def _source(module: ModuleType) -> str:
    return inspect.getsource(module)


@cache
def _imported(module: ModuleType) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.setdefault((node.module or "", alias.name), []).append(alias.asname or alias.name)
    return found
