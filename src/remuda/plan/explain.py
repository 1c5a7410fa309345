"""EXPLAIN: one operator a line, indented, with its traits and estimates; deterministic, so tests can compare it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from remuda.expr import render
from remuda.plan import logical, physical
from remuda.plan.bounds import Bound, Interval, Points, Prefix, Ranges
from remuda.plan.walk import inputs
from remuda.plan.windows import DEFAULT_FRAME, FrameExclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from remuda.expr import Column, Expression
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.joins import CandidateBranch
    from remuda.plan.series import SeriesCall
    from remuda.plan.traits import Collation
    from remuda.plan.windows import Frame, WindowCall

_ESTIMATE_COLUMN = 72


def explain(node: physical.PhysicalNode, measured: Callable[[physical.PhysicalNode], str] | None = None) -> str:
    """`measured` adds, for EXPLAIN ANALYZE, what an operator really did."""
    return "\n".join(_lines(node, 0, measured))


def _lines(node: Any, depth: int, measured: Callable[[Any], str] | None) -> Iterable[str]:
    head, details = describe(node)
    indent = "  " * depth
    line = f"{indent}{head}"
    yield f"{line:<{_ESTIMATE_COLUMN}} rows≈{_count(node.estimate.rows)} cost≈{_count(node.estimate.cost)}"
    for detail in details:
        yield f"{indent}    {detail}"
    if measured is not None and (actual := measured(node)):
        yield f"{indent}    {actual}"
    for child in inputs(node):
        yield from _lines(child, depth + 1, measured)


def explain_logical(node: logical.LogicalNode, depth: int = 0) -> str:
    """A logical tree, one operator a line."""
    indent = "  " * depth
    lines = [indent + describe_logical(node)]
    lines.extend(explain_logical(child, depth + 1) for child in inputs(node))
    return "\n".join(lines)


def describe_logical(node: logical.LogicalNode) -> str:
    match node:
        case logical.Scan():
            text = f"Scan {node.map.name}   columns: {_names(node.columns)}"
            return text if node.filter is None else f"{text}   filter: {render(node.filter)}"
        case logical.Values():
            return f"Values   {len(node.rows)} rows of {_names(node.columns)}"
        case logical.Filter():
            return f"Filter   {render(node.condition)}"
        case logical.Project():
            return f"Project   {_assignments(node.assignments)}"
        case logical.Aggregate():
            return f"Aggregate   keys: {_names(node.keys) or 'none'}   calls: {_calls(node.calls)}"
        case logical.Sort():
            return f"Sort   {describe_order(node.collation, node.columns)}"
        case logical.Limit():
            order = f"   order: {describe_order(node.collation, node.columns)}" if node.collation else ""
            return f"Limit   {_limit(node.count, node.offset)}{order}"
        case logical.Join() | logical.Apply():
            return "   ".join([f"{type(node).__name__} {node.kind.value}", *_conditions(node)])
        case logical.Union():
            return f"Union   {_names(node.columns)}"
        case logical.Window():
            return f"Window   {_window(node)}"
        case logical.Expand():
            return f"Expand   {_expand(node)}"
        case logical.Series():
            return f"Series   {_series(node.call)}"
        case logical.Recursive():
            return f"Recursive #{node.table}{' distinct' if node.distinct else ''}   {_names(node.columns)}"
        case logical.WorkingTable():
            return f"WorkingTable #{node.table}   {_names(node.columns)}"
        case logical.Modify():
            return f"{node.operation.value.capitalize()} {node.map.name}"
        case logical.Root():
            return f"Root   {', '.join(node.names)}"
        case _:
            assert_never(node)


def _count(number: float) -> str:
    """Enough digits to compare by eye, few enough to be stable."""
    return str(round(number)) if number >= 10 else f"{number:.3g}"


def describe(node: physical.PhysicalNode) -> tuple[str, list[str]]:
    """The operator's line, and the lines below it that say what exactly it does."""
    traits = node.traits
    match node:
        case physical.MapScan():
            details = _scan_details(node, _filter_detail("filter", node.filter))
            return f"MapScan {node.map.name} {traits}", [*details, *_zone_order(node)]
        case physical.IndexScan():
            order = "" if node.direction is physical.Direction.UNORDERED else f", {node.direction.value}"
            head = f"IndexScan {node.map.name} using {node.index.name} ({node.index.kind.value}{order}) {traits}"
            bounds = _bounds(node.index.columns, node.bounds) or "all"
            otherwise = "" if node.scan_cutover is None else f"direct scan above {node.scan_cutover} entries"
            first = _filter_detail("first chunk", node.first_rows)
            details = _scan_details(node, f"index: {bounds}", _filter_detail("remainder", node.residual))
            return head, [*details, *(each for each in (otherwise, first) if each)]
        case physical.IndexCount():
            bounds = _bounds(node.index.columns, node.bounds)
            head = f"IndexCount {node.map.name} using {node.index.name} ({node.index.kind.value}) {traits}"
            return head, _scan_details(node, f"index: {bounds}")
        case physical.KeyLookup():
            key = f"key: {_bounds(node.map.key, node.key)}"
            return f"KeyLookup {node.map.name} {traits}", _scan_details(
                node, key, _filter_detail("remainder", node.residual)
            )
        case physical.Values():
            return f"Values {traits}", [f"{len(node.rows)} rows of {_names(node.columns)}"]
        case physical.Filter():
            return f"Filter {traits}", [f"condition: {render(node.condition)}"]
        case physical.Project():
            return f"Project {traits}", [_assignments(node.assignments)]
        case physical.StreamingAggregate():
            return f"StreamingAggregate {traits}", [f"keys: {_names(node.keys)}   calls: {_calls(node.calls)}"]
        case physical.HashAggregate():
            keys = f"keys: {_names(node.keys)}   " if node.keys else ""
            return f"HashAggregate {node.phase.value} {traits}", [f"{keys}calls: {_calls(node.calls)}"]
        case physical.Sort():
            return f"Sort {traits}", [f"order: {describe_order(node.collation, node.columns)}"]
        case physical.TopN():
            bound = "" if node.bound is None else f"   bound: #{node.bound}"
            return f"TopN {traits}", [
                f"order: {describe_order(node.collation, node.columns)}   {_limit(node.count, node.offset)}{bound}"
            ]
        case physical.Limit():
            return f"Limit {traits}", [_limit(node.count, node.offset)]
        case physical.HashJoin():
            keys = " AND ".join(
                f"{each.left.name} {'IS NOT DISTINCT FROM' if each.null_safe else '='} {each.right.name}"
                for each in node.keys
            )
            details = _joined(f"keys: {keys}" if keys else "", node, f"build side: {node.build_side.value}")
            return f"HashJoin {node.kind.value} {traits}", [*details, *_runtime_keys(node), *_row_cutover(node)]
        case physical.RuntimeFilter():
            return f"RuntimeFilter #{node.number} {traits}", [f"keys: {_names(node.keys)}"]
        case physical.NestedLoopJoin():
            details = _joined(_branches(node), node)
            return f"NestedLoopJoin {node.kind.value} {traits}", [*details, *_row_cutover(node)]
        case physical.LookupJoin():
            names = node.map.key if node.index is None else node.index.columns
            by = "its key" if node.index is None else f"{node.index.name} ({node.index.kind.value})"
            keys = " AND ".join(f"{name} = {render(key)}" for name, key in zip(names, node.keys, strict=False))
            parts = [
                f"keys: {keys}",
                _filter_detail("filter", node.filter),
                _filter_detail("condition", node.condition),
                f"columns: {_names(node.map_columns)}",
            ]
            head = f"LookupJoin {node.kind.value} {node.map.name} by {by} {traits}"
            return head, ["   ".join(part for part in parts if part), *_row_cutover(node)]
        case physical.Union():
            return f"Union {traits}", [f"columns: {_names(node.columns)}"]
        case physical.Window():
            return f"Window {traits}", [_window(node)]
        case physical.Expand():
            return f"Expand {traits}", [_expand(node)]
        case physical.Series():
            first = _filter_detail("first batch", node.first_rows)
            return f"Series {traits}", ["   ".join(each for each in (_series(node.call), first) if each)]
        case physical.Recursive():
            return f"Recursive #{node.table}{' distinct' if node.distinct else ''} {traits}", [
                f"columns: {_names(node.columns)}"
            ]
        case physical.WorkingTable():
            return f"WorkingTable #{node.table} {traits}", []
        case physical.Spool():
            return f"Spool #{node.number} {traits}", []
        case physical.SpoolRead():
            return f"SpoolRead #{node.number} {traits}", [f"columns: {_names(node.columns)}"]
        case physical.HashExchange():
            return f"HashExchange {traits}", [f"keys: {_names(node.keys)}"]
        case physical.BroadcastExchange():
            return f"BroadcastExchange {traits}", []
        case physical.RootExchange():
            merged = [f"merge: {describe_order(traits.collation, node.columns)}"] if traits.collation else []
            return f"RootExchange {traits}", merged
        case physical.LocalExchange():
            return f"LocalExchange {traits}", [_parallelism(node)]
        case physical.Modify():
            return f"{node.operation.value.capitalize()} {node.map.name} {traits}", []
        case physical.Root():
            return "Root", []
        case physical.Send():
            return f"Send edge={node.edge} {traits}", []
        case physical.Receive():
            return f"Receive edge={node.edge} {traits}", []
        case _:
            assert_never(node)


def _parallelism(node: physical.LocalExchange) -> str:
    rule, parallel = node.partial_rule, f"parallel: from {node.fork_rows} rows"
    if rule is None:
        return parallel
    groups = f"up to 1 group in {rule.group_rows} rows, judged by the first {rule.sample_rows}"
    return f"{parallel}   partial aggregation: {groups}"


def _joined(keys: str, node: physical.HashJoin | physical.NestedLoopJoin, build_side: str = "") -> list[str]:
    parts = [part for part in (keys, *_conditions(node), build_side) if part]
    return ["   ".join(parts)] if parts else []


def _runtime_keys(node: physical.HashJoin) -> list[str]:
    """Which side filters the other, and up to how many rows of it."""
    made = node.runtime_keys
    if made is None:
        return []
    names = _names(getattr(key, made.side.value) for key in made.keys)
    ahead = ", read ahead" if made.side is not node.build_side else ""
    return [f"runtime filter #{made.number}: {names} of up to {made.most_rows} {made.side.value} rows{ahead}"]


def _row_cutover(node: physical.HashJoin | physical.NestedLoopJoin | physical.LookupJoin) -> list[str]:
    return [] if node.row_cutover is None else [f"row by row up to {node.row_cutover} rows"]


def _zone_order(node: physical.MapScan) -> list[str]:
    order = node.zone_order
    if order is None:
        return []
    key = describe_order((order.key,), node.columns)
    return [f"zone order: {key}, bound #{order.number}, from {order.rows_for_each} rows for each of the TopN"]


def _branches(node: physical.NestedLoopJoin) -> str:
    """How candidates are found; empty where all pairs are compared."""
    return f"candidates: {' OR '.join(map(_branch, node.branches))}" if node.branches else ""


def _branch(branch: CandidateBranch) -> str:
    compared = branch.equalities or branch.ranges
    parts = [f"{render(each.left)} {each.operator.upper()} {render(each.right)}" for each in compared]
    parts.extend(render(part) for part in (branch.left_filter, branch.right_filter) if part is not None)
    return " AND ".join(parts)


def _conditions(node: logical.Join | logical.Apply | physical.HashJoin | physical.NestedLoopJoin) -> list[str]:
    parts = [_filter_detail("condition", node.condition), _filter_detail("compared", node.compared)]
    return [part for part in (*parts, f"mark: {node.mark.name}" if node.mark is not None else "") if part]


def _window(node: logical.Window | physical.Window) -> str:
    parts = [
        f"partition: {_names(node.partition)}" if node.partition else "",
        f"order: {describe_order(node.order, node.columns)}" if node.order else "",
        f"calls: {', '.join(map(_window_call, node.calls))}",
    ]
    return "   ".join(part for part in parts if part)


def _window_call(call: WindowCall) -> str:
    text = f"{call.function.upper()}({', '.join(map(render, call.arguments))})"
    if call.ignores_nulls:
        text += " IGNORE NULLS"
    return text if call.frame == DEFAULT_FRAME else f"{text} {_frame(call.frame)}"


def _frame(frame: Frame) -> str:
    start, end = (
        kind.value if offset is None else f"{render(offset)} {kind.value}"
        for kind, offset in ((frame.start, frame.start_offset), (frame.end, frame.end_offset))
    )
    exclusion = "" if frame.exclusion is FrameExclusion.NO_OTHERS else f" EXCLUDE {frame.exclusion.value}"
    return f"{frame.unit.value} BETWEEN {start} AND {end}{exclusion}"


def _expand(node: logical.Expand | physical.Expand) -> str:
    rows = ", ".join(f"({', '.join(map(render, projection))})" for projection in node.projections)
    return f"{_names(node.columns)} := {rows}"


def _series(call: SeriesCall) -> str:
    return f"{call.column.name} := {call.name}({', '.join(map(render, call.arguments))})"


def _scan_details(node: physical.ScanNode, *parts: str) -> list[str]:
    details = ["   ".join([*(part for part in parts if part), f"columns: {_names(node.columns)}"])]
    if node.pruning is not None:
        details.append(f"partitionedBy=[{', '.join(node.pruning.columns)}]")
    return details


def _filter_detail(label: str, predicate: Expression | None) -> str:
    return "" if predicate is None else f"{label}: {render(predicate)}"


def _bounds(columns: Sequence[str], bounds: Sequence[Bound]) -> str:
    return ", ".join(_bound(column, bound) for column, bound in zip(columns, bounds, strict=False))


def _bound(column: str, bound: Bound) -> str:
    match bound:
        case Points(values=(), or_null=True):
            return f"{column} IS NULL"
        case Points(values=(only,), or_null=False):
            return f"{column} = {render(only)}"
        case Points():
            return f"{column} IN ({', '.join([render(value) for value in bound.values] + ['NULL'] * bound.or_null)})"
        case Interval(lows=(), highs=()):
            return f"{column} IS NOT NULL"
        case Interval():
            lows = [f"{column} {'>=' if end.inclusive else '>'} {render(end.value)}" for end in bound.lows]
            highs = [f"{column} {'<=' if end.inclusive else '<'} {render(end.value)}" for end in bound.highs]
            return " AND ".join(lows + highs)
        case Prefix():
            return f"{column} as {render(bound.pattern)} begins"
        case Ranges(parts=(Interval(lows=(), highs=()), Points(values=(), or_null=True))):
            return f"all, NULL {column} last"
        case Ranges():
            return " OR ".join(_bound(column, part) for part in bound.parts)
        case _:
            assert_never(bound)


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _assignments(assignments: Iterable[logical.Assignment]) -> str:
    return ", ".join(
        assignment.column.name
        if assignment.is_identity
        else f"{assignment.column.name} := {render(assignment.expression)}"
        for assignment in assignments
    )


def _calls(calls: Iterable[AggregateCall]) -> str:
    texts = []
    for call in calls:
        argument = "*" if call.argument is None else ("DISTINCT " if call.distinct else "") + call.argument.name
        texts.append(f"{call.function.upper()}({argument})")
    return ", ".join(texts) or "none"


def describe_order(collation: Collation, columns: Iterable[Column]) -> str:
    """As ORDER BY would write it."""
    names = {column.id: column.name for column in columns}
    texts = []
    for key in collation:
        text = names[key.column] + (" DESC" if key.descending else "")
        if key.nulls_first == key.descending:  # not where NULL, the lowest value, would come by itself
            text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
        texts.append(text)
    return ", ".join(texts)


def _limit(count: Expression | None, offset: Expression | None) -> str:
    parts = [
        f"limit: {render(count)}" if count is not None else "",
        f"offset: {render(offset)}" if offset is not None else "",
    ]
    return "   ".join(part for part in parts if part)
