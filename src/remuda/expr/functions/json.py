"""JSON taken apart and put together: `->`, `->>`, JSON_EXTRACT, lengths and types; JSON_ARRAY, JSON_OBJECT, TO_JSON.

A path goes into a document step by step: `$.name`, `$[0]`, `$."a name"`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from remuda.errors import option_error, shown, text_error
from remuda.expr.cast.cast import can_cast, cast_row
from remuda.expr.evaluate.by_rows import by_rows, plain_function
from remuda.expr.function import Function, Overload, Signature, fixed, overloaded
from remuda.expr.nodes import Literal
from remuda.types import BIGINT, BOOLEAN, JSON, VARCHAR, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr.nodes import Expression
    from remuda.types import SqlType


ABSENT: Any = object()
"""What is not there, and so neither a value nor JSON's null."""

_STEP = re.compile(r"""\.([^.\[\]"*]+)|\."((?:[^"\\]|\\.)*)"|\[(-?\d+)\]|\["((?:[^"\\]|\\.)*)"\]""")


@lru_cache(maxsize=1024)
def path_steps(path: str) -> tuple[str | int, ...]:
    """Return the steps of a path. Text that does not begin with `$` is the name of a member.

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
            raise text_error(f"{shown(path)} is not a path into JSON")
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
    """Return a member of an object by its name, an element of an array by its number from 0, or from -1 at the end."""
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
    """Return a string without its quotes; NULL for JSON's null."""
    if found is ABSENT or found is None:
        return None
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _as_scalar(found: Any) -> str | None:
    return None if isinstance(found, dict | list) else _as_text(found)


def _length(found: Any) -> int | None:
    """Return the length of an array; 0 for any other value."""
    return None if found is ABSENT else len(found) if isinstance(found, list) else 0


def _type_name(found: Any) -> str | None:
    """Return the name of a JSON type, as DuckDB has it."""
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
    """Return the name of a JSON type, as PostgreSQL has it."""
    name = _type_name(found)
    numbers = {"UBIGINT": "number", "BIGINT": "number", "DOUBLE": "number", "VARCHAR": "string"}
    return None if name is None else numbers.get(name, name.lower())


def _path_can_fail(arguments: tuple[Expression, ...]) -> bool:
    """Test whether the text after `->` may begin with `$` and yet be no path."""
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
    """Define a function of a path; `optional` ones take the whole document where no path is given."""

    def row(document: str, path: str = "$") -> Any:
        return shown(find(document, path_steps(path)))

    return plain_function(name, [JSON, VARCHAR], result, row, optional=int(optional), can_fail=True)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _encoder(type_: SqlType) -> Callable[[Any], str]:
    """Return the function from a stored value, not NULL, to its JSON.

    Numbers, booleans and JSON stay what they are, infinity and NaN are null, and all else is the text that it has.
    """
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
    """Resolve arguments that are names and values in turn."""
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
        for position in range(0, len(values), 2):
            name, value = values[position], values[position + 1]
            if name is None:
                raise option_error("a member of a JSON object needs a name")
            encoded = "null" if value is None else encoders[position + 1](value)
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
    _maker("json_array", _resolve, _array_row),
    _maker("json_object", _resolve_object, _object_row, can_fail=True),
    _maker("to_json", _resolve_one, lambda signature: _encoder(signature.arguments[0]), strict=True),
)
