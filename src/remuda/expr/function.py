"""What an entry of the function registry consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from remuda.types import SqlType

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
    `symbol` is set for what is written between or before its arguments. `can_fail` says that some values are an error.
    """

    name: str
    resolve: Callable[[Sequence[SqlType]], Signature | None]
    batch: Callable[[Signature], Callable[..., Datum]]
    row: Callable[[Signature], Callable[..., Any]]
    strict: bool = True
    symbol: str | None = None
    can_fail: bool = False


def fixed(arguments: Sequence[SqlType], result: SqlType) -> Callable[[Sequence[SqlType]], Signature | None]:
    """Resolves exactly these argument types (and NULL in their place)."""
    wanted = tuple(arguments)

    def resolve(given: Sequence[SqlType]) -> Signature | None:
        fits = len(given) == len(wanted) and all(
            type_ == want or type_.kind.value == "NULL" for type_, want in zip(given, wanted, strict=True)
        )
        return Signature(wanted, result) if fits else None

    return resolve
