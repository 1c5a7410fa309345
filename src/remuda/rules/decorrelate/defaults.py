"""What aggregates without keys are where there is no row: COUNT is 0, the others are NULL.

An aggregate without keys has one row over nothing. Computed for many outer rows at once it has keys, and nothing gives
no row; after an outer join its columns are NULL there, which is right for SUM and wrong for COUNT.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.expr import Call, Literal
from remuda.plan.logical import Aggregate, Assignment

if TYPE_CHECKING:
    from remuda.plan.aggregates import AggregateCall
    from remuda.rules.new_columns import NewColumns

COUNTS = frozenset({"count", "count_if", "approx_count_distinct", "regr_count"})
"""The aggregates that are 0 over no rows."""


def with_defaults(
    aggregate: Aggregate, calls: tuple[AggregateCall, ...], new_columns: NewColumns
) -> tuple[Aggregate, tuple[Assignment, ...]]:
    """The aggregate with its counts under other names, and what each call is above an outer join with it."""
    renamed: list[AggregateCall] = []
    items: list[Assignment] = []
    for call in calls:
        if call.function not in COUNTS:
            renamed.append(call)
            items.append(Assignment(call.column, call.column))
            continue
        found = new_columns.copy(call.column)
        renamed.append(replace(call, column=found))
        value = Call("coalesce", (found, Literal(0, found.type)), found.type)
        items.append(Assignment(call.column, value))
    return replace(aggregate, calls=tuple(renamed)), tuple(items)
