"""What EXPLAIN says of each operator, logical or physical: its name, its traits, and its attributes.

`describe` is where a new operator, or a new field of one, gets its text: an arm that calls a function of a few lines,
which names the operator and its attributes. `_FORMATS` has the attributes that are not printed as `name: text`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from remuda.dataclass import dataclass
from remuda.expr import conjunction, conjuncts, render
from remuda.plan import logical, physical
from remuda.plan.bounds import Bound, Interval, Points, Prefix, Ranges
from remuda.plan.traits import Convention, DistributionKind
from remuda.plan.walk import inputs, walk
from remuda.plan.windows import DEFAULT_FRAME, FrameExclusion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.expr import Column, Expression
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.bounds import Pruning
    from remuda.plan.joins import CandidateBranch
    from remuda.plan.series import SeriesCall
    from remuda.plan.traits import Collation
    from remuda.plan.windows import Frame, WindowCall

Attributes = dict[str, str]
"""What one line below an operator says, by name, in the order of printing."""

_FORMATS = {
    "text": "{}",
    "assignments": "{}",
    "rows": "{}",
    "expand": "{}",
    "series": "{}",
    "partitionedBy": "partitionedBy=[{}]",
    "scan_cutover": "direct scan above {} entries",
    "filter_cutover": "filter in one pass above {} entries",
    "sort_rule": "candidate sorted below {} of the entries in order",
    "row_cutover": "row by row up to {} rows",
    "hold_cutover": "map held above {}",
}
"""How attributes are printed; all others are `name: text`."""


@dataclass(frozen=True, slots=True)
class Description:
    """What EXPLAIN says of an operator: its name with what it works on, and its attributes, line by line."""

    name: str
    lines: tuple[Attributes, ...] = ()

    @property
    def details(self) -> list[str]:
        return ["   ".join(print_fields(line)) for line in self.lines if line]


def print_fields(attributes: Attributes) -> list[str]:
    """Print the attributes of a line, each for itself."""
    return [_FORMATS[name].format(text) if name in _FORMATS else f"{name}: {text}" for name, text in attributes.items()]


def describe_logical(node: logical.LogicalNode) -> str:
    """Say what a logical operator asks for, in one line."""
    described = _describe_logical(node)
    return "   ".join([described.name, *described.details])


def _describe_logical(node: logical.LogicalNode) -> Description:
    match node:
        case logical.Scan():
            return _described(
                f"Scan {node.map.name}", columns=column_names(node.columns), filter=_optional(node.filter)
            )
        case logical.Values():
            return _described("Values", rows=f"{len(node.rows)} rows of {column_names(node.columns)}")
        case logical.Filter():
            return _described("Filter", text=render(node.condition))
        case logical.Project():
            return _described("Project", assignments=_assignments(node.assignments))
        case logical.Aggregate():
            return _described("Aggregate", keys=column_names(node.keys) or "none", calls=_calls(node.calls))
        case logical.Sort():
            return _described("Sort", text=describe_order(node.collation, node.columns))
        case logical.Limit():
            order = describe_order(node.collation, node.columns)
            return _described("Limit", limit=_optional(node.count), offset=_optional(node.offset), order=order)
        case logical.Join() | logical.Apply():
            return _described(f"{type(node).__name__} {node.kind.value}", **_conditions(node))
        case logical.Union():
            return _described("Union", text=column_names(node.columns))
        case logical.Window():
            return _described("Window", **_window(node))
        case logical.Expand():
            return _described("Expand", expand=_expand(node))
        case logical.Series():
            return _described("Series", series=_series(node.call))
        case logical.Recursive():
            name = f"Recursive #{node.table}{' distinct' if node.distinct else ''}"
            return _described(name, text=column_names(node.columns))
        case logical.WorkingTable():
            return _described(f"WorkingTable #{node.table}", text=column_names(node.columns))
        case logical.Modify():
            return _described(f"{node.operation.value.capitalize()} {node.map.name}")
        case logical.Root():
            return _described("Root", text=", ".join(node.names))
        case _:
            assert_never(node)


def head_of(node: physical.PhysicalNode) -> str:
    """Return the operator's name and traits: its line without the estimates."""
    return f"{describe(node).name} {traits_of(node)}".rstrip()


def traits_of(node: physical.PhysicalNode) -> str:
    return "" if isinstance(node, physical.Root) else node.traits.describe(partitioning_columns(node))


_MOVES_OR_MERGES_ROWS = (
    physical.ExchangeNode | physical.HashAggregate | physical.StreamingAggregate | physical.Union | physical.Recursive
)


def partitioning_columns(node: Any) -> tuple[str, ...]:
    """Return the names of the columns whose hash decides on which member a row is; none where no columns decide it.

    The trait has those that the operator delivers. A scan, and what leaves its rows where they are, is partitioned by
    the columns of the map even if it delivers others.
    """
    distribution = node.traits.distribution
    if distribution.kind is not DistributionKind.PARTITIONED:
        return ()
    if distribution.columns:
        names = {column.id: column.name for each in walk(node) for column in each.columns}
        return tuple(names[id_] for id_ in distribution.columns)
    if isinstance(node, physical.ScanNode):
        return () if node.map.replicated else node.map.partitioned_by
    below = [each for each in inputs(node) if each.traits.distribution.kind is DistributionKind.PARTITIONED]
    if len(below) != 1 or isinstance(node, _MOVES_OR_MERGES_ROWS):
        return ()
    known = {column.id for each in inputs(node) for column in each.columns}
    computed = {column.name for column in node.columns if column.id not in known}
    columns = partitioning_columns(below[0])
    return () if computed.intersection(columns) else columns  # `id := id + 1` is not what decides


def describe(node: physical.PhysicalNode) -> Description:
    """Say what exactly an operator does."""
    match node:
        case physical.MapScan():
            return _map_scan(node)
        case physical.IndexScan():
            return _index_scan(node)
        case physical.IndexCount():
            return _index_count(node)
        case physical.KeyLookup():
            return _key_lookup(node)
        case physical.Values():
            return _described("Values", rows=f"{len(node.rows)} rows of {column_names(node.columns)}")
        case physical.Filter():
            return _described("Filter", condition=render(node.condition))
        case physical.Project():
            return _described("Project", assignments=_assignments(node.assignments))
        case physical.StreamingAggregate():
            return _described("StreamingAggregate", keys=column_names(node.keys), calls=_calls(node.calls))
        case physical.HashAggregate():
            return _described(
                f"HashAggregate {node.phase.value}", keys=column_names(node.keys), calls=_calls(node.calls)
            )
        case physical.Sort():
            return _described("Sort", order=describe_order(node.collation, node.columns))
        case physical.TopN():
            return _top_n(node)
        case physical.Limit():
            return _described("Limit", limit=_optional(node.count), offset=_optional(node.offset))
        case physical.HashJoin():
            return _hash_join(node)
        case physical.MergeJoin():
            order = describe_order(node.collation, node.left.columns)
            return _described(f"MergeJoin {node.kind.value}", keys=_join_keys(node), order=order, **_conditions(node))
        case physical.RuntimeFilter():
            return _described(f"RuntimeFilter #{node.number}", keys=column_names(node.keys))
        case physical.NestedLoopJoin():
            candidates = {"candidates": " OR ".join(map(_branch, node.branches))}
            name = f"NestedLoopJoin {node.kind.value}"
            return _described_by_lines(name, candidates | _conditions(node), _row_cutover(node))
        case physical.LookupJoin():
            return _lookup_join(node)
        case physical.Union():
            return _described_by_lines(
                "Union", {"columns": column_names(node.columns)}, {"scan_cutover": _planned(node.scan_cutover)}
            )
        case physical.Window():
            return _described("Window", **_window(node))
        case physical.Expand():
            return _described("Expand", expand=_expand(node))
        case physical.Series():
            return _described("Series", series=_series(node.call), **{"first batch": _optional(node.first_rows)})
        case physical.Recursive():
            distinct = " distinct" if node.distinct else ""
            return _described(f"Recursive #{node.table}{distinct}", columns=column_names(node.columns))
        case physical.WorkingTable():
            return _described(f"WorkingTable #{node.table}")
        case physical.Spool():
            return _described(f"Spool #{node.number}")
        case physical.SpoolRead():
            return _described(f"SpoolRead #{node.number}", columns=column_names(node.columns))
        case physical.HashExchange():
            return _described("HashExchange", keys=column_names(node.keys))
        case physical.BroadcastExchange():
            return _described("BroadcastExchange")
        case physical.RootExchange():
            return _described("RootExchange", merge=describe_order(node.traits.collation, node.columns))
        case physical.LocalExchange():
            return _local_exchange(node)
        case physical.Modify():
            name = f"{node.operation.value.capitalize()} {node.map.name}"
            written = "deletion vectors" if node.operation is logical.Operation.DELETE else "segments"
            cutover = "" if node.segment_cutover is None else f"{written} above {node.segment_cutover} rows"
            if node.traits.convention is Convention.SPARK:
                cutover = "segments by tasks"
            return _described(name, text=cutover)
        case physical.Commit():
            return _described(f"Commit {node.map.name}")
        case physical.Root():
            return _described("Root")
        case physical.Send():
            return _described(f"Send edge={node.edge}")
        case physical.Receive():
            return _described(f"Receive edge={node.edge}")
        case _:
            assert_never(node)


def _described(name: str, **attributes: str) -> Description:
    """Describe an operator by one line of attributes; those without text are left out."""
    return _described_by_lines(name, attributes)


def _described_by_lines(name: str, *lines: Attributes) -> Description:
    kept = ({label: text for label, text in line.items() if text} for line in lines)
    return Description(name, tuple(line for line in kept if line))


def _map_scan(node: physical.MapScan) -> Description:
    filter_ = _beside(node.pruning, node.filter)
    return _described_by_lines(
        f"MapScan {node.map.name}",
        {"prune": _prune(node.pruning), "filter": filter_, "columns": column_names(node.columns)},
        _partitioned_by(node.pruning),
        {"zone order": _zone_order(node), "dynamic pruning": _dynamic_pruning(node)},
        _dynamic_lookup(node),
    )


def _dynamic_pruning(node: physical.MapScan) -> str:
    found = node.dynamic_pruning
    return "" if found is None else f"{', '.join(found.columns)} of runtime filter #{found.number}"


def _dynamic_lookup(node: physical.MapScan) -> Attributes:
    found = node.dynamic_lookup
    if found is None:
        return {}
    way = "key" if found.index is None else found.index.name
    entries = "" if found.most_entries is None else f" or {found.most_entries} entries"
    return {"dynamic lookup": f"{way} by runtime filter #{found.number}, up to {found.most_keys} keys{entries}"}


def _zone_order(node: physical.MapScan) -> str:
    order = node.zone_order
    if order is None:
        return ""
    key = describe_order((order.key,), node.columns)
    return f"{key}, bound #{order.number}, from {order.rows_for_each} rows for each of the TopN"


def _index_scan(node: physical.IndexScan) -> Description:
    order = "" if node.direction is physical.Direction.UNORDERED else f", {node.direction.value}"
    return _described_by_lines(
        f"IndexScan {node.map.name} using {node.index.name} ({node.index.type.value}{order})",
        {
            "prune": _prune(node.pruning),
            "index": _bounds(node.index.columns, node.bounds) or "all",
            "remainder": _beside(node.pruning, node.residual),
            "columns": column_names(node.columns),
        },
        _partitioned_by(node.pruning),
        {
            f"candidate {each.index.name} ({each.index.type.value})": _bounds(each.index.columns, each.bounds)
            for each in node.candidates
        },
        {"scan_cutover": _planned(node.scan_cutover)},
        {
            "first rows": _optional_number(node.row_goal),
            "first chunk": _optional(node.first_rows),
            "filter_cutover": _optional_number(node.filter_cutover),
            "sort_rule": "" if node.sort_rule is None else f"{node.sort_rule.share:.0%}",
        },
    )


def _planned(cutover: physical.ScanCutover | None) -> str:
    return "" if cutover is None else str(cutover.planned)


def _index_count(node: physical.IndexCount) -> Description:
    return _described_by_lines(
        f"IndexCount {node.map.name} using {node.index.name} ({node.index.type.value})",
        {
            "prune": _prune(node.pruning),
            "index": _bounds(node.index.columns, node.bounds),
            "columns": column_names(node.columns),
        },
        _partitioned_by(node.pruning),
    )


def _key_lookup(node: physical.KeyLookup) -> Description:
    """Leave out what prunes: the key has all partitioning columns."""
    remainder = _beside(node.pruning, node.residual)
    return _described_by_lines(
        f"KeyLookup {node.map.name}",
        {"key": _keys(node), "remainder": remainder, "columns": column_names(node.columns)},
        _partitioned_by(node.pruning),
    )


def _keys(node: physical.KeyLookup) -> str:
    if node.is_single or not node.further_keys:
        return _bounds(node.map.key, node.key)
    if len(node.map.key) > 1 and all(points.is_single for key in node.keys for points in key):
        tuples = (f"({', '.join(render(points.values[0]) for points in key)})" for key in node.keys)
        return f"({', '.join(node.map.key)}) IN ({', '.join(tuples)})"
    return " OR ".join(_bounds(node.map.key, key) for key in node.keys)


def _prune(pruning: Pruning | None) -> str:
    """Print what decides the partitions. Rows of the partitions that are left are compared with it all the same."""
    if pruning is None:
        return ""
    alternatives = (
        " AND ".join(_bound(column, bound) for column, bound in zip(pruning.columns, alternative, strict=True))
        for alternative in pruning.alternatives
    )
    return " OR ".join(alternatives)


def _beside(pruning: Pruning | None, filter_: Expression | None) -> str:
    """Print the conjuncts that do not decide the partitions."""
    told = () if pruning is None else pruning.conjuncts
    return _optional(conjunction([part for part in conjuncts(filter_) if part not in told]))


def _partitioned_by(pruning: Pruning | None) -> Attributes:
    return {} if pruning is None else {"partitionedBy": ", ".join(pruning.columns)}


def _hash_join(node: physical.HashJoin) -> Description:
    return _described_by_lines(
        f"HashJoin {node.kind.value}",
        {"keys": _join_keys(node)} | _conditions(node) | {"build side": node.build_side.value},
        _runtime_keys(node),
        _row_cutover(node),
    )


def _join_keys(node: physical.HashJoin | physical.MergeJoin) -> str:
    return " AND ".join(
        f"{each.left.name} {'IS NOT DISTINCT FROM' if each.null_safe else '='} {each.right.name}" for each in node.keys
    )


def _runtime_keys(node: physical.HashJoin) -> Attributes:
    """Print which side filters the other, and up to how many rows of it."""
    made = node.runtime_keys
    if made is None:
        return {}
    names = column_names(getattr(key, made.side.value) for key in made.keys)
    ahead = ", read ahead" if made.side is not node.build_side else ""
    return {f"runtime filter #{made.number}": f"{names} of up to {made.most_rows} {made.side.value} rows{ahead}"}


def _row_cutover(node: physical.HashJoin | physical.NestedLoopJoin | physical.LookupJoin) -> Attributes:
    return {"row_cutover": "" if node.row_cutover is None else str(node.row_cutover)}


def _top_n(node: physical.TopN) -> Description:
    return _described(
        "TopN",
        order=describe_order(node.collation, node.columns),
        limit=_optional(node.count),
        offset=_optional(node.offset),
        bound="" if node.bound is None else f"#{node.bound}",
    )


def _local_exchange(node: physical.LocalExchange) -> Description:
    rule = node.partial_rule
    groups = "" if rule is None else f"up to 1 group in {rule.group_rows} rows, judged by the first {rule.sample_rows}"
    return _described_by_lines(
        "LocalExchange", {"parallel": f"from {node.fork_rows} rows", "partial aggregation": groups}
    )


def _lookup_join(node: physical.LookupJoin) -> Description:
    names = node.map.key if node.index is None else node.index.columns
    by = "its key" if node.index is None else f"{node.index.name} ({node.index.type.value})"
    return _described_by_lines(
        f"LookupJoin {node.kind.value} {node.map.name} by {by}",
        {
            "keys": " AND ".join(f"{name} = {render(key)}" for name, key in zip(names, node.keys, strict=False)),
            "filter": _optional(node.filter),
            "condition": _optional(node.condition),
            "columns": column_names(node.map_columns),
        },
        {
            **_row_cutover(node),
            "hold_cutover": _held_above(node),
            "dynamic pruning": f"{', '.join(node.map.partitioned_by)} of written rows" if node.written else "",
        },
    )


def _held_above(node: physical.LookupJoin) -> str:
    if node.hold_cutover is None:
        return ""
    return f"{node.hold_cutover} rows" + ("" if node.hold_entries is None else f" or {node.hold_entries} entries")


def _branch(branch: CandidateBranch) -> str:
    compared = branch.equalities or branch.ranges
    parts = [f"{render(each.left)} {each.operator.upper()} {render(each.right)}" for each in compared]
    parts.extend(render(part) for part in (branch.left_filter, branch.right_filter) if part is not None)
    return " AND ".join(parts)


def _conditions(
    node: logical.Join | logical.Apply | physical.HashJoin | physical.MergeJoin | physical.NestedLoopJoin,
) -> Attributes:
    mark = "" if node.mark is None else node.mark.name
    return {"condition": _optional(node.condition), "compared": _optional(node.compared), "mark": mark}


def _window(node: logical.Window | physical.Window) -> Attributes:
    return {
        "partition": column_names(node.partition),
        "order": describe_order(node.order, node.columns) if node.order else "",
        "calls": ", ".join(map(_window_call, node.calls)),
    }


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
    return f"{column_names(node.columns)} := {rows}"


def _series(call: SeriesCall) -> str:
    return f"{call.column.name} := {call.name}({', '.join(map(render, call.arguments))})"


def _optional(expression: Expression | None) -> str:
    return "" if expression is None else render(expression)


def _optional_number(number: int | None) -> str:
    return "" if number is None else str(number)


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


def column_names(columns: Iterable[Column]) -> str:
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
    """Write an order as ORDER BY would."""
    names = {column.id: column.name for column in columns}
    texts = []
    for key in collation:
        text = names[key.column] + (" DESC" if key.descending else "")
        if key.nulls_first == key.descending:  # not where NULL, the lowest value, would come by itself
            text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
        texts.append(text)
    return ", ".join(texts)
