"""The six kinds of expression. Operators and functions alike are a `Call` of an entry in the function registry."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.types import SqlType


@dataclass(frozen=True, slots=True)
class Column:
    """A column of some relational operator, the same one wherever its `id` appears in the query.

    `name` is for people and, at a scan, the name of the map's column.
    """

    id: int
    name: str
    type: SqlType
    nullable: bool = field(default=True, compare=False)
    """Whether it may be NULL here: above an outer join a column may be that is not below it."""
    outer: bool = field(default=False, compare=False, repr=False)
    """Whether it is named inside a sub-query and belongs to a query around it; the rewrite leaves none of these."""


@dataclass(frozen=True, slots=True)
class Literal:
    """`value` is in stored form (see `remuda.types`); None is NULL."""

    value: Any
    type: SqlType

    def __post_init__(self) -> None:
        """Make every NaN the same object, which is equal to itself: literals are compared and hashed."""
        if self.value != self.value:
            object.__setattr__(self, "value", math.nan)


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value given for the `?` or `:name` number `index`, counted from 0.

    The `clock` is one that no user gives: the instant at which the statement began, after all others. So a plan that
    asks for the time can be kept, and everything in a statement sees the same time.
    """

    index: int
    type: SqlType
    clock: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the registry applied to arguments that already have the types it wants."""

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    argument: Expression
    type: SqlType
    span: Span | None = field(default=None, compare=False, repr=False)
    lenient: bool = False
    """Whether a value that the type does not have is NULL, as TRY_CAST says, and no error."""


@dataclass(frozen=True, slots=True)
class Case:
    """`CASE WHEN condition THEN value ... ELSE otherwise END`; all values have the type of the whole."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: SqlType


Expression = Column | Literal | Parameter | Call | Cast | Case
