"""How often expressions have a part in common, and whether that part is evaluated for every row in any case.

`CASE WHEN b <> 0 THEN a / b ELSE a / b + 1 END` has `a / b` twice, and never for a row that does not ask for it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.expr import Call, Case, Cast, Column, Expression, can_fail
from remuda.expr.registry import FUNCTIONS
from remuda.expr.walk import children

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Use:
    count: int = 0
    always: bool = False
    """Whether one of the places is evaluated for every row."""


Uses = dict[Expression, Use]


def worth_sharing(uses: Uses) -> set[Expression]:
    return {expression for expression, found in uses.items() if found.always and found.count > 1}


def uses_of(expressions: Iterable[Expression]) -> Uses:
    """How often each expression occurs that is computed from columns; all of these are evaluated for every row."""
    found: Uses = defaultdict(Use)
    for expression in expressions:
        count_uses(expression, found, always=True)
    return found


def count_uses(expression: Expression, found: Uses, *, always: bool) -> None:
    for each, is_always in _places(expression, always=always):
        uses = found[each]
        uses.count += 1
        uses.always |= is_always


def parts_of(expression: Expression) -> Iterable[Expression]:
    return (each for each, _ in _places(expression, always=False))


def _places(expression: Expression, *, always: bool) -> list[tuple[Expression, bool]]:
    """The parts that are computed from columns, each with whether it is evaluated wherever the whole is."""
    found: list[tuple[Expression, bool]] = []
    _visit(expression, always, found)
    return found


def _visit(expression: Expression, always: bool, found: list[tuple[Expression, bool]]) -> tuple[bool, bool]:
    """Adds what can be shared; says whether the whole depends on a column, and whether it has one value for a row."""
    if not isinstance(expression, Call | Cast | Case):
        return isinstance(expression, Column), True
    parts = children(expression)
    depends, settled = False, True
    later = always and not _in_turn(expression, parts)
    for place, part in enumerate(parts):
        below = _visit(part, later if place else always, found)
        depends, settled = depends or below[0], settled and below[1]
    if isinstance(expression, Call) and FUNCTIONS[expression.function].volatile:
        settled = False
    if depends and settled:
        found.append((expression, always))
    return depends, settled


def _in_turn(expression: Expression, parts: tuple[Expression, ...]) -> bool:
    """Whether what comes after the first part is evaluated only for rows that need it."""
    if not isinstance(expression, Call):
        return isinstance(expression, Case)
    return FUNCTIONS[expression.function].undecided is not None and any(map(can_fail, parts[1:]))
