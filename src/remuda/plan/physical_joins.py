"""Nodes that find the matches of rows: in a table made of the other side, among all of it, or in a map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED
from remuda.plan.joins import joined_columns

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.errors import Span
    from remuda.expr import Column, Expression
    from remuda.plan.estimate import Estimate
    from remuda.plan.joins import CandidateBranch, JoinKey, JoinKind
    from remuda.plan.logical import Relation
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class HashJoin:
    """Builds a table of the right side by its keys, then probes it with the left rows as they come.

    `condition` is what must hold beside the keys; `compared` and `mark` are those of a logical MARK join. A MARK join
    without keys whose `compared` is `left column = right column` looks that up in a table too: x IN (SELECT y ...).
    """

    kind: JoinKind
    left: Relation
    right: Relation
    keys: tuple[JoinKey, ...]
    condition: Expression | None
    compared: Expression | None
    mark: Column | None
    traits: Traits
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the sub-query of a SINGLE join is written."""
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True, slots=True)
class NestedLoopJoin:
    """Holds the right side and compares every left row with all of it: for conditions without an equality.

    With `branches` a left row is compared only with the right rows that one of them finds for it: each branch of an OR
    has its own hash table or its own order of the right rows.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Expression | None
    compared: Expression | None
    mark: Column | None
    traits: Traits
    branches: tuple[CandidateBranch, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the sub-query of a SINGLE join is written."""
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """Finds the matches of each input row in a map: by its whole key, or by equality of an index's leading columns.

    `keys` are expressions over the input, of the types of the key columns or of the index's leading columns. `filter`
    is the scan's own filter, `condition` what must hold of a pair beside the keys. Kinds: INNER, LEFT, SEMI, ANTI.
    """

    kind: JoinKind
    input: Relation
    map: MapDefinition
    index: IndexDefinition | None
    map_columns: tuple[Column, ...]
    keys: tuple[Expression, ...]
    filter: Expression | None
    condition: Expression | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.input.columns, self.map_columns, None)
