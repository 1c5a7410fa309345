"""Converting the values of a row, each by a function of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def convert_each(converters: Sequence[Callable[[Any], Any]]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The function from a row to the row of converted values; whoever calls it knows that it has as many.

    The calls are written out one after the other: a loop over them costs more than what most of them do.

    >>> convert_each([int, str])(("1", 2))
    (1, '2')
    """
    names = {f"convert_{place}": converter for place, converter in enumerate(converters)}
    calls = "".join(f"{name}(row[{place}]), " for place, name in enumerate(names))
    written_out: Callable[[Sequence[Any]], tuple[Any, ...]] = eval(f"lambda row: ({calls})", names)
    return written_out
