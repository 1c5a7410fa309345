"""Window functions: calls, partitions, orders and frames, and the operators that compute them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import (
    alias_twice,
    bad_argument,
    bad_frame,
    nearest,
    parsing_error,
    type_error,
    unknown_function,
    unknown_object,
    window_error,
)
from remuda.expr import Call, Case, Column, Expression, Literal, coerce, is_constant
from remuda.plan import logical
from remuda.plan.aggregates import AGGREGATES
from remuda.plan.logical import Assignment, LogicalNode
from remuda.plan.traits import SortKey
from remuda.plan.windows import DEFAULT_FRAME, Frame, FrameEnd, FrameExclusion, FrameUnit, WindowCall
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.bind.functions.aggregate_arguments import is_aggregate, read_aggregate
from remuda.sql.bind.functions.aggregate_binding import bind_arguments
from remuda.sql.bind.order_by import OrderEntry, bind_order_entry
from remuda.sql.parse.spans import readable, refuse_unknown_parts, span_of, unsupported
from remuda.types import BIGINT, BOOLEAN, DOUBLE, INTERVAL_TIME, common_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.errors import Span
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

# Frames of window functions: ROWS, RANGE and GROUPS BETWEEN two ends.


_PARTS = frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"})
_ENDS = list(FrameEnd)


def bind_frame(binder: ExpressionBinder, node: Any, order: tuple[OrderEntry, ...], span: Span | None) -> Frame:
    refuse_unknown_parts(node, _PARTS)
    unit = FrameUnit(str(node.args.get("kind") or "RANGE").upper())
    start, start_offset = _end(binder, node, "start", unit, order, span)
    end, end_offset = FrameEnd.CURRENT_ROW, None
    if node.args.get("end") is not None:
        end, end_offset = _end(binder, node, "end", unit, order, span)
    if start is FrameEnd.UNBOUNDED_FOLLOWING:
        raise window_error("a frame cannot begin at UNBOUNDED FOLLOWING", span=span)
    if end is FrameEnd.UNBOUNDED_PRECEDING:
        raise window_error("a frame cannot end at UNBOUNDED PRECEDING", span=span)
    if _ENDS.index(start) > _ENDS.index(end):
        raise window_error(f"a frame cannot begin at {start.value} and end at {end.value}", span=span)
    if unit is FrameUnit.GROUPS and not order:
        raise window_error("GROUPS needs an ORDER BY", span=span)
    exclude = node.args.get("exclude")
    exclusion = FrameExclusion.NO_OTHERS if exclude is None else FrameExclusion(str(exclude.name).upper())
    return Frame(unit, start, end, start_offset, end_offset, exclusion)


def _end(
    binder: ExpressionBinder, node: Any, which: str, unit: FrameUnit, order: tuple[OrderEntry, ...], span: Span | None
) -> tuple[FrameEnd, Expression | None]:
    written, side = node.args[which], str(node.args.get(f"{which}_side") or "").upper()
    if isinstance(written, str) and written.upper() == "CURRENT ROW":
        return FrameEnd.CURRENT_ROW, None
    if not side or written is None:
        where = span if written is None or isinstance(written, str) else span_of(written)
        raise window_error("the end of a frame is PRECEDING or FOLLOWING", span=where)
    if isinstance(written, str):
        return FrameEnd(f"UNBOUNDED {side}"), None
    return FrameEnd(side), _offset(binder, written, unit, order)


def _offset(binder: ExpressionBinder, node: Any, unit: FrameUnit, order: tuple[OrderEntry, ...]) -> Expression:
    """Bind an offset: a number of rows or groups, or for RANGE a distance in the type of the ORDER BY expression."""
    span = span_of(node)
    if unit is not FrameUnit.RANGE:
        bound = binder.bind(node, BIGINT)
        if not bound.type.is_integer or not is_constant(bound):
            raise bad_argument(f"the offset of {unit.value} must be a whole number, the same for all rows", span=span)
        _refuse_negative(bound, node)
        return Literal(bound.value, BIGINT) if isinstance(bound, Literal) else coerce(bound, BIGINT)
    if len(order) != 1:
        raise window_error("RANGE with an offset needs an ORDER BY of one expression", span=span)
    ordered = order[0].expression.type
    if ordered.is_temporal:
        bound = binder.bind(node, INTERVAL_TIME)
        fits = bound.type.is_interval
    else:
        bound = binder.bind(node, ordered)
        fits = ordered.is_numeric and common_type(bound.type, ordered) is not None
    if not fits or not is_constant(bound):
        raise type_error(f"{bound.type} is no distance between values of {ordered}", span=span)
    _refuse_negative(bound, node)
    if bound.type.is_numeric and ordered.is_numeric:
        shared = common_type(bound.type, ordered)
        assert shared is not None
        return coerce(bound, shared)
    return bound


def _refuse_negative(bound: Expression, node: Any) -> None:
    if isinstance(bound, Literal) and bound.type.is_numeric and (bound.value is None or bound.value < 0):
        raise bad_frame("the offset of a frame must not be negative", span=span_of(node))


_RANKING: dict[type[exp.Expression], tuple[str, SqlType]] = {
    exp.RowNumber: ("row_number", BIGINT),
    exp.Rank: ("rank", BIGINT),
    exp.DenseRank: ("dense_rank", BIGINT),
    exp.PercentRank: ("percent_rank", DOUBLE),
    exp.CumeDist: ("cume_dist", DOUBLE),
}
_VALUES: dict[type[exp.Expression], str] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
    exp.Ntile: "ntile",
}
WINDOW_FUNCTIONS = (*(name for name, _ in _RANKING.values()), *_VALUES.values())
_ALSO_VALUES: dict[type[exp.Expression], str] = {exp.First: "first_value", exp.Last: "last_value"}
"""Aggregates that are, over a window, a function of another name."""
_FRAMED = frozenset({"first_value", "last_value", "nth_value"})
"""Those of the functions that are no aggregates whose answer depends on the frame."""
_WINDOW_PARTS = frozenset({"this", "partition_by", "order", "spec", "alias", "over"})
_FUNCTION_PARTS = frozenset({"this", "expressions", "offset", "default"})


@dataclass(frozen=True, slots=True)
class PendingWindow:
    """A window call that was found in an expression, in which `column` stands for it now."""

    column: Column = field(compare=False)
    function: str
    arguments: tuple[Expression, ...]
    partition: tuple[Expression, ...]
    order: tuple[OrderEntry, ...]
    frame: Frame
    ignores_nulls: bool
    distinct: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.arguments, *self.partition, *(entry.expression for entry in self.order))


def _bind_window(binder: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind `function(...) OVER (...)` or `OVER name`."""
    refuse_unknown_parts(node, _WINDOW_PARTS)
    span = span_of(node.this) or span_of(node)
    if binder.windows is None:
        hint = "Use QUALIFY, or a sub-query." if binder.clause == "WHERE" else None
        raise window_error(f"a window function is not allowed in {binder.clause}", span=span, suggestion=hint)
    windows, clause = binder.windows, binder.clause
    partition_nodes, order_nodes, spec = _definition(binder, node)
    binder.windows, binder.clause = None, "a window function"
    try:
        function, arguments, type_, nullable, ignores_nulls, distinct = _bind_function(binder, node.this)
        partition = tuple(dict.fromkeys(binder.bind(part) for part in partition_nodes))
        order = tuple(bind_order_entry(binder, entry) for entry in order_nodes)
        frame = DEFAULT_FRAME if spec is None else bind_frame(binder, spec, order, span_of(spec) or span)
    finally:
        binder.windows, binder.clause = windows, clause
    if function not in AGGREGATES and function not in _FRAMED:
        frame = DEFAULT_FRAME
    column = binder.binding.new_column(function, type_, nullable=nullable)
    if distinct and not _is_from_the_start(frame):
        raise unsupported(node.this, "DISTINCT in a window function with this frame")
    pending = PendingWindow(column, function, arguments, partition, order, frame, ignores_nulls, distinct, span)
    for known in windows:
        if known == pending:
            return known.column
    windows.append(pending)
    return column


def _definition(binder: ExpressionBinder, node: Any) -> tuple[Sequence[Any], Sequence[Any], Any]:
    """Partition, order and frame, with what a window named by WINDOW gives."""
    order = node.args.get("order")
    partition: Sequence[Any] = node.args.get("partition_by") or []
    entries: Sequence[Any] = [] if order is None else order.expressions
    spec = node.args.get("spec")
    alias = node.args.get("alias")
    if alias is None:
        return partition, entries, spec
    named = binder.named_windows.get(alias.name.casefold())
    if named is None:
        hint = nearest(alias.name, binder.named_windows)
        raise unknown_object(f"unknown window: {alias.name}", span=span_of(alias), suggestion=hint)
    base_partition, base_entries, base_spec = _definition(binder, named)
    if base_spec is not None and node.meta.get("is_copy", True):
        message = f"the window {alias.name} has a frame: it is named without parentheses, OVER {alias.name}"
        raise window_error(message, span=span_of(alias))
    if partition and base_partition:
        raise window_error(f"the window {alias.name} has its PARTITION BY already", span=span_of(alias))
    if entries and base_entries:
        raise window_error(f"the window {alias.name} has its ORDER BY already", span=span_of(alias))
    return partition or base_partition, entries or base_entries, spec or base_spec


def named_windows(node: Any) -> dict[str, Any]:
    """Return the WINDOW clause of a query by folded name; a window may extend those before it."""
    named: dict[str, Any] = {}
    for window in node.args.get("windows") or []:
        name = window.name
        if name.casefold() in named:
            raise alias_twice(f"the window {name} is there twice", span=span_of(window.this))
        alias = window.args.get("alias")
        if alias is not None and alias.name.casefold() not in named:
            raise unknown_object(f"unknown window: {alias.name}", span=span_of(alias))
        named[name.casefold()] = window
    return named


def _is_from_the_start(frame: Frame) -> bool:
    """Test whether a frame begins at its partition's start, so that a value is in it once its first row is.

    ROWS frames with ties do not: either of two tied rows may be first.
    """
    if frame.start is not FrameEnd.UNBOUNDED_PRECEDING or frame.exclusion is not FrameExclusion.NO_OTHERS:
        return False
    return frame.end is FrameEnd.UNBOUNDED_FOLLOWING or frame.unit is not FrameUnit.ROWS


def _bind_function(
    binder: ExpressionBinder, node: Any
) -> tuple[str, tuple[Expression, ...], SqlType, bool, bool, bool]:
    """Name, arguments, type, whether it may be NULL, passes over NULLs, and is of distinct values."""
    ignores_nulls = isinstance(node, exp.IgnoreNulls)
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        words, node = readable(node), node.this
        if _VALUES.get(type(node), "ntile") == "ntile" and type(node) not in _ALSO_VALUES:
            raise window_error(f"{words} belongs to LAG, LEAD and the functions of a frame's rows", span=span_of(node))
    if type(node) in _RANKING:
        name, type_ = _RANKING[type(node)]
        _refuse_arguments(name, node)
        return name, (), type_, False, False, False
    if type(node) in _VALUES or type(node) in _ALSO_VALUES:
        refuse_unknown_parts(node, _FUNCTION_PARTS)
        name = _VALUES.get(type(node)) or _ALSO_VALUES[type(node)]
        arguments = _bind_value_arguments(binder, name, node)
        type_ = BIGINT if name == "ntile" else arguments[0].type
        return name, arguments, type_, name != "ntile", ignores_nulls, False
    inner = node.this if isinstance(node, exp.Filter) else node
    if not is_aggregate(inner):
        raise window_error("this is no window function", span=span_of(node))
    written = read_aggregate(node)
    if written.order:
        raise unsupported(node, "ORDER BY within a window function")
    call = bind_arguments(binder, written, "a window function")
    if call.parameters or len(call.arguments) > 1:
        raise unsupported(node, f"{written.title} as a window function")
    return call.function, call.arguments, call.column.type, call.column.nullable, ignores_nulls, call.distinct


def _refuse_arguments(name: str, node: Any) -> None:
    """Refuse DISTINCT and ORDER BY in a ranking function; sqlglot takes `rank(ORDER BY x)` too."""
    given = [part for part in (node.this, *node.expressions) if part is not None]
    if given:
        what = "ORDER BY: its order is that of OVER" if isinstance(given[0], exp.Order) else "arguments"
        raise parsing_error(f"{name.upper()} takes no {what}", span=span_of(given[0]))


def _bind_value_arguments(binder: ExpressionBinder, name: str, node: Any) -> tuple[Expression, ...]:
    span = span_of(node)
    if node.this is None:
        raise unknown_function(f"{name.upper()} needs an argument", span=span)
    if name == "ntile":
        buckets = _whole_number(binder, node.this, "NTILE")
        if isinstance(buckets, Literal) and buckets.value is not None and buckets.value <= 0:
            raise bad_argument("the number of buckets of NTILE must be positive", span=span_of(node.this))
        return (buckets,)
    value = binder.bind(node.this)
    binder.refuse_untyped([value])
    offset, default = node.args.get("offset"), node.args.get("default")
    arguments = [value]
    if name == "nth_value" and offset is None:
        raise parsing_error("NTH_VALUE needs a number", span=span)
    if name in {"lag", "lead", "nth_value"}:
        number = Literal(1, BIGINT) if offset is None else _whole_number(binder, offset, name.upper())
        if name == "nth_value" and isinstance(number, Literal) and number.value is not None and number.value <= 0:
            raise bad_argument("the number of a row for NTH_VALUE must be positive", span=span_of(offset))
        arguments.append(number)
    if default is not None:
        given = binder.bind(default, value.type)
        shared = common_type(value.type, given.type)
        if shared is None:
            message = f"{name.upper()} of {value.type} cannot have a default of {given.type}"
            raise type_error(message, span=span_of(default))
        arguments[0] = coerce(value, shared)
        arguments.append(coerce(given, shared))
    return tuple(arguments)


def _whole_number(binder: ExpressionBinder, node: Any, what: str) -> Expression:
    bound = binder.bind(node, BIGINT)
    if not bound.type.is_integer or not is_constant(bound):
        raise bad_argument(f"the number of {what} must be a whole number, the same for all rows", span=span_of(node))
    return Literal(bound.value, BIGINT) if isinstance(bound, Literal) else coerce(bound, BIGINT)


def compute_windows(
    tree: LogicalNode,
    windows: Sequence[PendingWindow],
    replaced: Callable[[Expression], Expression],
    name_column: Callable[[Expression], Column],
) -> LogicalNode:
    """Add an operator for each different partition and order, over a projection of their inputs.

    An aggregate of DISTINCT values sees each value once: in the first of its rows, which is found before.
    """
    computed: dict[Expression, Column] = {}

    def column_of(expression: Expression) -> Column:
        above = replaced(expression)
        if above not in computed:
            computed[above] = name_column(above)
        return computed[above]

    def differs(expression: Expression) -> bool:
        """Test whether a value differs between rows: a constant that is a key is NULL outside its grouping sets."""
        return not is_constant(replaced(expression))

    groups: dict[tuple[tuple[Column, ...], tuple[SortKey, ...]], list[WindowCall]] = {}
    repeated: list[tuple[tuple[Column, ...], tuple[SortKey, ...], Column, Column]] = []
    for window in windows:
        partition = tuple(column_of(part) for part in window.partition if differs(part))
        order: list[SortKey] = []
        for entry in window.order:
            if differs(entry.expression) or _measures(window.frame):
                key = SortKey(column_of(entry.expression).id, entry.descending, entry.nulls_first)
                if all(key.column != other.column for other in order):
                    order.append(key)
        arguments = tuple(part if is_constant(part) else column_of(part) for part in window.arguments)
        if window.distinct:
            value = column_of(window.arguments[0])
            once = name_column(Literal(None, value.type))
            repeated.append((partition, tuple(order), value, once))
            arguments = (once,)
        call = WindowCall(window.column, window.function, arguments, window.frame, window.ignores_nulls, window.span)
        groups.setdefault((partition, tuple(order)), []).append(call)
    present = {column.id for column in tree.columns}
    added = [Assignment(column, part) for part, column in computed.items() if column.id not in present]
    if added:
        tree = logical.Project(tree, (*(Assignment(column, column) for column in tree.columns), *added))
    for partition, keys, value, once in repeated:
        tree = _first_of_each(tree, partition, keys, value, once, name_column)
    for (partition, keys), calls in groups.items():
        tree = logical.Window(tree, partition, keys, tuple(calls))
    return tree


def _measures(frame: Frame) -> bool:
    """Test whether the frame is RANGE with an offset, which measures a distance from the row's own value."""
    return frame.unit is FrameUnit.RANGE and (frame.start_offset is not None or frame.end_offset is not None)


def _first_of_each(
    tree: LogicalNode,
    partition: tuple[Column, ...],
    order: tuple[SortKey, ...],
    value: Column,
    once: Column,
    name_column: Callable[[Expression], Column],
) -> LogicalNode:
    """Add a column with each value of a partition in its first row, and NULL in the others."""
    number = name_column(Literal(1, BIGINT))
    by_value = tuple(dict.fromkeys((*partition, value)))
    kept = [Assignment(column, column) for column in tree.columns]
    tree = logical.Window(tree, by_value, order, (WindowCall(number, "row_number"),))
    is_first = Call("=", (number, Literal(1, BIGINT)), BOOLEAN)
    first = Case(((is_first, value),), Literal(None, value.type), value.type)
    return logical.Project(tree, (*kept, Assignment(once, first)))


def numbered(
    binding: BindContext, tree: LogicalNode, partition: tuple[Column, ...], order: tuple[SortKey, ...]
) -> tuple[LogicalNode, Column]:
    """Add the number of each row within its partition."""
    number = binding.new_column("row_number", BIGINT, nullable=False)
    return logical.Window(tree, partition, order, (WindowCall(number, "row_number"),)), number


def _refuse_without_over(_: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    name = _RANKING[type(node)][0] if type(node) in _RANKING else _VALUES[type(node)]
    raise window_error(f"{name.upper()} needs OVER (...)", span=span_of(node))


NODES: Binders = {exp.Window: _bind_window, **dict.fromkeys((*_RANKING, *_VALUES), _refuse_without_over)}
PARTS: Parts = {exp.Window: COMMON_PARTS | _WINDOW_PARTS, **dict.fromkeys((*_RANKING, *_VALUES), _FUNCTION_PARTS)}
