"""Paths into a JSON document: `$.name`, `$[0]`, `$."a name"`, one after the other."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from remuda.errors import data_error, shown

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
