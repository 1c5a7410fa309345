"""What implement and explore rules may ask of the optimizer that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from remuda.dataclass import dataclass
from remuda.plan.traits import Convention, DistributionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.catalog import IndexDefinition
    from remuda.expr import Column
    from remuda.plan import logical
    from remuda.plan.physical import PhysicalNode, ScanNode
    from remuda.plan.traits import Traits
    from remuda.rules.implement.join_inputs import JoinSides
    from remuda.types import SqlType


class PlanningContext(Protocol):
    @property
    def members(self) -> int: ...

    @property
    def partitions(self) -> int | None:
        """Into how many partitions the plan divides rows; None where all maps have as many."""

    @property
    def tasks_write(self) -> bool:
        """Whether tasks of Spark may write segments into the folder of the store."""

    @property
    def conventions(self) -> tuple[Convention, ...]:
        """The backends that may run a scan."""

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column: ...

    def access_paths(self, scan: logical.Scan, required: Traits) -> Iterable[ScanNode]: ...

    def index_row(self, index: IndexDefinition) -> float:
        """Return the cost of finding one row through an index."""

    def rows(self, relation: logical.Relation) -> float:
        """Return the estimated rows of an input."""

    def partitionings(self, relation: logical.Relation) -> tuple[tuple[int, ...], ...]:
        """Return the columns, in order, by which an input may be partitioned without an exchange."""

    def orders(self, relation: logical.Relation) -> tuple[tuple[int, ...], ...]:
        """Return the columns, in turn, by which an input can come in order without a sort."""

    def is_unique(self, relation: logical.Relation, columns: frozenset[int]) -> bool:
        """Test whether no two rows of an input have the same values in these columns, as far as that is known."""

    def is_replicated(self, relation: logical.Relation) -> bool:
        """Test whether every member has all rows of an input anyway."""

    def join_sides(self, node: logical.Join) -> JoinSides:
        """Return the keys of a join, found once for all rules."""

    def commuted_sides(self, node: logical.Join) -> JoinSides | None:
        """Return the keys with left and right exchanged; None where the kind of join does not allow it."""

    def hold_cutover(self, scan: logical.Scan, *, by_index: bool) -> int:
        """Return from how many rows on a lookup join holds the map instead of looking them up in it."""

    def hold_entries(self, scan: logical.Scan, index: IndexDefinition) -> int:
        """Return from how many matches of an index on a lookup join holds the map."""

    def passing(self, scan: logical.Scan, looked_up: tuple[str, ...]) -> float:
        """Return the share of rows looked up by columns that pass the filter on the other columns."""

    def scan_of(self, relation: logical.Relation) -> logical.Scan | None:
        """Return the scan that an input is, or None."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to do an operator: what its inputs must deliver, and how the node is made from them.

    `build` gets the inputs for which there are requirements; None stands for one that is not read as such, as the map
    of a lookup join. It may find that the inputs do not fit after all, and return None.

    `streamed` has the ordinals of the inputs that are read only as far as the operator itself is read: not of one that
    is held or sorted before the first row comes out. A row goal is handed on to these.
    """

    requirements: tuple[Traits | None, ...]
    build: Callable[..., PhysicalNode | None]
    streamed: tuple[int, ...] = ()


def elsewhere(context: PlanningContext) -> tuple[Convention, ...]:
    """Return the backends in which rows are spread: not this process while it is the only member."""
    alone = context.members == 1
    return tuple(convention for convention in context.conventions if not (alone and convention is Convention.LOCAL))


def has_several_places(convention: Convention, context: PlanningContext) -> bool:
    """Test whether rows of this backend are spread over members or tasks that work in parallel."""
    return convention in elsewhere(context)


def is_spread(required: Traits, context: PlanningContext) -> bool:
    """Test whether rows are required on members or in tasks, each of which has some of them."""
    return required.distribution.kind is DistributionKind.PARTITIONED and has_several_places(
        required.convention, context
    )


class ExploreContext(Protocol):
    """What explore rules may ask."""

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column: ...

    def rows_left(self, relation: logical.Relation, keys: frozenset[int]) -> float:
        """Return the share of a relation's rows that are left when it is grouped by these columns."""
