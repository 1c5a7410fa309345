"""Logical optimisation: the normalise rules, applied until none applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from remuda.dataclass import dataclass
from remuda.expr.cancellation import check_cancelled
from remuda.plan import logical
from remuda.plan.checker import check_logical
from remuda.plan.logical import LogicalNode
from remuda.plan.walk import change_inputs
from remuda.rules.extensions import NO_EXTENSIONS, Extensions
from remuda.rules.normalize import (  # modules are named after their operators
    aggregate,
    empty,
    filter,  # noqa: A004
    filter_join,
    join,
    join_inference,
    limit,
    multiplicity,
    project,
    union,
)
from remuda.rules.normalize.trim import trim_columns

NormalizeRule = Callable[[LogicalNode], LogicalNode | None]

NORMALIZE_RULES: dict[type, tuple[NormalizeRule, ...]] = {
    logical.Filter: (
        # Rules that end the matter come first.
        empty.prune_empty,
        filter.remove_true_filter,
        filter.empty_false_filter,
        # Filters sink, merging as they meet, so that the scan sees all of them; each in its simplest form.
        filter.merge_filters,
        filter.simplify_filter,
        filter.factor_filter,
        filter.push_filter_past_project,
        filter.push_filter_past_aggregate,
        filter.push_filter_past_window,
        filter.push_filter_past_union,
        filter.push_filter_past_expand,
        filter.push_filter_past_series,
        filter.push_filter_into_scan,
        # What a filter says of the kind of a join is read before its parts have left.
        filter_join.turn_outer_join_inner,
        filter_join.turn_left_join_anti,
        filter_join.turn_mark_join_semi,
        filter_join.turn_mark_join_anti,
        filter_join.push_filter_below_join,
        filter_join.push_filter_into_join,
    ),
    logical.Scan: (
        filter.empty_false_filter,
        filter.inline_constants,
    ),
    logical.Join: (
        empty.prune_empty_join,
        join.turn_right_join_left,
        join.simplify_join_condition,
        join.empty_false_join,
        # The kind that asks least is known before conditions move by kind.
        join.turn_single_join_left,
        join.turn_left_join_with_one_row_inner,
        join.join_single_row_inner,
        join.turn_outer_input_inner,
        join.inline_one_row,
        join.factor_join_condition,
        join.push_join_condition_to_side,
        # What stands between two joins goes.
        join.remove_distinct_below_semi_join,
        multiplicity.turn_join_semi_below_semi_join,
        join.limit_tested_rows,
        join.pull_renaming_above_join,
        # Consequences last: they are drawn from conditions that are where they belong.
        join_inference.infer_transitive_equality,
        join_inference.infer_side_of_or,
    ),
    logical.Union: (
        union.remove_empty_input,
        union.remove_union_of_one,
        union.merge_unions,
        union.merge_renaming_below_union,
    ),
    logical.Project: (
        empty.prune_empty,
        # Projections merge once no filter stands between them.
        project.merge_projects,
        project.merge_project_into_values,
        union.merge_renaming_into_union,
        project.push_project_into_scan,
        project.remove_project,
    ),
    logical.Aggregate: (
        empty.prune_empty,
        aggregate.remove_distinct_of_unique,
        multiplicity.turn_join_semi_below_distinct,
        aggregate.remove_aggregate_of_unique,
        aggregate.merge_distinct_into_aggregate,
        aggregate.remove_distinct_from_calls,
    ),
    logical.Window: (empty.prune_empty,),
    logical.Expand: (empty.prune_empty,),
    logical.Series: (empty.prune_empty, project.empty_series, project.write_out_series),
    logical.Recursive: (empty.prune_empty_recursion,),
    logical.Sort: (empty.prune_empty,),
    logical.Root: (project.remove_renaming_below_root,),
    logical.Limit: (
        empty.prune_empty,
        limit.empty_zero_limit,
        # LIMIT takes the order below it, and is then cut into smaller ones.
        limit.merge_sort_into_limit,
        limit.remove_limit_of_one_row,
        limit.merge_limits,
        limit.push_limit_past_project,
        limit.push_limited_project_past_union,
        limit.push_limit_past_union,
        limit.push_limit_past_left_join,
        limit.push_limit_past_window,
    ),
}
"""The rules by the operator at the root of what they rewrite, in the order in which they are tried."""

MAXIMUM_APPLICATIONS = 100_000
"""A safety net against rules that undo each other: a plan needs a few applications for each operator."""


@dataclass(frozen=True, slots=True)
class RuleStep:
    """One application of a rule: the part of the tree that it found, and what it made of it."""

    rule: str
    before: LogicalNode
    after: LogicalNode


@dataclass(slots=True)
class RuleTrace:
    """Which rules may not run, which did, and whether each result is checked, as in tests, or recorded."""

    disabled: frozenset[str] = frozenset()
    checked: bool = False
    recorded: bool = False
    fired: list[str] = field(default_factory=list)
    steps: list[RuleStep] = field(default_factory=list)
    extensions: Extensions = NO_EXTENSIONS

    def record(self, rule: str, before: LogicalNode, after: LogicalNode) -> None:
        """Keep a rewrite, if they are kept and it changed something."""
        if self.recorded and after is not before and after != before:
            self.steps.append(RuleStep(rule, before, after))


def normalize(tree: logical.Root, trace: RuleTrace | None = None) -> logical.Root:
    """Apply the rules, then trim and apply them once more: filters that sank took columns along."""
    trace = trace or RuleTrace()
    normalizer = _Normalizer(trace)
    first = normalizer.run(tree)
    trimmed = trim_columns(first)
    trace.record(trim_columns.__name__, first, trimmed)
    return normalizer.run(trimmed)


class _Normalizer:
    """`done` has the nodes to which no rule applies any more, by identity: what a rule leaves as it is is not looked
    at again."""

    def __init__(self, trace: RuleTrace) -> None:
        self._trace = trace
        self._done: dict[int, Any] = {}

    def run(self, tree: logical.Root) -> logical.Root:
        result = self._normalize(tree)
        assert isinstance(result, logical.Root)
        return result

    def _normalize(self, node: LogicalNode) -> LogicalNode:
        """Inputs first; after a rule has fired, what it made is normalised in turn, from its inputs up."""
        while id(node) not in self._done:
            node = change_inputs(node, self._normalize)
            better = self._apply(node)
            if better is None:
                self._done[id(node)] = node
                break
            node = better
        return node

    def _apply(self, node: LogicalNode) -> LogicalNode | None:
        check_cancelled()
        trace = self._trace
        rules = NORMALIZE_RULES.get(type(node), ())
        if trace.extensions:
            rules = (*rules, *trace.extensions.rules_of("normalize", type(node)))
        for rule in rules:
            name = rule.__name__
            if name in trace.disabled:
                continue
            better = rule(node)
            if better is None:
                continue
            trace.fired.append(name)
            assert len(trace.fired) < MAXIMUM_APPLICATIONS, f"rules do not come to an end: {trace.fired[-5:]}"
            trace.record(name, node, better)
            if trace.checked:
                check_logical(better)
            return better
        return None
