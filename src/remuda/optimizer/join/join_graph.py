"""A tree of joins as a graph: relations, and the predicates between them, so that other orders can be thought of.

INNER joins may be done in any order. A join that leaves each left row as it is, or filters left rows one by one (LEFT,
SEMI, ANTI, MARK), commutes with them: it is an *attachment*, whose right side can be attached to any part that has the
relations that its condition names:

    (orders JOIN customers) SEMI blocked ON blocked.id = customers.id
    = orders JOIN (customers SEMI blocked ON ...)

Everything else, and what lies below it, is a relation. Sets of relations are bit masks.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Call, Column, Expression, columns_of, conjunction, conjuncts
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.errors import Span
    from remuda.optimizer.memo import GroupReference

_ATTACHED = {JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK}


def is_reorderable(node: object) -> bool:
    """Test for a join of at least three relations."""
    return _is_part(node) and (_is_part(node.left) or (node.kind is JoinKind.INNER and _is_part(node.right)))  # type: ignore[attr-defined]


def _is_part(node: Any) -> bool:
    return isinstance(node, logical.Join) and (node.kind is JoinKind.INNER or _is_attachable(node))


def _is_attachable(node: logical.Join) -> bool:
    """Test whether a join is attached to its relation instead of being reordered.

    Not where its condition names no left column: it could go anywhere, and its own position is as good.
    """
    if node.kind not in _ATTACHED:
        return False
    left = {column.id for column in node.left.columns}
    return any(id_ in left for id_ in columns_of(node.condition, node.compared))


@dataclass(frozen=True, slots=True)
class Attachment:
    """The join that brings in relation `right`, possible where all of `needs` are there."""

    kind: JoinKind
    condition: Expression | None
    compared: Expression | None
    mark: Column | None
    right: int
    needs: int
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Predicate:
    expression: Expression
    relations: int


@dataclass(slots=True)
class JoinGraph:
    relations: list[GroupReference] = field(default_factory=list)
    """Their groups."""
    predicates: list[Predicate] = field(default_factory=list)
    """Of INNER joins, but for equalities of columns."""
    equal: list[dict[int, Column]] = field(default_factory=list)
    """Classes of columns that are all equal: for each relation (its mask) that has one, the column."""
    attachments: dict[int, Attachment] = field(default_factory=dict)
    """By the mask of the right side."""

    def neighbours(self) -> list[int]:
        """Return for each relation the mask of its neighbours, with which a condition connects it."""
        found = [0] * len(self.relations)
        masks = [predicate.relations for predicate in self.predicates]
        masks.extend(_mask(by_relation) for by_relation in self.equal)
        masks.extend(attachment.needs | attachment.right for attachment in self.attachments.values())
        for mask in masks:
            for ordinal in range(len(found)):
                if mask >> ordinal & 1:
                    found[ordinal] |= mask & ~(1 << ordinal)
        return found

    def connected_columns(self, relation: int) -> dict[int, int]:
        """Return the columns of a relation that INNER joins name, each with the mask of the relations named beside."""
        found: dict[int, int] = {}
        for by_relation in self.equal:
            if relation in by_relation:
                found[by_relation[relation].id] = _mask(by_relation) & ~relation
        for predicate in self.predicates:
            if predicate.relations & relation:
                for id_ in columns_of(predicate.expression):
                    found[id_] = found.get(id_, 0) | predicate.relations & ~relation
        return found

    def condition(self, left: int, right: int) -> Expression | None:
        """Return the condition of an INNER join of two sets: the conjuncts that neither side could evaluate alone.

        Of each class of equal columns one equality suffices, as each side has made its own columns equal.
        """
        both = left | right
        parts: list[Expression] = []
        for by_relation in self.equal:
            first = next((column for mask, column in by_relation.items() if mask & left), None)
            second = next((column for mask, column in by_relation.items() if mask & right), None)
            if first is not None and second is not None:
                parts.append(Call("=", (first, second), BOOLEAN))
        parts.extend(
            predicate.expression
            for predicate in self.predicates
            if predicate.relations & ~both == 0 and predicate.relations & left and predicate.relations & right
        )
        return conjunction(parts)

    def asks_something(self, left: int, right: int) -> bool:
        """Test whether an INNER join of the sets has a condition."""
        both = left | right
        return any(
            any(mask & left for mask in by_relation) and any(mask & right for mask in by_relation)
            for by_relation in self.equal
        ) or any(
            predicate.relations & ~both == 0 and predicate.relations & left and predicate.relations & right
            for predicate in self.predicates
        )

    def is_whole(self, mask: int) -> bool:
        """Test whether every attached relation in the set has what it is attached to: the set can be joined further."""
        return all(attachment.needs & ~mask == 0 for right, attachment in self.attachments.items() if mask & right)

    def add_equality(self, expression: Expression, first: Column, second: Column, owners: dict[int, int]) -> None:
        """Joins two classes, unless a relation would have two columns in one: then it stays a predicate of its own."""
        one, other = (self._class_of(column, owners[column.id]) for column in (first, second))
        if one is other:
            return
        if one.keys() & other.keys():
            self.predicates.append(Predicate(expression, owners[first.id] | owners[second.id]))
            return
        one.update(other)
        self.equal.remove(other)

    def _class_of(self, column: Column, owner: int) -> dict[int, Column]:
        for known in self.equal:
            if known.get(owner) == column:
                return known
        self.equal.append({owner: column})
        return self.equal[-1]


def _mask(relations: Any) -> int:
    found = 0
    for each in relations:
        found |= each
    return found


def join_graph(tree: logical.Join, populate: Callable[[Any], GroupReference]) -> JoinGraph:
    """Build the join graph; `populate` puts a relation into the memo and returns its group."""
    graph = JoinGraph()
    owners: dict[int, int] = {}
    """For each column id the mask of the relation that it comes from."""

    def relation(node: Any) -> int:
        mask = 1 << len(graph.relations)
        graph.relations.append(populate(node))
        owners.update((column.id, mask) for column in node.columns)
        return mask

    def relations_of(*expressions: Expression | None) -> int:
        return _mask(owners[id_] for id_ in columns_of(*expressions))

    def flatten(node: Any) -> int:
        if not _is_part(node):
            return relation(node)
        if node.kind is not JoinKind.INNER:
            left, right = flatten(node.left), relation(node.right)
            if node.mark is not None:
                owners[node.mark.id] = right
            needs = relations_of(node.condition, node.compared) & ~right
            attachment = Attachment(node.kind, node.condition, node.compared, node.mark, right, needs, node.span)
            graph.attachments[right] = attachment
            return left | right
        mask = flatten(node.left) | flatten(node.right)
        for part in conjuncts(node.condition):
            _add_predicate(graph, part, relations_of(part), mask, owners)
        return mask

    flatten(tree)
    graph.equal = [by_relation for by_relation in graph.equal if len(by_relation) > 1]
    return graph


def _add_predicate(graph: JoinGraph, part: Expression, relations: int, whole: int, owners: dict[int, int]) -> None:
    match part:
        case Call(function="=", arguments=(Column() as first, Column() as second)) if (
            first.type == second.type and owners[first.id] != owners[second.id]
        ):
            graph.add_equality(part, first, second, owners)
        case _:
            # A conjunct of one relation only is evaluated where the join that had it is complete.
            graph.predicates.append(Predicate(part, relations if relations.bit_count() > 1 else whole))
