"""Common sub-expressions: what a finished plan would compute twice for a row is computed once.

    Project(x, c := a * (1 - d), e := a * (1 - d) * (1 + t))
    → Project(Project(x, t, s := a * (1 - d)), c := s, e := s * (1 + t))

It comes last, when it is known which filters a scan asks itself and which an index answers: it changes neither.

An expression is shared only where it is evaluated for every row in any case: `CASE WHEN b <> 0 THEN 1 / b ELSE ... END`
asks for `1 / b` where b is not 0, and must not fail elsewhere. What has another value each time is never shared.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Call, Case, Cast, Column, Expression, can_fail, children, columns_of, conjunction, conjuncts
from remuda.expr.registry import FUNCTIONS
from remuda.expr.walk import with_children
from remuda.plan import physical
from remuda.plan.logical import Assignment
from remuda.plan.physical import UNPRICED
from remuda.plan.walk import inputs, with_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.optimizer.costing import Costing
    from remuda.plan.physical import PhysicalNode
    from remuda.types import SqlType

# How often expressions have a part in common, and whether that part is evaluated for every row in any case.
#
# `CASE WHEN b <> 0 THEN a / b ELSE a / b + 1 END` has `a / b` twice, and never for a row that does not ask for it.


@dataclass(slots=True)
class Use:
    count: int = 0
    always: bool = False
    """Whether one of the uses is evaluated for every row."""


Uses = dict[Expression, Use]


def worth_sharing(uses: Uses) -> set[Expression]:
    return {expression for expression, found in uses.items() if found.always and found.count > 1}


def uses_of(expressions: Iterable[Expression]) -> Uses:
    """Count each expression that is computed from columns; all of these are evaluated for every row."""
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
    """Yield the parts that are computed from columns, each with whether it is evaluated wherever the whole is."""
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
    for ordinal, part in enumerate(parts):
        below = _visit(part, later if ordinal else always, found)
        depends, settled = depends or below[0], settled and below[1]
    if isinstance(expression, Call) and FUNCTIONS[expression.function].volatile:
        settled = False
    if depends and settled:
        found.append((expression, always))
    return depends, settled


def _in_turn(expression: Expression, parts: tuple[Expression, ...]) -> bool:
    """Test whether the parts after the first are evaluated only for rows that need them."""
    if not isinstance(expression, Call):
        return isinstance(expression, Case)
    return FUNCTIONS[expression.function].undecided is not None and any(map(can_fail, parts[1:]))


SHARE_RULE = "share_common_expressions"


@dataclass(slots=True)
class _Shared:
    """The expressions worth sharing, and the columns that stand for those that were found in use."""

    shareable: set[Expression]
    new_column: Callable[[SqlType], Column]
    columns: dict[Expression, Column] = field(default_factory=dict)

    def replaced(self, expression: Expression) -> Expression:
        """Replace shared expressions, the largest first: those within one of them are found when it is computed."""
        if not isinstance(expression, Call | Cast | Case):
            return expression
        if expression in self.shareable:
            if expression not in self.columns:
                self.columns[expression] = self.new_column(expression.type)
            return self.columns[expression]
        old = children(expression)
        new = tuple(self.replaced(child) for child in old)
        return with_children(expression, new) if any(map(_differ, old, new)) else expression


def _differ(one: object, other: object) -> bool:
    return one is not other


@dataclass(slots=True)
class CommonExpressions:
    """`reduced` is a scan that asks only a part of its filter, priced."""

    new_column: Callable[[str, SqlType], Column]
    costing: Costing
    reduced: Callable[[physical.MapScan, Expression | None], physical.MapScan]
    fired: int = 0
    _count: int = 0

    def share(self, node: Any) -> Any:
        """Share expressions in the plan from here down, and price the nodes above a change again."""
        better = self._shared(node)
        if better is not None:
            self.fired += 1
            return self.share(better)
        below = tuple(self.share(child) for child in inputs(node))
        if all(one is other for one, other in zip(below, inputs(node), strict=True)):
            return node
        return self._priced(replace(with_inputs(node, below), estimate=UNPRICED), node.estimate.rows)

    def _shared(self, node: Any) -> Any:
        match node:
            case physical.Project(input=physical.Filter() as filter_):
                return self._across(node, filter_, filter_.input, filter_.condition) or self._within(node)
            case physical.Project(input=physical.MapScan() as scan) if scan.filter is not None:
                return self._out_of_scan(node, scan) or self._within(node)
            case physical.Project():
                return self._within(node)
            case physical.Filter():
                return self._across(_identity(node), node, node.input, node.condition)
            case physical.MapScan() if node.filter is not None:
                return self._out_of_scan(_identity(node), node)
        return None

    def _within(self, node: physical.Project) -> Any:
        """Project(x, c := f(e), d := g(e)) → Project(Project(x, s := e), c := f(s), d := g(s))."""
        expressions = [item.expression for item in node.assignments]
        shared = self._found(uses_of(expressions), expressions)
        if shared is None:
            return None
        changed, columns = shared
        return self._priced(
            replace(
                node,
                input=self._computed(node.input, columns, changed),
                assignments=_assigned(node, changed),
                estimate=UNPRICED,
            ),
            node.estimate.rows,
        )

    def _across(self, node: physical.Project, filter_: Any, source: Any, condition: Expression) -> Any:
        """Project(Filter(x, p(e)), c := f(e)) → Project(Filter(Project(x, s := e), p(s)), c := f(s)).

        Only what the condition evaluates for every row: the projection sees only the rows that pass.
        """
        expressions = [condition, *(item.expression for item in node.assignments)]
        uses = uses_of([condition])
        for expression in expressions[1:]:
            count_uses(expression, uses, always=False)
        shared = self._found(uses, expressions)
        if shared is None:
            return None
        (condition, *changed), columns = shared
        below = self._computed(source, columns, [condition, *changed])
        filtered = self._priced(physical.Filter(below, condition, filter_.traits), filter_.estimate.rows)
        return self._priced(
            replace(node, input=filtered, assignments=_assigned(node, changed), estimate=UNPRICED), node.estimate.rows
        )

    def _out_of_scan(self, node: physical.Project, scan: physical.MapScan) -> Any:
        """Move the conjuncts of a scan's filter that share expressions above the scan.

        Those after them that can fail come along: a conjunct is evaluated only where the ones before it hold.
        """
        parts = conjuncts(scan.filter)
        uses = uses_of([scan.filter] if scan.filter is not None else [])
        for item in node.assignments:
            count_uses(item.expression, uses, always=False)
        shareable = worth_sharing(uses)
        taken = [part for part in parts if any(each in shareable for each in parts_of(part))]
        if not taken:
            return None
        first = parts.index(taken[0])
        separate = [part for ordinal, part in enumerate(parts) if part in taken or (ordinal > first and can_fail(part))]
        rest = conjunction(part for part in parts if part not in separate)
        condition = conjunction(separate)
        assert condition is not None
        needed = columns_of(condition)
        missing = tuple(column for id_, column in needed.items() if id_ not in {each.id for each in scan.columns})
        source = self.reduced(replace(scan, columns=(*scan.columns, *missing)), rest)
        return self._across(node, scan, source, condition)

    def _found(
        self, uses: Uses, expressions: list[Expression]
    ) -> tuple[list[Expression], dict[Expression, Column]] | None:
        shareable = worth_sharing(uses)
        if not shareable:
            return None
        shared = _Shared(shareable, self._new_column)
        changed = [shared.replaced(expression) for expression in expressions]
        return changed, shared.columns

    def _new_column(self, type_: SqlType) -> Column:
        self._count += 1
        return self.new_column(f"shared{self._count}", type_)

    def _computed(self, source: Any, columns: dict[Expression, Column], above: list[Expression]) -> PhysicalNode:
        """Compute the shared columns beside those that are needed above, or by which the rows are ordered."""
        needed = {
            *columns_of(*above),
            *source.traits.distribution.columns,
            *(key.column for key in source.traits.collation),
        }
        passed = [Assignment(column, column) for column in source.columns if column.id in needed]
        computed = [Assignment(column, expression) for expression, column in columns.items()]
        below = physical.Project(source, (*passed, *computed), source.traits)
        return self._priced(below, source.estimate.rows)

    def _priced(self, node: Any, rows: float) -> PhysicalNode:
        return self.costing.price(node, rows)


def _identity(node: Any) -> physical.Project:
    """Return the projection that drops the shared columns again."""
    passed = tuple(Assignment(column, column) for column in node.columns)
    return physical.Project(node, passed, node.traits, estimate=node.estimate)


def _assigned(node: physical.Project, expressions: list[Expression]) -> tuple[Assignment, ...]:
    return tuple(
        Assignment(item.column, expression) for item, expression in zip(node.assignments, expressions, strict=True)
    )
