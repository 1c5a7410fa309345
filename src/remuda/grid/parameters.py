"""The values that a user gives for parameters, checked and brought into stored form."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from remuda.errors import SqlError, overflow_error, parameter_error, untyped_error
from remuda.types import Kind, SqlType, stored_converter


def arrange(
    names: Sequence[str], expected: int, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Arrange the values in the order of the parameters' numbers. A single mapping may stand for named values."""
    if names:
        if len(positional) == 1 and isinstance(positional[0], Mapping) and not named:
            named = positional[0]
        elif positional:
            raise parameter_error(f"the parameters are named ({', '.join(names)}): give them by name")
        missing = [name for name in names if name not in named]
        unknown = [name for name in named if name not in names]
        if missing or unknown:
            given = ", ".join(named) or "none"
            hint = "timeout= limits the time: give a parameter :timeout in a mapping." if "timeout" in missing else None
            raise parameter_error(f"the parameters are {', '.join(names)}; given are {given}", suggestion=hint)
        return tuple(named[name] for name in names)
    if named:
        raise parameter_error(f"there is no parameter named {next(iter(named))}: the parameters are written ?")
    if len(positional) != expected:
        wanted = (
            "no parameter is" if not expected else "1 parameter is" if expected == 1 else f"{expected} parameters are"
        )
        given = "none was" if not positional else "1 was" if len(positional) == 1 else f"{len(positional)} were"
        hint = "Give the values one by one: grid.sql(text, *values)." if _is_all_at_once(expected, positional) else None
        raise parameter_error(f"{wanted} expected, {given} given", suggestion=hint)
    return tuple(positional)


def _is_all_at_once(expected: int, positional: Sequence[Any]) -> bool:
    """Test whether the values are given in one list, as PEP 249 has it."""
    return expected > 1 and len(positional) == 1 and isinstance(positional[0], list | tuple)


def to_stored_values(types: Sequence[SqlType], values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[int, SqlError]]:
    """Stored values, and the errors of those that their type cannot hold exactly, by number.

    A parameter whose type only its value tells (NULL stands for it) is always among those.
    """
    stored: list[Any] = []
    errors: dict[int, SqlError] = {}
    for number, (type_, value) in enumerate(zip(types, values, strict=True)):
        if type_.kind is Kind.NULL:
            stored.append(None)
            errors[number] = untyped_error("the type of this parameter cannot be told")
            continue
        try:
            stored.append(exact_converter(type_)(value))
        except SqlError as error:
            stored.append(None)
            errors[number] = error
    return tuple(stored), errors


def exact_converter(type_: SqlType) -> Callable[[Any], Any]:
    """Return the function from a value to its stored form that refuses every value the type does not hold exactly.

    A DECIMAL column rounds what is stored in it, but a comparison must see the value as it is. A DOUBLE stands for the
    one DECIMAL that its digits write only as long as these are few: from 2**53 on several DECIMALs are the same DOUBLE.
    """
    convert = stored_converter(type_)
    if type_.kind is Kind.DOUBLE:
        return lambda value: convert(value) if type(value) is float else _whole_number(convert, type_, value)
    if type_.kind is Kind.REAL:
        return lambda value: _whole_number(convert, type_, value)
    if type_.kind is not Kind.DECIMAL:
        return convert

    most = Decimal(10) ** (sys.float_info.dig - type_.scale)

    def exactly(value: Any) -> Any:
        stored = convert(value)
        if stored is None:
            return None
        is_float = isinstance(value, float)
        if stored != (Decimal(repr(float(value))) if is_float else value) or (is_float and stored.copy_abs() > most):
            raise overflow_error(f"{value} has more digits than {type_}")
        return stored

    return exactly


def _whole_number(convert: Callable[[Any], Any], type_: SqlType, value: Any) -> Any:
    """Convert a value and refuse an integer that the type does not hold exactly, as DOUBLE 2**53 + 1.

    A fraction means the nearest number of the type.
    """
    stored = convert(value)
    if not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return stored
    if math.isinf(stored) or value == int(value) != int(stored):
        raise overflow_error(f"{value} has more digits than {type_}")
    return stored
