"""JSON taken apart: `->` and `->>`, JSON_EXTRACT by a path, lengths and types."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.errors import data_error, shown
from remuda.expr.evaluate.by_rows import by_rows, plain_function
from remuda.expr.function import Function, Overload, Signature, fixed, overloaded
from remuda.expr.nodes import Literal
from remuda.types import BIGINT, BOOLEAN, JSON, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr.nodes import Expression

# Paths into a JSON document: `$.name`, `$[0]`, `$."a name"`, one after the other.


ABSENT: Any = object()
"""What is not there, and so neither a value nor JSON's null."""

_STEP = re.compile(r"""\.([^.\[\]"*]+)|\."((?:[^"\\]|\\.)*)"|\[(-?\d+)\]|\["((?:[^"\\]|\\.)*)"\]""")


@lru_cache(maxsize=1024)
def path_steps(path: str) -> tuple[str | int, ...]:
    """Text that does not begin with `$` is the name of a member.

    >>> path_steps('$.a[0]."b c"'), path_steps("a.b")
    (('a', 0, 'b c'), ('a.b',))
    """
    if not path.startswith("$"):
        return (path,)
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise data_error(f"{shown(path)} is not a path into JSON")
        plain, quoted, number, bracketed = found.groups()
        if number is not None:
            steps.append(int(number))
        elif plain is not None:
            steps.append(plain)
        else:
            steps.append(re.sub(r"\\(.)", r"\1", quoted if quoted is not None else bracketed))
        at = found.end()
    return tuple(steps)


def member(value: Any, key: str | int) -> Any:
    """A member of an object by its name, an element of an array by its number from 0, or from -1 at the end."""
    if isinstance(key, str):
        return value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
    if isinstance(value, list) and -len(value) <= key < len(value):
        return value[key]
    return ABSENT


def find(document: str, steps: tuple[str | int, ...]) -> Any:
    value = msgspec.json.decode(document)
    for step in steps:
        value = member(value, step)
        if value is ABSENT:
            break
    return value


def _as_json(found: Any) -> str | None:
    return None if found is ABSENT else msgspec.json.encode(found).decode()


def _as_text(found: Any) -> str | None:
    """A string without its quotes; NULL for JSON's null."""
    if found is ABSENT or found is None:
        return None
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _as_scalar(found: Any) -> str | None:
    return None if isinstance(found, dict | list) else _as_text(found)


def _length(found: Any) -> int | None:
    """Of what is no array, 0."""
    return None if found is ABSENT else len(found) if isinstance(found, list) else 0


def _type_name(found: Any) -> str | None:
    """DuckDB's names."""
    match found:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int():
            return "UBIGINT" if found >= 0 else "BIGINT"
        case float():
            return "DOUBLE"
        case str():
            return "VARCHAR"
        case list():
            return "ARRAY"
        case dict():
            return "OBJECT"
    return None


def _standard_type_name(found: Any) -> str | None:
    """PostgreSQL's names."""
    name = _type_name(found)
    numbers = {"UBIGINT": "number", "BIGINT": "number", "DOUBLE": "number", "VARCHAR": "string"}
    return None if name is None else numbers.get(name, name.lower())


def _path_can_fail(arguments: tuple[Expression, ...]) -> bool:
    """Whether the text after `->` may begin with `$` and yet be no path."""
    key = arguments[1]
    if not isinstance(key, Literal):
        return key.type == VARCHAR
    return isinstance(key.value, str) and key.value.startswith("$")


def _operator(name: str, result: Any, shown: Callable[[Any], Any]) -> Function:
    def row(document: str, key: str | int) -> Any:
        return shown(find(document, path_steps(key) if isinstance(key, str) else (key,)))

    def batch(signature: Signature) -> Any:
        return by_rows(row, signature)

    by_name, by_number = (Overload(fixed([JSON, key], result), batch, lambda _: row) for key in (VARCHAR, BIGINT))
    return overloaded(name, by_name, by_number, symbol=name, can_fail=_path_can_fail)


def _by_path(name: str, result: Any, shown: Callable[[Any], Any], *, optional: bool = False) -> Function:
    """`optional` functions have the whole document in mind where no path is given."""

    def row(document: str, path: str = "$") -> Any:
        return shown(find(document, path_steps(path)))

    return plain_function(name, [JSON, VARCHAR], result, row, optional=int(optional), can_fail=True)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


FUNCTIONS = (
    _operator("->", JSON, _as_json),
    _operator("->>", VARCHAR, _as_text),
    _by_path("json_extract", JSON, _as_json),
    _by_path("json_extract_string", VARCHAR, _as_text),
    _by_path("json_value", VARCHAR, _as_scalar),
    _by_path("json_exists", BOOLEAN, lambda found: found is not ABSENT),
    _by_path("json_array_length", BIGINT, _length, optional=True),
    _by_path("json_type", VARCHAR, _type_name, optional=True),
    _by_path("json_typeof", VARCHAR, _standard_type_name, optional=True),
    plain_function("json_valid", [VARCHAR], BOOLEAN, _is_json),
)
