"""Whether an expression can be an error for some row: then it must be evaluated only on rows that reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from remuda.expr.cast.cast import cast_can_fail
from remuda.expr.nodes import Call, Case, Cast, Column, Literal, Parameter
from remuda.expr.registry import FUNCTIONS
from remuda.expr.walk import walk

if TYPE_CHECKING:
    from remuda.expr.nodes import Expression


def can_fail(expression: Expression) -> bool:
    """Test whether an expression can raise an error.

    >>> from remuda.expr import Column, Literal, call
    >>> from remuda.types import INTEGER
    >>> a, two = Column(0, "a", INTEGER), Literal(2, INTEGER)
    >>> can_fail(call(">", a, two)), can_fail(call("/", a, two))
    (False, True)
    """
    return any(_fails_itself(node) for node in walk(expression))


def _fails_itself(node: Expression) -> bool:
    match node:
        case Column() | Literal() | Parameter() | Case():
            return False
        case Cast():
            return not node.lenient and cast_can_fail(node.argument.type, node.type)
        case Call():
            can = FUNCTIONS[node.function].can_fail
            return can if isinstance(can, bool) else can(node.arguments)
        case _:
            assert_never(node)
