"""A case: what is asked, and one function for each contender that answers it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.data import Data
    from benchmarks.peers import Peers

REMUDA = "Remuda"


@dataclass(frozen=True, slots=True)
class Case:
    """`contenders` has Remuda first; all must give answers of the same size."""

    name: str
    contenders: dict[str, Callable[[], Any]] = field(repr=False)
    same_answers: bool = True
    """False where the peers do something else on purpose, such as nothing at all."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the functions that make cases work with."""

    data: Data
    peers: Peers
    with_spark: bool


def over(values: Sequence[Any], ask: Callable[[Any], Any]) -> Callable[[], Any]:
    """A function that asks for the next of the values at each call; each contender has its own place in the list."""
    following = itertools.cycle(values).__next__
    return lambda: ask(following())


def size_of(answer: Any) -> int | None:
    """The number of rows, whatever holds them; None for an answer without rows."""
    match answer:
        case list() | tuple() | dict():
            return len(answer)
        case _ if hasattr(answer, "num_rows"):  # Arrow
            return int(answer.num_rows)
        case _ if hasattr(answer, "height"):  # Polars
            return int(answer.height)
        case _:
            return None
