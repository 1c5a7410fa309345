"""Walking and rebuilding expressions: the only module that knows where an expression keeps its children."""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, assert_never

from remuda.dataclass import replace
from remuda.expr.functions.volatile import VOLATILE
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


def children(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Column() | Literal() | Parameter():
            return ()
        case Call():
            return expression.arguments
        case Cast():
            return (expression.argument,)
        case Case():
            return (*(part for branch in expression.branches for part in branch), expression.otherwise)
        case _:
            assert_never(expression)


def with_children(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    match expression:
        case Column() | Literal() | Parameter():
            return expression
        case Call():
            return replace(expression, arguments=new)
        case Cast():
            return replace(expression, argument=new[0])
        case Case():
            branches = tuple(zip(new[0:-1:2], new[1:-1:2], strict=True))
            return replace(expression, branches=branches, otherwise=new[-1])
        case _:
            assert_never(expression)


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Rebuilds the expression bottom-up with `change` applied to every node; shares what stays the same."""
    if isinstance(expression, Column | Literal | Parameter):
        return change(expression)
    old = children(expression)
    if old:
        new = tuple([change(child) if isinstance(child, Literal) else rewrite(child, change) for child in old])
        if any(map(is_not, old, new)):
            expression = with_children(expression, new)
    return change(expression)


def walk(expression: Expression) -> Iterator[Expression]:
    """Return the expression and everything below it, parents first."""
    yield expression
    for child in children(expression):
        if isinstance(child, Column | Literal | Parameter):
            yield child
        else:
            yield from walk(child)


def columns_of(*expressions: Expression | None) -> dict[int, Column]:
    """Return the columns that the expressions name, by id, in the order of their first use."""
    found: dict[int, Column] = {}
    stack = [expression for expression in reversed(expressions) if expression is not None]
    while stack:
        node = stack.pop()
        if isinstance(node, Column):
            found[node.id] = node
        elif not isinstance(node, Literal):
            stack.extend(reversed(children(node)))
    return found


def parameters_of(expression: Expression) -> dict[int, Parameter]:
    return {node.index: node for node in walk(expression) if isinstance(node, Parameter)}


def is_constant(expression: Expression) -> bool:
    """Test whether the value depends on no column and never changes: literals, parameters and functions of them."""
    if isinstance(expression, Literal | Parameter):
        return True
    return not any(isinstance(node, Column) or _is_volatile_call(node) for node in walk(expression))


def is_volatile(expression: Expression) -> bool:
    """Test whether a second evaluation gives another value, so that there must not be one."""
    return any(_is_volatile_call(node) for node in walk(expression))


def _is_volatile_call(node: Expression) -> bool:
    return isinstance(node, Call) and node.function in VOLATILE


def substitute(expression: Expression, values: Mapping[int, Expression]) -> Expression:
    """Replace each column whose id is in `values` by an expression."""
    return rewrite(expression, lambda node: values.get(node.id, node) if isinstance(node, Column) else node)


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """Return the parts of a predicate that must all hold; nothing for the absent predicate."""
    if predicate is None:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for argument in predicate.arguments for part in conjuncts(argument))
    return (predicate,)


def disjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """Return the parts of a predicate of which one must hold."""
    if isinstance(predicate, Call) and predicate.function == "or":
        return tuple(part for argument in predicate.arguments for part in disjuncts(argument))
    return (predicate,)


def conjunction(predicates: Iterable[Expression]) -> Expression | None:
    """Return the conjunction of predicates; None, the absent predicate, for none. Repeated parts appear once."""
    parts = tuple(dict.fromkeys(part for predicate in predicates for part in conjuncts(predicate)))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("and", parts, BOOLEAN)
