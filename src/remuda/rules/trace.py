"""What each rule did to the tree, as text: for whoever wonders where a plan comes from."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from remuda.plan.explain import explain_logical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.rules.normalize.normalize import RuleStep


def describe_steps(steps: Iterable[RuleStep]) -> str:
    """Each step with the lines that it took away (-) and put in (+), among those that stayed."""
    return "\n".join(line for number, step in enumerate(steps, start=1) for line in _describe(number, step))


def _describe(number: int, step: RuleStep) -> Iterator[str]:
    yield f"{number}. {step.rule}"
    before, after = explain_logical(step.before).split("\n"), explain_logical(step.after).split("\n")
    for change, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if change == "equal":
            yield from (f"     {line}" for line in before[start:end])
            continue
        yield from (f"   - {line}" for line in before[start:end])
        yield from (f"   + {line}" for line in after[new_start:new_end])
