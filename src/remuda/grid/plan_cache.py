"""The plan cache: plans by scope and exact SQL text, the least recently used ones evicted.

A scope is what of a session its plans depend on: its search path and some of its settings. Sessions of one scope share
their plans; SET moves a session to another scope and leaves the plans of all scopes alone.

A plan is good as long as the maps it was made for and the partition map are still the current ones, and as long as no
map has grown or shrunk so much that another plan may be better. The former is looked at when a plan is taken after
something changed (another catalog or another `epoch` tells), the latter whenever a plan is taken that is no shortcut,
and both once a second by a worker in the background, which also finds the plans that are no longer used.

The epoch alone would not do: it changes when a statement has been carried out, and others see the new catalog before.
"""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from remuda.exec import ExpressionCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.catalog import Catalog
    from remuda.grid.result import Result
    from remuda.grid.rows import RowShape
    from remuda.plan.fragments import Plan
    from remuda.storage import Store

PlanScope = tuple[Any, ...]
"""The search path of a session, and those of its settings that plans depend on."""
PlanKey = tuple[PlanScope, str]

DEFAULT_LIMIT = 10_000
WORKER_PERIOD = 1.0
NEVER = -1
"""The epoch of a plan that was taken out of the cache."""


class CachedPlan:
    """A plan with what was prepared for running it, and the record of its use."""

    __slots__ = ("catalog", "code", "epoch", "hits", "key", "last_used", "plan", "shape", "shortcut", "value_plans")

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
        self.key: PlanKey | None = None
        """Where the plan is in the cache; None for one that was never put there."""
        self.value_plans: dict[tuple[int, ...], CachedPlan | None] = {}
        """Plans for classes of values; None for a class that came once. They go with this one."""
        self.hits = 0
        self.last_used = time.monotonic()


class PlanCache:
    """`is_valid` compares a plan with the current catalog, which is the store's, and with the partition table;
    `fits_rows` with the rows of its maps, which is cheap enough for every use but that of a shortcut."""

    def __init__(
        self,
        store: Store,
        is_valid: Callable[[Plan], bool],
        fits_rows: Callable[[Plan], bool],
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.epoch = 0
        self._store = store
        self._is_valid = is_valid
        self.fits_rows = fits_rows
        self._limit = limit
        self._scopes: dict[PlanScope, dict[str, CachedPlan]] = {}
        self._by_use: OrderedDict[CachedPlan, None] = OrderedDict()
        """All plans, the least recently used one first."""
        self._lock = Lock()
        self._worker = _Worker(self)

    def in_scope(self, scope: PlanScope) -> dict[str, CachedPlan]:
        """Return the plans of a scope by text, always the same dictionary: a session keeps it, and only reads it.

        A plan found there may be used where its epoch and catalog are the present ones; else `find` compares it.
        """
        with self._lock:
            return self._scopes.setdefault(scope, {})

    def find(self, key: PlanKey) -> CachedPlan | None:
        """Find a plan, without a lock: reading a dictionary is atomic, and a lost count of hits does no harm."""
        scope, text = key
        entry = self._scopes.get(scope, {}).get(text)
        if entry is None:
            return None
        same = entry.epoch == self.epoch and entry.catalog is self._store.catalog
        if not (self.fits_rows(entry.plan) if same else self._is_current(entry)):
            self.remove(entry)
            return None
        self.count_use(entry)
        return entry

    def count_use(self, entry: CachedPlan) -> None:
        """Make a plan the most recently used one. No lock: `move_to_end` is atomic, as plans are hashed by identity."""
        entry.hits += 1
        entry.last_used = time.monotonic()
        try:  # noqa: SIM105  (`suppress` takes longer than all the rest)
            self._by_use.move_to_end(entry)
        except KeyError:
            pass  # another thread has removed it at this moment

    def _is_current(self, entry: CachedPlan) -> bool:
        """Compares the plan, and notes with what: with what there was before, as it may change meanwhile."""
        catalog, epoch = self._store.catalog, self.epoch
        if not self._is_valid(entry.plan):
            return False
        entry.catalog, entry.epoch = catalog, epoch
        return True

    def add(self, key: PlanKey, entry: CachedPlan) -> None:
        """Add a plan, unless it was begun before a change that the present one follows."""
        scope, text = key
        with self._lock:
            plans = self._scopes.setdefault(scope, {})
            present = plans.get(text)
            if present is not None and present.epoch > entry.epoch:
                return
            if present is None:
                self._make_room()
            else:
                del self._by_use[present]
            entry.key = key
            entry.last_used = time.monotonic()
            plans[text] = entry
            self._by_use[entry] = None
        self._worker.start()

    def _make_room(self) -> None:
        """Evict before a plan is added, in the thread that adds it, so that the limit is never exceeded."""
        while len(self._by_use) >= self._limit:
            oldest, _ = self._by_use.popitem(last=False)  # in one step, as uses move plans without the lock
            self._forget(oldest)

    def remove(self, entry: CachedPlan) -> None:
        """Remove this plan; a newer one under the same key stays."""
        if entry.key is None:
            return
        scope, text = entry.key
        with self._lock:
            if self._scopes[scope].get(text) is entry:
                self._forget(entry)

    def _forget(self, entry: CachedPlan) -> None:
        """Forget an entry; an impossible epoch keeps a session that finds it at this moment from using it."""
        assert entry.key is not None, "the plan is in the cache"
        scope, text = entry.key
        del self._scopes[scope][text]
        self._by_use.pop(entry, None)
        entry.epoch = NEVER

    def changed(self) -> None:
        """Something that plans depend on is different now: plans are compared before their next use, and at once."""
        with self._lock:
            self.epoch += 1
        self._worker.wake()

    def remove_stale(self) -> None:
        for _, entry in self.entries():
            if not self._is_current(entry):
                self.remove(entry)

    def clear(self) -> None:
        with self._lock:
            for _, entry in self._all():
                self._forget(entry)

    def entries(self) -> list[tuple[PlanKey, CachedPlan]]:
        with self._lock:  # a collection of garbage in between may let another thread add a plan
            return self._all()

    def _all(self) -> list[tuple[PlanKey, CachedPlan]]:
        return [((scope, text), entry) for scope, plans in self._scopes.items() for text, entry in plans.items()]

    def __len__(self) -> int:
        return len(self._by_use)

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
