"""The plan cache: plans by search path and exact SQL text, the least recently used ones evicted.

A plan is good as long as the maps it was made for and the partition map are still the current ones. That is looked at
when a plan is taken after something changed (another catalog or another `epoch` tells), and once a second by a worker
in the background, which also finds the plans that nobody asks for any more.

The epoch alone would not do: it changes when a statement has been carried out, and others see the new catalog before.
"""

from __future__ import annotations

import heapq
import time
import weakref
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from remuda.exec import ExpressionCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.catalog import Catalog, SearchPath
    from remuda.grid.result import Result
    from remuda.grid.rows import RowShape
    from remuda.plan.fragments import Plan
    from remuda.storage import Store

PlanKey = tuple["SearchPath", str]

DEFAULT_LIMIT = 10_000
WORKER_PERIOD = 1.0
NEVER = -1
"""The epoch of a plan that was taken out of the cache."""


class CachedPlan:
    """A plan with what was prepared for running it, and the record of its use."""

    __slots__ = ("catalog", "code", "epoch", "hits", "last_used", "plan", "search_path", "shape", "shortcut")

    def __init__(
        self, plan: Plan, shape: RowShape, shortcut: Callable[[tuple[Any, ...]], Result | None] | None, epoch: int
    ) -> None:
        self.plan = plan
        self.code = ExpressionCache()
        self.shape = shape
        self.shortcut = shortcut
        self.epoch = epoch
        self.catalog: Catalog | None = None
        """The one that the plan was last compared with."""
        self.search_path: SearchPath | None = None
        """The one that the plan was last found by."""
        self.hits = 0
        self.last_used = time.monotonic()


class PlanCache:
    """`is_valid` compares a plan with the current catalog, which is the store's, and with the partition table."""

    def __init__(self, store: Store, is_valid: Callable[[Plan], bool], limit: int = DEFAULT_LIMIT) -> None:
        self.epoch = 0
        self._store = store
        self._is_valid = is_valid
        self._limit = limit
        self._entries: dict[PlanKey, CachedPlan] = {}
        self.recent: dict[str, CachedPlan] = {}
        """What `find` gave for a text last. A statement run again and again is found here in half the time, where the
        entry is of the present epoch, catalog and search path; whoever uses it counts the hit."""
        self._lock = Lock()
        self._worker = _Worker(self)

    def find(self, key: PlanKey) -> CachedPlan | None:
        """No lock: reading a dictionary is atomic, and a lost count of hits harms nobody."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if (entry.epoch != self.epoch or entry.catalog is not self._store.catalog) and not self._is_current(entry):
            self.remove(key, entry.plan)
            return None
        entry.hits += 1
        entry.last_used = time.monotonic()
        entry.search_path, text = key
        self.recent[text] = entry
        return entry

    def _is_current(self, entry: CachedPlan) -> bool:
        """Compares the plan, and notes with what: with what there was before, as it may change meanwhile."""
        catalog, epoch = self._store.catalog, self.epoch
        if not self._is_valid(entry.plan):
            return False
        entry.catalog, entry.epoch = catalog, epoch
        return True

    def add(self, key: PlanKey, entry: CachedPlan) -> None:
        """A plan that was begun before a change does not take the place of one that was begun after it."""
        with self._lock:
            present = self._entries.get(key)
            if present is not None and present.epoch > entry.epoch:
                return
            if present is None and len(self._entries) >= self._limit:
                self._make_room()
            self._entries[key] = entry
            entry.last_used = time.monotonic()
        self._worker.start()

    def _make_room(self) -> None:
        """At once, by the thread that adds, and before it does: the limit holds whenever somebody looks."""
        surplus = len(self._entries) - self._limit + 1
        oldest = heapq.nsmallest(surplus, self._entries.items(), key=lambda item: item[1].last_used)
        for key, _ in oldest:
            self._forget(key)

    def remove(self, key: PlanKey, plan: Plan) -> None:
        """Removes this plan; a newer one under the same key stays."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.plan is plan:
                self._forget(key)

    def _forget(self, key: PlanKey) -> None:
        """The epoch of no moment keeps whoever finds the entry among the recent ones at this moment from using it."""
        self._entries.pop(key).epoch = NEVER
        self.recent.pop(key[1], None)

    def changed(self) -> None:
        """Something that plans depend on is different now: plans are compared before their next use, and at once."""
        with self._lock:
            self.epoch += 1
        self._worker.wake()

    def remove_stale(self) -> None:
        for key, entry in self.entries():
            if not self._is_current(entry):
                self.remove(key, entry.plan)

    def clear(self) -> None:
        with self._lock:
            for key in list(self._entries):
                self._forget(key)

    def entries(self) -> list[tuple[PlanKey, CachedPlan]]:
        with self._lock:  # a collection of garbage in between may let another thread add a plan
            return list(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return True

    def close(self) -> None:
        self._worker.stop()


class _Worker:
    """Looks over the cache every second. It holds only a weak reference: a grid that is forgotten is not kept alive."""

    def __init__(self, cache: PlanCache) -> None:
        self._cache = weakref.ref(cache)
        self._wake = Event()
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = Thread(
                target=_look_over, args=(self._cache, self._wake, self._stopped), name="remuda-plans", daemon=True
            )
            self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()


def _look_over(reference: weakref.ref[PlanCache], wake: Event, stopped: Event) -> None:
    while not stopped.is_set():
        wake.wait(WORKER_PERIOD)
        wake.clear()
        cache = reference()
        if cache is None:
            return
        if not stopped.is_set():
            cache.remove_stale()
        del cache
