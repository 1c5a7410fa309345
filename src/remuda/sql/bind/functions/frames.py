"""Frames of window functions: ROWS, RANGE and GROUPS BETWEEN two ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import parsing_error
from remuda.expr import Literal, coerce, is_constant
from remuda.plan.windows import Frame, FrameEnd, FrameExclusion, FrameUnit
from remuda.sql.parse.places import place_of, refuse_unknown_parts
from remuda.types import BIGINT, INTERVAL_TIME, common_type

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.expr import Expression
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.sql.bind.ordering import OrderEntry

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
        raise parsing_error("a frame cannot begin at UNBOUNDED FOLLOWING", span=span)
    if end is FrameEnd.UNBOUNDED_PRECEDING:
        raise parsing_error("a frame cannot end at UNBOUNDED PRECEDING", span=span)
    if _ENDS.index(start) > _ENDS.index(end):
        raise parsing_error(f"a frame cannot begin at {start.value} and end at {end.value}", span=span)
    if unit is FrameUnit.GROUPS and not order:
        raise parsing_error("GROUPS needs an ORDER BY", span=span)
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
        where = span if written is None or isinstance(written, str) else place_of(written)
        raise parsing_error("the end of a frame is PRECEDING or FOLLOWING", span=where)
    if isinstance(written, str):
        return FrameEnd(f"UNBOUNDED {side}"), None
    return FrameEnd(side), _offset(binder, written, unit, order)


def _offset(binder: ExpressionBinder, node: Any, unit: FrameUnit, order: tuple[OrderEntry, ...]) -> Expression:
    """A number of rows or groups, or for RANGE a distance in the type of the one expression ordered by."""
    span = place_of(node)
    if unit is not FrameUnit.RANGE:
        bound = binder.bind(node, BIGINT)
        if not bound.type.is_integer or not is_constant(bound):
            raise parsing_error(f"the offset of {unit.value} must be a whole number, the same for all rows", span=span)
        _refuse_negative(bound, node)
        return Literal(bound.value, BIGINT) if isinstance(bound, Literal) else coerce(bound, BIGINT)
    if len(order) != 1:
        raise parsing_error("RANGE with an offset needs an ORDER BY of one expression", span=span)
    ordered = order[0].expression.type
    if ordered.is_temporal:
        bound = binder.bind(node, INTERVAL_TIME)
        fits = bound.type.is_interval
    else:
        bound = binder.bind(node, ordered)
        fits = ordered.is_numeric and common_type(bound.type, ordered) is not None
    if not fits or not is_constant(bound):
        raise parsing_error(f"{bound.type} is no distance between values of {ordered}", span=span)
    _refuse_negative(bound, node)
    if bound.type.is_numeric and ordered.is_numeric:
        shared = common_type(bound.type, ordered)
        assert shared is not None
        return coerce(bound, shared)
    return bound


def _refuse_negative(bound: Expression, node: Any) -> None:
    if isinstance(bound, Literal) and bound.type.is_numeric and (bound.value is None or bound.value < 0):
        raise parsing_error("the offset of a frame must not be negative", span=place_of(node))
