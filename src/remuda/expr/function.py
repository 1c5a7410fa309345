"""What an entry of the function registry consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from remuda.dataclass import dataclass
from remuda.types import common_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from remuda.expr.nodes import Expression
    from remuda.types import SqlType

CanFail: TypeAlias = "bool | Callable[[tuple[Expression, ...]], bool]"
Datum: TypeAlias = "pa.Array | pa.Scalar"
"""What batch evaluation passes around: a column, or one value that stands for the whole column."""


@dataclass(frozen=True, slots=True)
class Signature:
    arguments: tuple[SqlType, ...]
    result: SqlType


@dataclass(frozen=True, slots=True)
class Function:
    """`batch` and `row` make the kernel for resolved types, so that the choice by type is made once and not per row.

    A *strict* function is NULL where any argument is NULL; its row kernel never sees None.
    `symbol` is set for what is written between or before its arguments. `can_fail` says that some values are an error,
    of all calls or, as a function of the arguments, of this one.

    A function that evaluates its arguments in turn, as AND does, has `undecided`: from the value so far to the rows
    that need the next argument, without NULLs. Its row kernel takes the compiled arguments and gives the compiled call.
    `hints` are the types that a bare parameter or string takes as an argument; the last counts for all further ones.
    One that `keeps_type` has the type of its argument: where a number is expected of it, that is the argument's type.
    A `volatile` function has another value each time: its batch kernel takes the number of rows.
    """

    name: str
    resolve: Callable[[Sequence[SqlType]], Signature | None]
    batch: Callable[[Signature], Callable[..., Datum]]
    row: Callable[[Signature], Callable[..., Any]]
    strict: bool = True
    symbol: str | None = None
    can_fail: CanFail = False
    undecided: Callable[[Datum], Datum] | None = None
    hints: tuple[SqlType, ...] = ()
    volatile: bool = False
    keeps_type: bool = False


@dataclass(frozen=True, slots=True)
class Overload:
    """One of several meanings of a name, told apart by the types of the arguments."""

    resolve: Callable[[Sequence[SqlType]], Signature | None]
    batch: Callable[[Signature], Callable[..., Datum]]
    row: Callable[[Signature], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Resolves these argument types, and what widens to them without loss of meaning: an INTEGER for a BIGINT."""

    arguments: tuple[SqlType, ...]
    result: SqlType

    def __call__(self, given: Sequence[SqlType]) -> Signature | None:
        fits = len(given) == len(self.arguments) and all(
            common_type(type_, want) == want for type_, want in zip(given, self.arguments, strict=True)
        )
        return Signature(self.arguments, self.result) if fits else None


def fixed(arguments: Sequence[SqlType], result: SqlType) -> Fixed:
    return Fixed(tuple(arguments), result)


def overloaded(
    name: str,
    *overloads: Overload,
    strict: bool = True,
    symbol: str | None = None,
    can_fail: CanFail = False,
    hints: tuple[SqlType, ...] = (),
) -> Function:
    """Return a function that means the first overload which takes the types.

    Resolving the types that an overload asked for must give the same overload again: that is how evaluation finds it.
    """

    def resolve(given: Sequence[SqlType]) -> Signature | None:
        return next((found for overload in overloads if (found := overload.resolve(given)) is not None), None)

    def of(signature: Signature) -> Overload:
        return next(overload for overload in overloads if overload.resolve(signature.arguments) == signature)

    return Function(
        name,
        resolve,
        lambda signature: of(signature).batch(signature),
        lambda signature: of(signature).row(signature),
        strict=strict,
        symbol=symbol,
        can_fail=can_fail,
        hints=hints,
    )
