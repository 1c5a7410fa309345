"""Expressions compiled for a plan, kept for all its executions.

Operators have state and are made anew for every execution; what they compute does not change. A `Code` belongs to one
plan, whose nodes it knows by identity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec.operator import Exec

Compiled = TypeVar("Compiled")


class Code:
    """Filled by the first execution. Two threads that compile the same node at once do it twice and agree."""

    __slots__ = ("_compiled",)

    def __init__(self) -> None:
        self._compiled: dict[int, tuple[Any, Any]] = {}

    def of(self, node: Any, compile_node: Callable[[Any], Compiled]) -> Compiled:
        """What `compile_node(node)` gives, computed once. The node is kept, so that its identity stays its own."""
        known = self._compiled.get(id(node))
        if known is None:
            known = self._compiled[id(node)] = (node, compile_node(node))
        compiled: Compiled = known[1]
        return compiled

    def built(self, node: Any, operator: Exec) -> Exec:  # noqa: ARG002
        """The operator that was built for a node, as it is to run: as it stands, unless somebody measures it."""
        return operator
