"""The tracer sees planning in a cold run, and none of it in a run from the plan cache."""

from __future__ import annotations

from tests.harness.query_walk import QUERY, VALUES, walk


def test_a_query_from_the_plan_cache_is_not_planned_again() -> None:
    cold, cached = walk(QUERY, *VALUES)
    planning = ("sql/", "rules/", "optimizer/")
    assert {name.split("/")[0] for name in cold} >= {"sql", "rules", "optimizer", "exec", "storage"}
    assert not [name for name in cached if name.startswith(planning)]
    assert len(cached) < len(cold) / 2
