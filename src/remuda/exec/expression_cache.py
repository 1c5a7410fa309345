"""Expressions compiled for a plan, kept for all its executions.

Operators have state and are made anew for every execution; what they compute does not change. An `ExpressionCache`
belongs to one plan. It keeps a compiled thing under the identity of the plan node and the function that compiled it, so
that function may depend on nothing else. A part of a node is no key: two scans can share one filter and read different
columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec.operator import Exec

Compiled = TypeVar("Compiled")


class ExpressionCache:
    """Filled by the first execution. Two threads that compile the same node at once do it twice and agree."""

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: dict[tuple[int, Callable[[Any], Any]], tuple[Any, Any]] = {}

    def of(self, node: Any, compile_node: Callable[[Any], Compiled]) -> Compiled:
        """Return `compile_node(node)`, computed once. The node is kept, so that its identity stays its own.

        `compile_node` is a function or class at the top of its module: one that is made for each call, as a lambda is,
        would never be found again, and could take values from around it that the key does not have.
        """
        key = (id(node), compile_node)
        known = self._compiled.get(key)
        if known is None:
            assert "<" not in compile_node.__qualname__, "a function at the top of its module"
            known = self._compiled[key] = (node, compile_node(node))
        compiled: Compiled = known[1]
        return compiled

    def built(self, node: Any, operator: Exec) -> Exec:  # noqa: ARG002
        """Return the operator that was built for a node, as it is to run: `Instrumentation` wraps it."""
        return operator
