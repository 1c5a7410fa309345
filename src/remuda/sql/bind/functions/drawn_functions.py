"""random() and gen_random_uuid(): each call is a column, computed once for a row below the clause that it stands in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import parsing_error
from remuda.expr import Literal, call
from remuda.sql.bind.expression.subqueries import drawn
from remuda.sql.parse.places import place_of
from remuda.types import BIGINT

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.bind.binding import Binder, Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

_NAMES = {"random": "random", "gen_random_uuid": "gen_random_uuid", "uuid": "gen_random_uuid"}


def _bind_drawn(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    written, span = str(node.this).lower(), place_of(node)
    if node.expressions:
        raise parsing_error(f"{written} takes no arguments", span=span)
    if self.subqueries is None or self.clause == "ON":
        raise parsing_error(f"{written} is not allowed in {self.clause}", span=span)
    known = self.drawn.get(id(node))
    if known is not None:
        return known  # the subject of CASE is bound once for each branch
    # No column has this number yet, and no other call: the column takes it at once.
    value = call(_NAMES[written], Literal(self.binding.next_column, BIGINT), span=span)
    assert value is not None, "it takes a number"
    column = self.binding.new_column(written, value.type, nullable=False)
    self.subqueries.append(drawn(column, value))
    self.drawn[id(node)] = column
    return column


FORMS: dict[str, Binder] = dict.fromkeys(_NAMES, _bind_drawn)
NODES: Binders = {}
PARTS: Parts = {}
