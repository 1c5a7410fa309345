"""Rules and costs that a program adds to the optimizer's own (see docs/extending.md).

What is registered holds for grids that are opened afterwards: a grid keeps the extensions of its opening, so no plan
that it has made, and none of another grid in the process, changes by a later registration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from remuda.dataclass import dataclass

RuleKind = Literal["normalize", "explore", "implement"]
Rule = Callable[..., Any]
CostFunction = Callable[[Any, float, float], float]
"""From a physical node, the rows that it delivers and its built-in cost to the cost of the operator itself."""


@dataclass(frozen=True, slots=True)
class Extensions:
    """The rules and costs registered at one moment, in the order of their registration."""

    rules: tuple[tuple[RuleKind, type, Rule], ...] = ()
    costs: tuple[tuple[type, CostFunction], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules or self.costs)

    def rules_of(self, kind: RuleKind, operator: type) -> tuple[Rule, ...]:
        """Return the rules of a kind for an operator: tried after the built-in ones."""
        return tuple(rule for each, type_, rule in self.rules if each == kind and type_ is operator)

    def cost(self, node: Any, rows: float, built_in: float) -> float:
        """Return the cost of an operator: what is registered last for its type sees what was said before."""
        for type_, function in self.costs:
            if type_ is type(node):
                built_in = function(node, rows, built_in)
        return built_in


NO_EXTENSIONS = Extensions()
_rules: list[tuple[RuleKind, type, Rule]] = []
_costs: list[tuple[type, CostFunction]] = []


def registered() -> Extensions:
    """Return what is registered now."""
    return Extensions(tuple(_rules), tuple(_costs))


def register_rule(rule: Rule, *, kind: RuleKind, operator: type) -> Callable[[], None]:
    """Add a rule for trees whose root is `operator`, a class of `plan.logical`; call the result to remove it.

    - `normalize`: `rule(node)` returns a better tree, or None.
    - `explore`: `rule(node, context: ExploreContext)` returns trees with the same rows.
    - `implement`: `rule(node, required: Traits, context: PlanningContext)` returns alternatives (`Alternative`).
    """
    if kind not in get_args(RuleKind):
        raise ValueError(f"no kind of rule: {kind!r}")
    return _add((kind, operator, rule), _rules)


def register_cost(operator: type, function: CostFunction) -> Callable[[], None]:
    """Let `function(node, rows, built_in)` say what an operator, a class of `plan.physical`, costs without its inputs.

    The unit is that of `optimizer/cost.py`, a nanosecond of one core. Call the result to remove it.
    """
    return _add((operator, function), _costs)


def _add(entry: Any, entries: list[Any]) -> Callable[[], None]:
    entries.append(entry)

    def remove() -> None:
        entries[:] = [each for each in entries if each is not entry]

    return remove
