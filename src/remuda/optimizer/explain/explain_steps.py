"""EXPLAIN (STEPS): every rewrite on the way from the bound query to the plan, in order, by the name of its rule.

    1. push_filter_into_scan
       - Filter   id = 5
       -   Scan m   columns: id
       + Scan m   columns: id   filter: id = 5

A step shows the part of the tree that the rule found, with the lines that it took away (-) and put in (+). The last
step is the memo search, with the rules by which it found the plan, and the plan.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from remuda.plan.explain import explain, explain_logical, undecided
from remuda.plan.explain_json import logical_json, physical_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.optimizer.optimize import Optimized
    from remuda.rules.normalize.normalize import RuleStep


def explain_steps(optimized: Optimized) -> str:
    lines = [line for number, step in enumerate(optimized.steps, start=1) for line in _describe(number, step)]
    lines.append(f"{len(optimized.steps) + 1}. memo search: {', '.join(optimized.search_rules)}")
    lines.extend(f"     {line}" for line in explain(optimized.tree).split("\n"))
    return "\n".join(lines)


def steps_json(optimized: Optimized) -> dict[str, Any]:
    """Return each step with the part of the tree before and after it; the search with its rules, and the plan."""
    return {
        "steps": [
            {"rule": step.rule, "before": logical_json(step.before), "after": logical_json(step.after)}
            for step in optimized.steps
        ],
        "search_rules": list(optimized.search_rules),
        "plan": physical_json(optimized.tree, undecided, lambda _: None),
    }


def _describe(number: int, step: RuleStep) -> Iterator[str]:
    yield f"{number}. {step.rule}"
    before, after = explain_logical(step.before).split("\n"), explain_logical(step.after).split("\n")
    for change, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if change == "equal":
            yield from (f"     {line}" for line in before[start:end])
            continue
        yield from (f"   - {line}" for line in before[start:end])
        yield from (f"   + {line}" for line in after[new_start:new_end])
