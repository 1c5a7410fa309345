"""Logical optimisation: the normalise rules, applied until none applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from remuda.plan import logical
from remuda.plan.checker import check_logical
from remuda.plan.logical import LogicalNode
from remuda.plan.walk import inputs, with_inputs
from remuda.rules import empty, filter, project, sort  # noqa: A004  (modules are named after their operators)

NormalizeRule = Callable[[LogicalNode], LogicalNode | None]

NORMALIZE_RULES: tuple[NormalizeRule, ...] = (
    # Rules that end the matter come first.
    empty.prune_empty,
    filter.remove_true_filter,
    filter.empty_false_filter,
    sort.empty_zero_limit,
    # Filters sink, merging as they meet, so that the scan sees all of them.
    filter.merge_filters,
    filter.push_filter_past_project,
    filter.push_filter_past_sort,
    filter.push_filter_past_aggregate,
    filter.push_filter_into_scan,
    filter.inline_constants,
    # Projections merge once no filter stands between them.
    project.merge_projects,
    project.merge_project_into_values,
    project.push_project_past_filter,
    project.push_project_into_scan,
    project.remove_project,
    # Orders that nobody needs go, and LIMIT takes the one below it.
    sort.remove_sort_below_aggregate,
    sort.remove_sort_below_sort,
    sort.merge_sort_into_limit,
)

MAXIMUM_APPLICATIONS = 10_000
"""A safety net against rules that undo each other: a plan needs a few applications for each operator."""


@dataclass(slots=True)
class RuleTrace:
    """Which rules may not run, which did, and whether each result is checked (as tests do)."""

    disabled: frozenset[str] = frozenset()
    checked: bool = False
    fired: list[str] = field(default_factory=list)


def normalize(tree: logical.Root, trace: RuleTrace | None = None) -> logical.Root:
    trace = trace or RuleTrace()
    result = _normalize(tree, trace)
    assert isinstance(result, logical.Root)
    return result


def _normalize(node: LogicalNode, trace: RuleTrace) -> LogicalNode:
    """Inputs first; after a rule has fired, what it made is normalised in turn, from its inputs up."""
    node = with_inputs(node, tuple(_normalize(child, trace) for child in inputs(node)))
    for rule in NORMALIZE_RULES:
        name = rule.__name__
        if name in trace.disabled:
            continue
        better = rule(node)
        if better is not None:
            trace.fired.append(name)
            assert len(trace.fired) < MAXIMUM_APPLICATIONS, f"rules do not come to an end: {trace.fired[-5:]}"
            if trace.checked:
                check_logical(better)
            return _normalize(better, trace)
    return node
