"""Plans evaluated row by row in plain Python, as their nodes say and as slowly as can be: the oracle for plans."""

from __future__ import annotations

from collections import Counter
from typing import Any

from remuda.expr import Expression, compile_row
from remuda.plan import logical, physical
from remuda.plan.joins import JoinKind

Row = dict[int, Any]
"""Values by column id."""


def evaluate(node: Any, maps: dict[str, list[dict[str, Any]]]) -> list[Row]:
    """The rows of a logical or physical tree of scans, filters, projections, joins, DISTINCT and exchanges."""
    match node:
        case logical.Scan() | physical.MapScan():
            rows = [{column.id: row[column.name] for column in node.columns} for row in maps[node.map.name]]
            return [row for row in rows if node.filter is None or _value(node.filter, row) is True]
        case logical.Filter() | physical.Filter():
            return [row for row in evaluate(node.input, maps) if _value(node.condition, row) is True]
        case logical.Project() | physical.Project():
            return [
                {item.column.id: _value(item.expression, row) for item in node.assignments}
                for row in evaluate(node.input, maps)
            ]
        case logical.Join() | physical.NestedLoopJoin() | physical.HashJoin():
            return _join(node, evaluate(node.left, maps), evaluate(node.right, maps))
        case physical.LookupJoin():
            return _lookup_join(node, evaluate(node.input, maps), maps[node.map.name])
        case physical.RuntimeFilter():
            # It may drop rows that have no match, and need not.
            return evaluate(node.input, maps)
        case physical.RootExchange() | physical.HashExchange() | physical.BroadcastExchange():
            return evaluate(node.input, maps)
        case logical.Limit() | physical.Limit():
            # Without an order any rows will do: rules put a LIMIT only where which ones does not matter.
            return evaluate(node.input, maps)[: node.count.value]
        case logical.Aggregate(calls=()) | physical.HashAggregate(calls=()):
            keys = [column.id for column in node.keys]
            distinct = {tuple(row[id_] for id_ in keys): None for row in evaluate(node.input, maps)}
            return [dict(zip(keys, values, strict=True)) for values in distinct]
        case logical.Values() | physical.Values():
            return [
                {column.id: _value(value, {}) for column, value in zip(node.columns, row, strict=True)}
                for row in node.rows
            ]
        case logical.Root() | physical.Root():
            return [{column.id: row[column.id] for column in node.columns} for row in evaluate(node.input, maps)]
    raise NotImplementedError(type(node).__name__)


def as_bag(rows: list[Row]) -> Counter[tuple[tuple[int, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def _value(expression: Expression, row: Row) -> Any:
    return compile_row(expression, {id_: id_ for id_ in row})(row, ())


def _lookup_join(node: physical.LookupJoin, left: list[Row], rows: list[dict[str, Any]]) -> list[Row]:
    names = node.map.key if node.index is None else node.index.columns
    found: list[Row] = []
    for one in left:
        wanted = [_value(key, one) for key in node.keys]
        partners = [
            {column.id: row[column.name] for column in node.map_columns}
            for row in rows
            if None not in wanted and [row[name] for name in names[: len(wanted)]] == wanted
        ]
        shape = physical.NestedLoopJoin(
            node.kind,
            node.input,
            physical.Values(node.map_columns, (), node.traits),
            node.condition,
            None,
            None,
            node.traits,
        )
        found.extend(_join(shape, [one], partners))
    return found


def _matches(node: Any, pair: Row) -> bool:
    for key in getattr(node, "keys", ()):
        left, right = pair[key.left.id], pair[key.right.id]
        if left != right or (left is None and not key.null_safe):
            return False
    return node.condition is None or _value(node.condition, pair) is True


def _join(node: Any, left: list[Row], right: list[Row]) -> list[Row]:
    rows: list[Row] = []
    matched_right: set[int] = set()
    no_right: Row = {column.id: None for column in node.right.columns}
    no_left: Row = {column.id: None for column in node.left.columns}
    for one in left:
        partners = [(place, other) for place, other in enumerate(right) if _matches(node, {**one, **other})]
        matched_right.update(place for place, _ in partners)
        match node.kind:
            case JoinKind.SEMI:
                rows.extend([one] if partners else [])
            case JoinKind.ANTI:
                rows.extend([] if partners else [one])
            case JoinKind.MARK:
                rows.append({**one, node.mark.id: _mark(node, one, [other for _, other in partners])})
            case _:
                rows.extend({**one, **other} for _, other in partners)
                if not partners and node.kind.keeps_left:
                    rows.append({**one, **no_right})
    if node.kind.keeps_right:
        rows.extend({**no_left, **other} for place, other in enumerate(right) if place not in matched_right)
    return rows


def _mark(node: Any, one: Row, partners: list[Row]) -> bool | None:
    found = [True if node.compared is None else _value(node.compared, {**one, **other}) for other in partners]
    return True if True in found else (None if None in found else False)
