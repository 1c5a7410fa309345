"""Expressions without columns: evaluated at planning (folding) or when the parameters are known."""

from __future__ import annotations

from operator import is_not, itemgetter
from typing import TYPE_CHECKING, Any

from remuda.errors import SqlError
from remuda.expr.evaluate.row_evaluation import compile_row
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter
from remuda.expr.walk import children, is_volatile, with_children
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def evaluate_constant(expression: Expression, parameters: tuple[Any, ...] = ()) -> Any:
    """Return the stored value of an expression without columns."""
    return compile_row(expression, {})((), parameters)


def evaluate_row_count(expression: Expression, parameters: tuple[Any, ...] = ()) -> Any:
    """Return how many rows a LIMIT asks for: its sum with an OFFSET may be more than a BIGINT holds."""
    match expression:
        case Call("+", (count, offset)):
            parts = evaluate_row_count(count, parameters), evaluate_row_count(offset, parameters)
            return None if None in parts else sum(parts)
        case _:
            return evaluate_constant(expression, parameters)


def compile_constant(expression: Expression) -> Callable[[tuple[Any, ...]], Any]:
    """Compile `evaluate_constant` for an expression, as a function of the parameters' values."""
    if isinstance(expression, Parameter):
        return itemgetter(expression.index)
    evaluate = compile_row(expression, {})
    return lambda values: evaluate((), values)


def fold(expression: Expression) -> Expression:
    """Replaces what has only literals below it by its value, and simplifies AND, OR with known sides.

    An expression that would raise (`1 / 0`) stays: it is an error only if a row reaches it.
    """
    return Folding().fold(expression)


class Folding:
    """Folds expressions that grow from their leaves up: what it has given out is not looked through again.

    Folding every part of a sum of a thousand terms as it is bound would else look half a million times.
    """

    __slots__ = ("_folded",)

    def __init__(self) -> None:
        self._folded: dict[int, Expression] = {}
        """By identity, which is theirs as long as they are kept here."""

    def fold(self, expression: Expression) -> Expression:
        if id(expression) in self._folded or isinstance(expression, Column | Literal | Parameter):
            return expression
        old = children(expression)
        new = tuple([self.fold(child) for child in old])
        if any(map(is_not, old, new)):
            expression = with_children(expression, new)
        folded = _fold_node(expression)
        self._folded[id(folded)] = folded
        return folded


def _fold_node(node: Expression) -> Expression:
    if not isinstance(node, Call | Cast | Case):
        return node
    if isinstance(node, Call) and node.function in {"and", "or"}:
        node = _fold_logic(node)
        if not isinstance(node, Call):
            return node
    if isinstance(node, Case):
        node = _fold_case(node)
        if not isinstance(node, Case):
            return node
    if isinstance(node, Call) and node.function == "coalesce":
        node = _fold_coalesce(node)
        if not isinstance(node, Call):
            return node
    if all(isinstance(child, Literal) for child in children(node)) and not is_volatile(node):
        try:
            return Literal(evaluate_constant(node), node.type)
        except SqlError:
            return node
    return node


def _fold_logic(node: Call) -> Expression:
    absorbing, neutral = (FALSE, TRUE) if node.function == "and" else (TRUE, FALSE)
    flat: list[Expression] = []
    for argument in node.arguments:
        same = isinstance(argument, Call) and argument.function == node.function
        flat.extend(argument.arguments if same and isinstance(argument, Call) else (argument,))
    if absorbing in flat:
        return absorbing
    rest = tuple(dict.fromkeys(argument for argument in flat if argument != neutral))
    if not rest:
        return neutral
    return rest[0] if len(rest) == 1 else Call(node.function, rest, BOOLEAN, node.span)


def _fold_case(node: Case) -> Expression:
    """Without the branches that are never taken: those of a known condition, and those after one that always holds."""
    branches: list[tuple[Expression, Expression]] = []
    otherwise = node.otherwise
    for when, then in node.branches:
        if isinstance(when, Literal) and when.value:
            otherwise = then
            break
        if not isinstance(when, Literal):
            branches.append((when, then))
    return Case(tuple(branches), otherwise, node.type) if branches else otherwise


def _fold_coalesce(node: Call) -> Expression:
    """Without NULLs, and without what stands after a value that is none."""
    kept: list[Expression] = []
    for argument in node.arguments:
        if not isinstance(argument, Literal):
            kept.append(argument)
        elif argument.value is not None:
            kept.append(argument)
            break
    if not kept:
        return Literal(None, node.type)
    return kept[0] if len(kept) == 1 else Call("coalesce", tuple(kept), node.type, node.span)
