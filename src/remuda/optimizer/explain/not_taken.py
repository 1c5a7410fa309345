"""The paths not taken: what the search has weighed for an operator of the plan beside the operator itself.

The passes over the finished plan rebuild its nodes, and references to shared groups rename their columns, but both
keep the estimate that the search has given to an operator: by it an operator is found again in the memo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.plan.operator_attributes import describe, head_of
from remuda.plan.picture import NotTaken
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.optimizer.memo import Memo
    from remuda.plan.physical import PhysicalNode


class PathsNotTaken:
    """Finds for an operator the alternatives of all groups that it was the cheapest plan of."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo  # keeps the estimates, whose identities are the keys
        self._weighed: dict[tuple[int, type], list[PhysicalNode]] = {}
        for group in memo.groups:
            for traits, winner in group.winners.items():
                if winner is not None:
                    key = (id(winner.estimate), type(winner))
                    self._weighed.setdefault(key, []).extend(group.weighed.get(traits, ()))

    def of(self, node: Any) -> tuple[NotTaken, ...]:
        """Return the alternatives to an operator, the cheapest first, each once."""
        own = _described(node)
        costs: dict[str, float] = {}
        for plan in self._others(node):
            text = _described(plan)
            if text != own:
                costs[text] = min(plan.estimate.cost, costs.get(text, plan.estimate.cost))
        ordered = sorted(costs.items(), key=lambda item: (item[1], item[0]))
        return tuple(NotTaken(text, cost) for text, cost in ordered)

    def _others(self, node: Any) -> Iterator[PhysicalNode]:
        """Leave out the operator itself, and those that only move or sort its rows once more."""
        head = head_of(node)
        for plan in self._weighed.get((id(node.estimate), type(node)), ()):
            if plan.estimate is not node.estimate and not any(head_of(each) == head for each in inputs(plan)):
                yield plan


def _described(plan: PhysicalNode) -> str:
    """Name the operator, and those that it reads."""
    below = ", ".join(describe(each).name for each in inputs(plan))
    name = describe(plan).name
    return f"{name} over {below}" if below else name
