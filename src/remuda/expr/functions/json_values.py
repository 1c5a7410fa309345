"""JSON put together: JSON_ARRAY, JSON_OBJECT, TO_JSON.

Numbers, truth values and JSON stay what they are, infinity and NaN are null, and all else is the text that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remuda.errors import data_error
from remuda.expr.cast.cast import can_cast, cast_row
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Function, Signature
from remuda.types import JSON, VARCHAR, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType


def _encoder(type_: SqlType) -> Callable[[Any], str]:
    """From a stored value that is not NULL."""
    if type_ == JSON:
        return str
    if type_.kind in {Kind.BOOLEAN, Kind.VARCHAR, Kind.DOUBLE} or type_.is_integer:
        return lambda value: msgspec.json.encode(value).decode()
    if type_.kind is Kind.DECIMAL:
        return lambda value: format(value, "f")
    text = cast_row(type_, VARCHAR)
    if type_.kind is Kind.REAL:  # by the digits that a REAL has
        return lambda value: msgspec.json.encode(float(text(value))).decode()
    return lambda value: msgspec.json.encode(text(value)).decode()


def _resolve(given: Sequence[SqlType]) -> Signature | None:
    return Signature(tuple(given), JSON) if all(can_cast(type_, VARCHAR) for type_ in given) else None


def _resolve_object(given: Sequence[SqlType]) -> Signature | None:
    """Names and values in turn."""
    if len(given) % 2 or not all(type_.kind in {Kind.VARCHAR, Kind.NULL} for type_ in given[0::2]):
        return None
    return _resolve(given)


def _resolve_one(given: Sequence[SqlType]) -> Signature | None:
    return _resolve(given) if len(given) == 1 else None


def _array_row(signature: Signature) -> Callable[..., str]:
    encoders = [_encoder(type_) for type_ in signature.arguments]

    def write(*values: Any) -> str:
        parts = zip(encoders, values, strict=True)
        return f"[{','.join(['null' if value is None else encode(value) for encode, value in parts])}]"

    return write


def _object_row(signature: Signature) -> Callable[..., str]:
    encoders = [_encoder(type_) for type_ in signature.arguments]

    def write(*values: Any) -> str:
        members: list[str] = []
        for place in range(0, len(values), 2):
            name, value = values[place], values[place + 1]
            if name is None:
                raise data_error("a member of a JSON object needs a name")
            encoded = "null" if value is None else encoders[place + 1](value)
            members.append(f"{msgspec.json.encode(name).decode()}:{encoded}")
        return f"{{{','.join(members)}}}"

    return write


def _maker(
    name: str,
    resolve: Callable[[Sequence[SqlType]], Signature | None],
    row: Callable[[Signature], Callable[..., Any]],
    *,
    strict: bool = False,
    can_fail: bool = False,
) -> Function:
    def batch(signature: Signature) -> Any:
        return by_rows(row(signature), signature, strict=strict)

    return Function(name, resolve, batch, row, strict=strict, can_fail=can_fail, hints=(VARCHAR,))


FUNCTIONS = (
    _maker("json_array", _resolve, _array_row),
    _maker("json_object", _resolve_object, _object_row, can_fail=True),
    _maker("to_json", _resolve_one, lambda signature: _encoder(signature.arguments[0]), strict=True),
)
