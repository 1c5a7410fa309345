"""A case: what is asked, and one function for each contender that answers it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from remuda.bench.peers import is_installed
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.bench.data import Data
    from remuda.bench.peers import Peers

REMUDA = "Remuda"
Ask = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """`contenders` has Remuda first; all must give answers of the same size. None stands for one not installed."""

    name: str
    contenders: dict[str, Ask | None] = field(repr=False)
    same_answers: bool = True
    """False where the peers do something else on purpose, such as nothing at all."""
    grows: bool = False
    """True where the case is also measured with fewer and with more rows."""
    processor: bool = False
    """True where the processors' time is told too: of processes, which do much of their work on several threads."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the functions that make cases work with."""

    data: Data
    peers: Peers

    def contenders(self, names: Iterable[str], ask: Callable[[Any], Ask]) -> dict[str, Ask | None]:
        """Make the function of each peer that is installed."""
        found = {name: self.peers.find(name) for name in names}
        return {name: None if peer is None else ask(peer) for name, peer in found.items()}


def if_installed(name: str, make: Callable[[], Ask]) -> Ask | None:
    """Make a contender that needs no peer with rows, such as one that loads them."""
    return make() if is_installed(name) else None


def over(values: Sequence[Any], ask: Callable[[Any], Any]) -> Ask:
    """Return a function that asks for the next of the values at each call; each contender has its own iterator."""
    following = itertools.cycle(values).__next__
    return lambda: ask(following())


def size_of(answer: Any) -> int | None:
    """Count the rows, whatever holds them; None for an answer without rows."""
    match answer:
        case list() | tuple() | dict():
            return len(answer)
        case _ if hasattr(answer, "num_rows"):  # Arrow
            return int(answer.num_rows)
        case _ if hasattr(answer, "height"):  # Polars
            return int(answer.height)
        case _:
            return None
