"""`json -> key` and `json ->> key`: a member of an object by its name, an element of an array by its number from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remuda.expr.by_rows import by_rows
from remuda.expr.function import Function, Overload, Signature, fixed, overloaded
from remuda.types import BIGINT, JSON, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable

_ABSENT = object()


def _member(document: str, key: str | int) -> Any:
    value = msgspec.json.decode(document)
    if isinstance(key, str):
        return value.get(key, _ABSENT) if isinstance(value, dict) else _ABSENT
    if isinstance(value, list) and -len(value) <= key < len(value):
        return value[key]
    return _ABSENT


def _as_json(document: str, key: str | int) -> str | None:
    found = _member(document, key)
    return None if found is _ABSENT else msgspec.json.encode(found).decode()


def _as_text(document: str, key: str | int) -> str | None:
    """A string without its quotes; NULL for JSON's null."""
    found = _member(document, key)
    if found is _ABSENT or found is None:
        return None
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _operator(name: str, result: Any, row: Callable[[str, Any], Any]) -> Function:
    def batch(signature: Signature) -> Any:
        return by_rows(row, signature)

    by_name, by_number = (Overload(fixed([JSON, key], result), batch, lambda _: row) for key in (VARCHAR, BIGINT))
    return overloaded(name, by_name, by_number, symbol=name)


FUNCTIONS = (_operator("->", JSON, _as_json), _operator("->>", VARCHAR, _as_text))
