"""Logical trees evaluated as they are defined, row by row, sub-queries once for each outer row: slow and plain.

It is what the rewrite and the rules are held against: a tree and what they make of it must have the same rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cmp_to_key, reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any, assert_never

from remuda.errors import SqlError, data_error
from remuda.expr import Column, Expression, columns_of, compile_row
from remuda.plan import logical
from remuda.plan.joins import JoinKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.traits import Collation
    from remuda.plan.windows import WindowCall

Row = dict[int, Any]
"""Values by column id: those of the relation, and while a sub-query is evaluated those of the outer rows."""


@dataclass(slots=True)
class Interpreter:
    """`maps` has the rows of each map, by name, as dictionaries by column name."""

    maps: Mapping[str, list[dict[str, Any]]]
    tables: dict[int, list[Row]] = field(default_factory=dict)

    def result(self, root: logical.Root) -> Counter[tuple[Any, ...]] | str:
        """The rows with how often each comes, or the message of the error that there is instead."""
        try:
            rows = self.rows(root.input, {})
        except SqlError as error:
            return str(error.message)
        return Counter(tuple(row[column.id] for column in root.columns) for row in rows)

    def rows(self, node: Any, outer: Row) -> list[Row]:
        tree: logical.LogicalNode = node
        match tree:
            case logical.Scan():
                every = [
                    {column.id: row[column.name] for column in tree.columns} | self._all(tree, row)
                    for row in self.maps[tree.map.name]
                ]
                return every if tree.filter is None else [row for row in every if holds(tree.filter, row, outer)]
            case logical.Values():
                return [
                    {column.id: value_of(value, {}, outer) for column, value in zip(tree.columns, row, strict=True)}
                    for row in tree.rows
                ]
            case logical.Filter():
                return [row for row in self.rows(tree.input, outer) if holds(tree.condition, row, outer)]
            case logical.Project():
                return [
                    {item.column.id: value_of(item.expression, row, outer) for item in tree.assignments}
                    for row in self.rows(tree.input, outer)
                ]
            case logical.Aggregate():
                return self._aggregate(tree, outer)
            case logical.Sort():
                return in_order(self.rows(tree.input, outer), tree.collation)
            case logical.Limit():
                rows = in_order(self.rows(tree.input, outer), tree.collation)
                start = 0 if tree.offset is None else value_of(tree.offset, {}, outer)
                return rows[start:] if tree.count is None else rows[start : start + value_of(tree.count, {}, outer)]
            case logical.Join():
                right = self.rows(tree.right, outer)
                return join(tree, self.rows(tree.left, outer), lambda _: right, outer)
            case logical.Apply():
                inner = tree.right
                return join(tree, self.rows(tree.left, outer), lambda row: self.rows(inner, outer | row), outer)
            case logical.Union():
                return [
                    {column.id: row[old.id] for column, old in zip(tree.columns, source, strict=True)}
                    for part, source in zip(tree.inputs, tree.sources, strict=True)
                    for row in self.rows(part, outer)
                ]
            case logical.Window():
                return window(tree, self.rows(tree.input, outer))
            case logical.Expand():
                return [
                    {column.id: value_of(value, row, outer) for column, value in zip(tree.columns, values, strict=True)}
                    for row in self.rows(tree.input, outer)
                    for values in tree.projections
                ]
            case logical.Recursive():
                return self._recursive(tree, outer)
            case logical.WorkingTable():
                return [dict(zip(_ids(tree.columns), row.values(), strict=True)) for row in self.tables[tree.table]]
            case logical.Modify() | logical.Root():
                raise AssertionError("not a query")
            case _:
                assert_never(tree)

    def _all(self, scan: logical.Scan, row: dict[str, Any]) -> Row:
        """What a scan's filter may name beyond the columns that the scan delivers."""
        return {column.id: row[column.name] for column in columns_of(scan.filter).values()}

    def _aggregate(self, node: logical.Aggregate, outer: Row) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {} if node.keys else {(): []}
        for row in self.rows(node.input, outer):
            groups.setdefault(tuple(value_of(key, row, outer) for key in node.keys), []).append(outer | row)
        return [
            dict(zip(_ids(node.keys), key, strict=True))
            | {call.column.id: aggregate(call, rows) for call in node.calls}
            for key, rows in groups.items()
        ]

    def _recursive(self, node: logical.Recursive, outer: Row) -> list[Row]:
        seen: set[tuple[Any, ...]] = set()
        found: list[Row] = []
        before = self.tables.get(node.table)
        for step in range(50):
            part, source = node.inputs[step > 0], node.sources[step > 0]
            new: list[Row] = []
            for row in self.rows(part, outer):
                values = tuple(row[column.id] for column in source)
                if not (node.distinct and values in seen):
                    new.append(dict(zip(_ids(node.columns), values, strict=True)))
                seen.add(values)
            if not new:
                break
            found += new
            self.tables[node.table] = new
        if before is not None:
            self.tables[node.table] = before
        return found


def value_of(expression: Expression, row: Row, outer: Row) -> Any:
    known = outer | row
    places = {id_: place for place, id_ in enumerate(known)}
    return compile_row(expression, places)(tuple(known.values()), ())


def holds(condition: Expression | None, row: Row, outer: Row) -> bool:
    return condition is None or value_of(condition, row, outer) is True


def join(
    node: logical.Join | logical.Apply, left: list[Row], right: Callable[[Row], list[Row]], outer: Row
) -> list[Row]:
    missing = dict.fromkeys(_ids(node.right.columns))
    result: list[Row] = []
    matched: set[int] = set()
    for row in left:
        others = right(row)
        pairs = [
            (place, row | other) for place, other in enumerate(others) if holds(node.condition, row | other, outer)
        ]
        matched.update(place for place, _ in pairs)
        match node.kind:
            case JoinKind.SEMI:
                result += [row] if pairs else []
            case JoinKind.ANTI:
                result += [] if pairs else [row]
            case JoinKind.MARK:
                assert node.mark is not None
                answers = [node.compared is None or value_of(node.compared, pair, outer) for _, pair in pairs]
                mark = True if True in answers else None if None in answers else False
                result.append(row | {node.mark.id: mark})
            case _:
                if node.kind is JoinKind.SINGLE and len(pairs) > 1:
                    raise data_error("more than one row")
                result += [pair for _, pair in pairs]
                if not pairs and node.kind.keeps_left:
                    result.append(row | missing)
    if node.kind.keeps_right:
        nothing = dict.fromkeys(_ids(node.left.columns))
        result += [nothing | other for place, other in enumerate(right({})) if place not in matched]
    return result


def aggregate(call: AggregateCall, rows: list[Row]) -> Any:
    if call.argument is None:
        return len(rows)
    values = [row[call.argument.id] for row in rows if row[call.argument.id] is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    match call.function:
        case "count":
            return len(values)
        case "sum":
            return sum(values) if values else None
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
        case "avg":
            return float(sum(values)) / len(values) if values else None
        case "bool_and":
            return all(values) if values else None
        case "bool_or":
            return any(values) if values else None
        case "bit_and":
            return reduce(and_, values) if values else None
        case "bit_or":
            return reduce(or_, values) if values else None
        case "bit_xor":
            return reduce(xor, values) if values else None
        case _:
            raise AssertionError(call.function)


def window(node: logical.Window, rows: list[Row]) -> list[Row]:
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(tuple(row[column.id] for column in node.partition), []).append(row)
    return [
        row | {call.column.id: _call(call, place, part) for call in node.calls}
        for part in (in_order(part, node.order) for part in parts.values())
        for place, row in enumerate(part)
    ]


def _call(call: WindowCall, place: int, part: list[Row]) -> Any:
    """Row numbers, and counts and sums of the whole partition."""
    if call.function == "row_number":
        return place + 1
    if not call.arguments:
        return len(part)
    (argument,) = call.arguments
    values = [value for row in part if (value := value_of(argument, row, {})) is not None]
    return len(values) if call.function == "count" else (sum(values) if values else None)


def in_order(rows: list[Row], collation: Collation) -> list[Row]:
    def compare(one: Row, other: Row) -> int:
        for key in collation:
            first, second = one[key.column], other[key.column]
            if first == second:
                continue
            if first is None or second is None:
                return -1 if (first is None) == key.nulls_first else 1
            return -1 if (first < second) != key.descending else 1
        return 0

    return sorted(rows, key=cmp_to_key(compare))


def _ids(columns: Iterable[Column]) -> list[int]:
    return [column.id for column in columns]
