"""What implement rules may ask of the optimizer that runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.expr import Column
    from remuda.plan import logical
    from remuda.plan.physical import PhysicalNode, ScanNode
    from remuda.plan.traits import Convention, Traits
    from remuda.types import SqlType


class PlanningContext(Protocol):
    @property
    def members(self) -> int: ...

    @property
    def conventions(self) -> tuple[Convention, ...]:
        """The backends that may run a scan."""

    def new_column(self, name: str, type_: SqlType) -> Column: ...

    def access_paths(self, scan: logical.Scan, required: Traits) -> Iterable[ScanNode]: ...


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to do an operator: what its inputs must deliver, and how the node is made from them."""

    requirements: tuple[Traits, ...]
    build: Callable[..., PhysicalNode]


class ImplementRule(Protocol):
    __name__: str

    def __call__(
        self, node: logical.LogicalNode, required: Traits, context: PlanningContext
    ) -> Iterable[Alternative]: ...
