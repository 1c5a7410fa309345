"""Plans that differ only in the ids and names of their columns: how to recognise one, and how to make one of the other.

    Scan(person, id #1, name #2, filter #1 > 5)   and   Scan(person, id #7, name #8, filter #7 > 5)

have one canonical key: columns are numbered in the order in which they come. The memo has one group for both, and the
second is a reference to it with a `Renaming`: #1 → #7, #2 → #8.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from remuda.catalog import IndexDefinition, MapDefinition
from remuda.dataclass import dataclass
from remuda.expr import Column, Literal, Parameter
from remuda.plan import logical, physical
from remuda.plan.physical import Estimate
from remuda.plan.traits import Distribution, SortKey, Traits
from remuda.plan.walk import inputs, walk
from remuda.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Callable

_SCANS = logical.Scan | physical.MapScan | physical.IndexScan | physical.IndexCount | physical.KeyLookup
READS_MAP = _SCANS | physical.LookupJoin


@dataclass(slots=True)
class Numbering:
    """Numbers the ids of columns and working tables in the order in which they come; `columns` are those named."""

    numbers: dict[Any, int] = field(default_factory=dict)
    columns: dict[int, Column] = field(default_factory=dict)

    def number(self, id_: Any) -> int:
        return self.numbers.setdefault(id_, len(self.numbers))


def canonical_key(value: Any, numbering: Numbering) -> Any:
    """Return a value that is equal for plans that differ in nothing but the ids and names of columns."""
    match value:
        case Column():
            numbering.columns.setdefault(value.id, value)
            return (numbering.number(value.id), value.type, value.nullable)
        case MapDefinition() | IndexDefinition():
            return (type(value).__name__, value.id)
        case Distribution():
            return (value.kind, tuple(numbering.number(each) for each in value.columns))
        case SortKey():
            return (numbering.number(value.column), value.descending, value.nulls_first)
        case tuple():
            return tuple(canonical_key(each, numbering) for each in value)
        case float():
            return (float, repr(value))
        case _ if names := compared_fields(type(value)):
            parts = [canonical_key(getattr(value, name), numbering) for name in names]
            if isinstance(value, physical.Recursive | physical.WorkingTable):
                parts = [part for part in parts if part != (int, value.table)]
                parts.append(numbering.number(("table", value.table)))
            if isinstance(value, READS_MAP):
                read = value.map_columns if isinstance(value, physical.LookupJoin) else value.columns
                parts.append(tuple(column.name for column in read))
            return (type(value).__name__, *parts)
        case _:
            return (type(value), value)


_FIELDS: dict[type, tuple[str, ...]] = {SqlType: ()}
"""The fields by which values of a type are equal, filled at first use; SQL types are compared as they are."""


def compared_fields(type_: type) -> tuple[str, ...]:
    """Return the fields by which values of a plan's type are equal; none of a plain value."""
    known = _FIELDS.get(type_)
    if known is None:
        names = tuple(each.name for each in fields(type_) if each.compare) if is_dataclass(type_) else ()
        known = _FIELDS.setdefault(type_, names)
    return known


class Shape(NamedTuple):
    """What is the same for equal plans and found at a glance: the number of operators, and a hash of what they are."""

    size: int
    hash: int


def shape_of(node: Any, shapes: dict[int, Shape]) -> Shape:
    """Return the shape of a plan; `shapes` has those known, by the identity of the node."""
    known = shapes.get(id(node))
    if known is None:
        read = node.map.id if isinstance(node, READS_MAP) else None
        below = [shape_of(child, shapes) for child in inputs(node)]
        own = hash((type(node).__name__, len(node.columns), read, *below))
        known = shapes[id(node)] = Shape(1 + sum(each.size for each in below), own)
    return known


class EqualTrees:
    """Finds the equal sub-trees of one logical tree. Only a tree that reads some map twice can have any."""

    def __init__(self, tree: Any) -> None:
        self._shapes: dict[int, Shape] = {}
        self._counts: Counter[Shape] = Counter()
        nodes = list(walk(tree))
        maps = Counter(node.map.id for node in nodes if isinstance(node, logical.Scan))
        if any(count > 1 for count in maps.values()):
            self._counts.update(shape_of(node, self._shapes) for node in nodes)

    def key_of(self, node: Any) -> tuple[Any, Numbering] | None:
        """Return the canonical key of a sub-tree and its columns; None where no other has even its shape."""
        shape = self._shapes.get(id(node))
        if shape is None or self._counts[shape] < 2:
            return None
        numbering = Numbering()
        return canonical_key(node, numbering), numbering


@dataclass(slots=True)
class Renaming:
    """From the columns of a group, by id, to those of a reference; a column that is met on the way gets a new one."""

    columns: dict[int, Column]
    new_column: Callable[..., Column]

    def own_traits(self, required: Traits) -> Traits:
        """Return what a consumer requires in terms of the group's own columns."""
        if not required.collation and not required.distribution.columns:
            return required
        own = {column.id: id_ for id_, column in self.columns.items()}
        distribution = required.distribution
        return replace(
            required,
            distribution=replace(distribution, columns=tuple(own[id_] for id_ in distribution.columns)),
            collation=tuple(replace(key, column=own[key.column]) for key in required.collation),
        )

    def column(self, column: Column) -> Column:
        known = self.columns.get(column.id)
        if known is None:
            known = self.columns[column.id] = self.new_column(column.name, column.type, nullable=column.nullable)
        return known

    def rename(self, value: Any) -> Any:
        """Return a plan, or a part of one, in the reference's columns; the same object where it names none."""
        match value:
            case Column():
                new = self.column(value)
                return replace(value, id=new.id, name=new.name)
            case SortKey():
                return replace(value, column=self.columns[value.column].id)
            case Distribution():
                return replace(value, columns=tuple(self.columns[id_].id for id_ in value.columns))
            case tuple():
                return tuple(map(self.rename, value)) if value else value
            case MapDefinition() | IndexDefinition() | SqlType() | Literal() | Parameter() | Estimate():
                return value
            case _ if is_dataclass(value):
                parts = {each.name: getattr(value, each.name) for each in fields(value)}
                new_parts = {name: self.rename(part) for name, part in parts.items()}
                changed = {name: part for name, part in new_parts.items() if part is not parts[name]}
                return replace(value, **changed) if changed else value  # type: ignore[type-var]
            case _:
                return value
