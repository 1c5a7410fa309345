"""Generates functions: the one place where Python text becomes code. What is generated, and why: decision 0035.

A function that loops over functions, one for each column, spends more time on the loop than on the columns. Where the
columns are known beforehand and the function runs for each row or each statement, it is written out instead:

    generate("row", tuple_of(["convert_0(row[0])", "row[1]"]), {"convert_0": to_date})

    lambda row: (convert_0(row[0]), row[1], )

The text is made of numbers and of names that the caller has invented (`convert_0`), never of a name or a value that
users give; those are what the names stand for. It sees nothing else: of Python's own functions only those listed here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, FunctionType

_BUILTINS = {each.__name__: each for each in (bool, bytes, float, int, len, map, str, type, zip)}


def generate(
    arguments: str, expression: str, names: Mapping[str, Any], *, renamed: Mapping[str, str] | None = None
) -> Callable[..., Any]:
    """Return the function of these arguments that gives the expression, in which the names stand for these values.

    It has a copy of the code for itself. The interpreter notes in the code where it has found a name, and would have to
    look again each time the function of another segment, or of another map, has run in between. In the copy arguments
    and attributes can be `renamed`: functions that differ in nothing else are compiled once.

    >>> generate("row", tuple_of(["row[1]", "double(row[0])"]), {"double": lambda value: value * 2})((3, "a"))
    ('a', 6)
    >>> generate("self, arg_0", "self.attribute_0 + arg_0", {}, renamed={"arg_0": "j", "attribute_0": "real"})(1, j=2)
    3
    """
    made: FunctionType = eval(_compiled(f"lambda {arguments}: {expression}"), {"__builtins__": _BUILTINS, **names})
    code = made.__code__
    if renamed:
        made.__code__ = code.replace(
            co_varnames=tuple(renamed.get(name, name) for name in code.co_varnames),
            co_names=tuple(renamed.get(name, name) for name in code.co_names),
        )
    else:
        made.__code__ = code.replace()
    return made


def tuple_of(items: Iterable[str]) -> str:
    """Write the tuple of these expressions.

    >>> tuple_of(["a"]), tuple_of([])
    ('(a, )', '()')
    """
    return f"({''.join(f'{item}, ' for item in items)})"


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    return compile(text, "<generated>", "eval")
