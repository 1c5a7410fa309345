"""Plans that let rows meet in Spark's tasks though the maps are small: in truth that pays for large ones."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from remuda.optimizer import cost
from remuda.plan.physical import BroadcastExchange, HashExchange
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.sql import Query, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRICES = {"SPARK_JOB": 0.0, "SPARK_EXCHANGE_BYTE": 0.1, "SPARK_BROADCAST_BYTE": 0.1, "SPARK_RESULT_BYTE": 1e6}


@contextmanager
def shuffles_for_nothing() -> Iterator[None]:
    """While this lasts, stages cost nothing and what comes to the coordinator costs much."""
    with pytest.MonkeyPatch.context() as patch:
        for name, price in _PRICES.items():
            patch.setattr(cost, name, price)
        yield


def exchanges(grid: Any, sql: str) -> set[str]:
    """The kinds of exchange between tasks in the plan that the grid makes of a query."""
    query = parse(sql)
    assert isinstance(query, Query)
    nodes = walk(grid.default_session.planner().plan(sql, query).tree)
    return {
        type(node).__name__
        for node in nodes
        if isinstance(node, HashExchange | BroadcastExchange) and node.traits.convention is Convention.SPARK
    }
