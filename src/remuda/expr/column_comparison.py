"""Comparisons of a column with a constant, recognised once and used in every form.

    price > 10.005    a DECIMAL(8, 2)     as a mask      units > 1000, over the integers that DECIMALs are stored as
                                          as a range     an `Interval` from below, or `Points` for `=` (`plan.bounds`)
                                          as zone test   of a block whose units are all below 1000: no row passes

NULL, NaN, the digits that a DECIMAL does not have and values beyond the stored integers are dealt with here alone:
nothing passes a comparison with NULL, NaN is above all numbers and equals itself, and a value between two that the
column can have is told by the one below it.
"""

from __future__ import annotations

import math
import operator
from decimal import Context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from remuda.dataclass import dataclass
from remuda.expr.constant import compile_constant
from remuda.expr.nodes import Call, Column, Expression
from remuda.expr.walk import is_constant
from remuda.types import LONG_DIGITS, Kind
from remuda.types.arrow_arrays import is_fixed_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.types import SqlType

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparisons, each with the one that has its sides exchanged."""

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    column: Column
    operator: str
    value: Expression
    """A constant: a literal, a parameter or a function of them."""

    @property
    def is_of_numbers(self) -> bool:
        """Whether the column is stored as numbers that `compile` can compare."""
        return is_stored_as_numbers(self.column.type) and self.value.type.kind is self.column.type.kind

    def compile(self) -> Callable[[tuple[Any, ...]], StoredComparison]:
        """Return the comparison of the stored numbers, as a function of the parameters' values."""
        value_of, sign = compile_constant(self.value), self.operator
        if self.column.type.kind is not Kind.DECIMAL:
            return lambda values: NEVER if (value := value_of(values)) is None else StoredComparison(sign, value)
        scale = self.column.type.scale

        def of_units(values: tuple[Any, ...]) -> StoredComparison:
            value = value_of(values)
            if value is None:
                return NEVER
            units = _EXACT.scaleb(value, scale)
            below = math.floor(units)
            if units == below:
                return StoredComparison(sign, below)
            if sign in {"=", "<>"}:
                return ALWAYS if sign == "<>" else NEVER
            return StoredComparison("<=" if sign in {"<", "<="} else ">", below)

        return of_units


class StoredComparison(NamedTuple):
    """A comparison of the numbers that a column is stored as: days of a DATE, units of a DECIMAL, see `stored_numbers`.

    It says nothing of NULLs: what is stored there is arbitrary.
    """

    operator: str
    operand: Any

    def mask(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers pass, in an array of the caller's own."""
        if numbers.dtype.kind == "f":
            return self._mask_of_floats(numbers)
        if self.operand is None:
            return np.full(len(numbers), self.operator == "always", np.bool_)
        try:
            operand = numbers.dtype.type(self.operand)
        except OverflowError:  # it lies below, or above, all numbers of their width
            return np.full(len(numbers), self.decide(0, 0), np.bool_)
        mask: np.ndarray = _COMPARE[self.operator](numbers, operand)
        return mask

    def decide(self, least: int, greatest: int) -> bool | None:
        """Return what holds for all integers between these two; None where the operand is among them.

        >>> StoredComparison("<", 300).decide(0, 255), StoredComparison("=", -1).decide(0, 255)
        (True, False)
        >>> StoredComparison(">", 7).decide(0, 255)
        """
        if self.operand is None:
            return self.operator == "always"
        if least <= self.operand <= greatest:
            return None
        if self.operator in {"=", "<>"}:
            return self.operator == "<>"
        return bool((self.operator in {"<", "<="}) == (self.operand > greatest))

    def shifted(self, distance: int) -> StoredComparison:
        """Return the same comparison for numbers that are less by a distance."""
        return StoredComparison(self.operator, self.operand - distance)

    def _mask_of_floats(self, numbers: np.ndarray) -> np.ndarray:
        mask: np.ndarray
        match self.operator:
            case "always" | "never":
                mask = np.full(len(numbers), self.operator == "always", np.bool_)
            case "=" | ">=" if math.isnan(self.operand):
                mask = np.isnan(numbers)
            case "<" | "<>" if math.isnan(self.operand):
                mask = ~np.isnan(numbers)
            case "<=" | ">" if math.isnan(self.operand):
                mask = np.full(len(numbers), self.operator == "<=", np.bool_)
            case ">" | ">=":  # which NaN passes, as what does not pass the opposite
                opposite = operator.le if self.operator == ">" else operator.lt
                mask = ~opposite(numbers, numbers.dtype.type(self.operand))
            case _:
                mask = _COMPARE[self.operator](numbers, numbers.dtype.type(self.operand))
        return mask


ALWAYS = StoredComparison("always", None)
NEVER = StoredComparison("never", None)


def recognise(expression: Expression) -> ColumnComparison | None:
    """Return the comparison of a column with a constant, whichever side it stands on; None for any other expression."""
    match expression:
        case Call(sign, (Column() as column, value)) if sign in MIRRORED and is_constant(value):
            return ColumnComparison(column, sign, value)
        case Call(sign, (value, Column() as column)) if sign in MIRRORED and is_constant(value):
            return ColumnComparison(column, MIRRORED[sign], value)
    return None


def is_stored_as_numbers(sql_type: SqlType) -> bool:
    if sql_type.kind is Kind.DECIMAL:
        return sql_type.precision <= LONG_DIGITS
    return is_fixed_width(sql_type) and sql_type.kind is not Kind.BOOLEAN
