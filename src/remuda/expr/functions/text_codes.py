"""Text as numbers and bytes: code points, hexadecimal, base 64, checksums."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from remuda.errors import encoding_error, option_error, overflow_error, shown, text_error
from remuda.expr.evaluate.by_rows import by_rows, plain_function
from remuda.expr.function import Function, Overload, Signature, fixed, overloaded
from remuda.types import BIGINT, INTEGER, VARBINARY, VARCHAR, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable

_LAST_CODE = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def _first_code(text: str) -> int:
    return ord(text[0]) if text else 0


def _character(code: int) -> str:
    if not 0 < code <= _LAST_CODE or code in _SURROGATES:
        raise overflow_error(f"{code} is not the number of a character")
    return chr(code)


def _bytes_of(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _hexadecimal(value: str | bytes | int) -> str:
    """Return hexadecimal digits; of a number below zero, those of its 64 bits."""
    if isinstance(value, int):
        return format(value & 0xFFFFFFFFFFFFFFFF, "X")
    return _bytes_of(value).hex().upper()


def _from_hexadecimal(text: str) -> bytes:
    try:
        return bytes.fromhex(text) if not any(map(str.isspace, text)) else _refuse(text, "hex")
    except ValueError:
        return _refuse(text, "hex")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _refuse(text, "base64")


def _refuse(text: str, form: str) -> bytes:
    raise text_error(f"{shown(text)} is not {form}")


def _encode(value: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            return value.hex()
        case "base64":
            return base64.b64encode(value).decode()
    raise option_error(f"unknown encoding: {form}; there are hex and base64")


def _decode(text: str, form: str) -> bytes:
    match form.lower():
        case "hex":
            return _from_hexadecimal(text)
        case "base64":
            return _from_base64(text)
    raise option_error(f"unknown encoding: {form}; there are hex and base64")


def _utf8_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise encoding_error("the bytes are not UTF-8") from None


def _of(argument: SqlType, result: SqlType, row: Callable[..., Any]) -> Overload:
    return Overload(fixed([argument], result), _by_rows(row), lambda _: row)


def _by_rows(row: Callable[..., Any]) -> Callable[[Signature], Any]:
    return lambda signature: by_rows(row, signature)


def _with_form(argument: SqlType, result: SqlType, row: Callable[..., Any]) -> Overload:
    return Overload(fixed([argument, VARCHAR], result), _by_rows(row), lambda _: row)


def _checksum(name: str, make: Callable[[bytes], Any]) -> Function:
    """Define a checksum in hexadecimal digits, as DuckDB has it; of text, that of its UTF-8 bytes."""

    def row(value: str | bytes) -> str:
        digits: str = make(_bytes_of(value)).hexdigest()
        return digits

    return overloaded(name, _of(VARCHAR, VARCHAR, row), _of(VARBINARY, VARCHAR, row), hints=(VARCHAR,))


def _hashed(name: str) -> Callable[[bytes], Any]:
    """Return a function of `hashlib`, which is imported with the first call: it loads OpenSSL, 5 ms of a process."""

    def make(value: bytes) -> Any:
        import hashlib

        return hashlib.new(name, value, usedforsecurity=False)

    return make


FUNCTIONS = (
    plain_function("ascii", [VARCHAR], INTEGER, _first_code),
    plain_function("chr", [BIGINT], VARCHAR, _character, can_fail=True),
    overloaded(
        "hex",
        _of(BIGINT, VARCHAR, _hexadecimal),
        _of(VARCHAR, VARCHAR, _hexadecimal),
        _of(VARBINARY, VARCHAR, _hexadecimal),
        hints=(VARCHAR,),
    ),
    plain_function("unhex", [VARCHAR], VARBINARY, _from_hexadecimal, can_fail=True),
    plain_function("to_base64", [VARBINARY], VARCHAR, lambda value: _encode(value, "base64")),
    plain_function("from_base64", [VARCHAR], VARBINARY, _from_base64, can_fail=True),
    overloaded(
        "encode",
        _of(VARCHAR, VARBINARY, str.encode),
        _with_form(VARBINARY, VARCHAR, _encode),
        can_fail=True,
    ),
    overloaded(
        "decode",
        _of(VARBINARY, VARCHAR, _utf8_text),
        _with_form(VARCHAR, VARBINARY, _decode),
        can_fail=True,
    ),
    _checksum("md5", _hashed("md5")),
    _checksum("sha1", _hashed("sha1")),
    _checksum("sha256", _hashed("sha256")),
)
