"""The values of a statement's parameters during one execution, in the two forms that evaluation needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from remuda.types import SqlType


class Parameters:
    """Stored values for row evaluation; Arrow scalars, made when first asked for, for batch evaluation."""

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
    """An Arrow scalar of a value in stored form."""
    return pa.scalar(value, type=type_.arrow)
