"""Table functions: generate_series and range, as a Series over one row, or over that of the arguments' sub-queries.

Where the arguments name columns of what stands before, the whole is the right side of an `Apply`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import bad_argument, type_error, unknown_function
from remuda.expr import Column, Expression, Literal, coerce, fold
from remuda.plan import logical
from remuda.plan.series import SeriesCall
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import Subquery, attach
from remuda.sql.bind.functions.functions import TABLE_FUNCTIONS
from remuda.sql.bind.relation.values_clause import one_row
from remuda.sql.bind.scope import QueryLevel, Scope
from remuda.sql.parse.other_names import FILE_HINT
from remuda.sql.parse.spans import span_of
from remuda.types import BIGINT, DATE, NULL, TIMESTAMP, TIMESTAMP_TZ

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.plan.logical import LogicalNode
    from remuda.sql.bind.bind_context import BindContext
    from remuda.types import SqlType

Arguments = tuple[Expression, Expression, Expression]
"""Start, stop and step."""


def is_table_function(node: Any) -> bool:
    """Test whether an entry of FROM, with or without LATERAL, is a function."""
    return isinstance(node, exp.Table | exp.Lateral) and isinstance(node.this, exp.Func)


def bind_table_function(binding: BindContext, node: Any, level: QueryLevel) -> tuple[LogicalNode, Column, str]:
    """Bind a function in FROM; return its rows, their column, and the function's name."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if name not in TABLE_FUNCTIONS:
        hint = f"Functions in FROM are {' and '.join(TABLE_FUNCTIONS)}."
        if "read" in type(node).__name__.lower() or name.startswith("read"):
            hint = FILE_HINT
        raise unknown_function("this function gives no rows", span=span_of(node), suggestion=hint)
    subqueries: list[Subquery] = []
    start, stop, step = _bind_arguments(binding, node, name, level, subqueries)
    column = binding.new_column(name, start.type, nullable=False)
    call = SeriesCall(column, start, stop, step, name == "generate_series", span_of(node))
    row = attach(one_row(binding, joined=bool(subqueries)), subqueries)
    return logical.Series(row, call), column, name


def _bind_arguments(
    binding: BindContext, node: Any, name: str, level: QueryLevel, subqueries: list[Subquery]
) -> Arguments:
    span = span_of(node)
    nodes = list(node.expressions)
    least = 2 if name == "generate_series" else 1
    if not least <= len(nodes) <= 3:
        takes = "(start, stop [, step])" if least == 2 else "(stop) or (start, stop [, step])"
        raise unknown_function(f"{name} takes {takes}", span=span)
    binder = ExpressionBinder(binding, Scope((), level), clause=f"the arguments of {name}", subqueries=subqueries)
    bound = [binder.bind(part, _hint(nodes)) for part in nodes]
    if len(bound) == 1:
        bound.insert(0, Literal(0, BIGINT))
    if all(part.type.is_integer or part.type == NULL for part in bound):
        if len(bound) == 2:
            bound.append(Literal(1, BIGINT))
        start, stop, step = (fold(coerce(part, BIGINT)) for part in bound)
    else:
        start, stop, step = _moments(bound, name, span)
    if isinstance(step, Literal) and step.value == 0:
        raise bad_argument(f"the step of {name} is zero", span=span_of(nodes[-1]))
    return start, stop, step


def _hint(nodes: list[Any]) -> SqlType:
    """Return the type of a bare parameter of a series: a moment where the step is an INTERVAL."""
    return TIMESTAMP if len(nodes) == 3 and isinstance(nodes[2], exp.Interval) else BIGINT


def _moments(bound: list[Expression], name: str, span: Span | None) -> Arguments:
    start, stop = bound[:2]
    step = bound[2] if len(bound) == 3 else None
    given = [part.type for part in (start, stop) if part.type != NULL]
    if any(type_ not in {DATE, TIMESTAMP, TIMESTAMP_TZ} for type_ in given) or (step and not step.type.is_interval):
        types = ", ".join(str(part.type) for part in bound)
        raise unknown_function(f"{name} does not take ({types})", span=span)
    if not isinstance(step, Literal) or step.value is None:
        raise type_error(f"{name} of moments needs a step that is an INTERVAL written here", span=span)
    type_ = TIMESTAMP_TZ if TIMESTAMP_TZ in given else TIMESTAMP
    return fold(coerce(start, type_)), fold(coerce(stop, type_)), step
