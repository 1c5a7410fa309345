"""The six kinds of expression. Operators and functions alike are a `Call` of an entry in the function registry."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.types import SqlType


class Parameters:
    """The values of a statement's parameters during one execution, in the two forms that evaluation needs.

    Stored values for row evaluation; Arrow scalars, made when first asked for, for batch evaluation.
    """

    __slots__ = ("_scalars", "_types", "kept", "values")

    def __init__(self, values: tuple[Any, ...] = (), types: tuple[SqlType, ...] = ()) -> None:
        self.values = values
        self._types = types
        self._scalars: list[pa.Scalar | None] = [None] * len(values)
        self.kept: dict[tuple[Any, ...], Any] = {}
        """What evaluation has found out with these values and will need again for the next batch."""

    def scalar(self, index: int) -> pa.Scalar:
        scalar = self._scalars[index]
        if scalar is None:
            scalar = self._scalars[index] = stored_scalar(self.values[index], self._types[index])
        return scalar

    def __reduce__(self) -> tuple[object, ...]:
        return Parameters, (self.values, self._types)


def stored_scalar(value: Any, type_: SqlType) -> pa.Scalar:
    """Return an Arrow scalar of a value in stored form."""
    return pa.scalar(value, type=type_.arrow)


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

    def __hash__(self) -> int:
        return self.id  # A query has few columns of one id; planning hashes columns some thousand times.


@dataclass(frozen=True, slots=True)
class Literal:
    """`value` is in stored form (see `remuda.types`); None is NULL.

    Two literals are equal where no expression tells them apart: NaN equals itself, and -0.0 is not 0.0. Plans share
    equal expressions, and `x * -0.0` is not `x * 0.0`.
    """

    value: Any
    type: SqlType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self.type == other.type and _is_same(self.value, other.value)

    def __hash__(self) -> int:
        value = self.value
        return hash(None if value != value else value)


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
    expected: Literal | None = field(default=None, compare=False, repr=False)
    """What estimates take its value to be. The plan is right for every value, and good for those like this one."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the registry applied to arguments that already have the types it wants."""

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    span: Span | None = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.function, self.arguments))


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


def _is_same(one: Any, other: Any) -> bool:
    """Test whether two values of one type are the same in every expression."""
    if one != one:
        return bool(other != other)
    if one != other:
        return False
    return one != 0 or not isinstance(one, float) or math.copysign(1.0, one) == math.copysign(1.0, other)
