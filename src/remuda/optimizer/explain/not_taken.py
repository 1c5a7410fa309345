"""The paths not taken: what the search has weighed for an operator of the plan beside the operator itself.

The passes over the finished plan rebuild its nodes, and references to shared groups rename their columns, but both
keep the estimate that the search has given to an operator: by it an operator is found again in the memo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.optimizer.cost import first_rows_cost
from remuda.plan.operator_attributes import describe, head_of
from remuda.plan.picture import NotTaken, PathsWeighed
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.optimizer.memo import Memo
    from remuda.plan.physical import PhysicalNode


class PathsNotTaken:
    """Finds for an operator the alternatives of all groups that it was the cheapest plan of."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo  # keeps the estimates, whose identities are the keys
        self._weighed: dict[tuple[int, type], dict[float, list[PhysicalNode]]] = {}
        for group in memo.groups:
            for asked, winner in group.winners.items():
                if winner is not None:
                    by_share = self._weighed.setdefault((id(winner.estimate), type(winner)), {})
                    by_share.setdefault(asked.share, []).extend(group.weighed.get(asked, ()))

    def of(self, node: Any) -> PathsWeighed | None:
        """Return the alternatives to an operator, the cheapest first, each once; None where there are none.

        One that won for a share of its rows and for all of them is shown as it won for the share.
        """
        by_share = self._weighed.get((id(node.estimate), type(node)), {})
        share = min(by_share, default=1.0)
        own = _described(node)
        costs: dict[str, float] = {}
        for plan in _others(node, by_share.get(share, ())):
            text, cost = _described(plan), first_rows_cost(plan, share)
            if text != own:
                costs[text] = min(cost, costs.get(text, cost))
        ordered = sorted(costs.items(), key=lambda item: (item[1], item[0]))
        if not ordered:
            return None
        others = tuple(NotTaken(text, cost) for text, cost in ordered)
        return PathsWeighed(first_rows_cost(node, share), others, of_first_rows=share != 1.0)


def _others(node: Any, weighed: Iterable[PhysicalNode]) -> Iterator[PhysicalNode]:
    """Leave out the operator itself, and those that only move or sort its rows once more."""
    head = head_of(node)
    for plan in weighed:
        if plan.estimate is not node.estimate and not any(head_of(each) == head for each in inputs(plan)):
            yield plan


def _described(plan: PhysicalNode) -> str:
    """Name the operator, and those that it reads."""
    below = ", ".join(describe(each).name for each in inputs(plan))
    name = describe(plan).name
    return f"{name} over {below}" if below else name
