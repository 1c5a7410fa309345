"""Plans of one text for different values of its parameters: see `optimizer/value_classes.py`.

The plan that the cache has is made without values. One for a class of values is made when the class comes for the
second time, so that a statement that runs once is planned once; at once where running it takes much longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError
from remuda.optimizer.value_classes import class_of_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.grid.plan_cache import CachedPlan, PlanCache
    from remuda.storage import Store

MOST_CLASSES = 16
"""Classes that are counted for a text; values of any other run by the plan that is made without values."""
LONG_COST = 50e6
"""Nanoseconds from which a plan takes so much longer than planning that a better one is made at once."""


def plan_for_values(
    entry: CachedPlan,
    values: tuple[Any, ...],
    store: Store,
    cache: PlanCache,
    plan: Callable[[tuple[Any, ...]], CachedPlan],
) -> CachedPlan:
    """Return the plan for these stored values: the entry's own, or one that `plan` has made for their class."""
    bounds = entry.plan.value_bounds
    if not bounds or entry.key is None:
        return entry
    try:
        class_ = class_of_values(bounds, values, lambda definition: store.map(definition).statistics())
    except SqlError:  # A map was dropped at this moment: the execution finds out.
        return entry
    plans = entry.value_plans
    if class_ not in plans:
        if len(plans) >= MOST_CLASSES:
            return entry
        plans[class_] = None
        if entry.plan.tree.estimate.cost < LONG_COST:
            return entry
    found = plans[class_]
    if found is None or not cache.fits_rows(found.plan):
        found = plans[class_] = plan(values)
    return found
