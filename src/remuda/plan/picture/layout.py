"""Places cards: the first input straight below its consumer, further inputs to its right.

Sub-trees are packed by their outlines, so that a chain of joins is a column with its tables beside it:

    join        ┌─────┐
                └──┬──┘
                   ├───────┐
    join, scan  ┌──┴──┐ ┌──┴──┐
                └──┬──┘ └─────┘
                   ├───────┐
    scan, scan  ┌──┴──┐ ┌──┴──┐
                └─────┘ └─────┘

Where that would need more than `MOST_COLUMNS` columns, the first input is moved down until the others have their room
beside the edge to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.plan.picture.cards import Card

MOST_COLUMNS = 6
ROW_GAP = 36.0
"""Room between a card and those below it, for the edges."""

Span = tuple[float, float]
"""From the top to the bottom."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A card at a column and at a distance from the top."""

    card: Card
    column: int
    top: float
    height: float
    inputs: tuple[Placed, ...]

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def moved(self, columns: int, down: float) -> Placed:
        below = tuple(each.moved(columns, down) for each in self.inputs)
        return Placed(self.card, self.column + columns, self.top + down, self.height, below)


def walk(placed: Placed) -> list[Placed]:
    """Return a card and all below it, consumers first."""
    found, open_ = [], [placed]
    while open_:
        each = open_.pop()
        found.append(each)
        open_.extend(reversed(each.inputs))
    return found


def place(card: Card, height_of: Callable[[Card], float]) -> Placed:
    """Place a tree with its root at column 0 and at the top."""
    height = height_of(card)
    below = [place(each, height_of).moved(0, height + ROW_GAP) for each in card.inputs]
    return Placed(card, 0, 0.0, height, tuple(_side_by_side(below)))


def _side_by_side(trees: Sequence[Placed]) -> list[Placed]:
    """Move trees to the right until none overlaps one before it; else the first one down."""
    if len(trees) < 2:
        return list(trees)
    packed = [trees[0]]
    for tree in trees[1:]:
        packed.append(tree.moved(_columns_beside(packed, tree), 0.0))
    if _width(packed) <= MOST_COLUMNS:
        return packed
    others = [trees[1].moved(1, 0.0)]
    for tree in trees[2:]:
        others.append(tree.moved(_columns_beside(others, tree), 0.0))
    down = max(each.bottom for tree in others for each in walk(tree)) + ROW_GAP - trees[0].top
    stacked = [trees[0].moved(0, down), *others]
    return stacked if _width(stacked) < _width(packed) else packed


def _width(trees: Sequence[Placed]) -> int:
    return 1 + max(each.column for tree in trees for each in walk(tree))


def _columns_beside(packed: Sequence[Placed], tree: Placed) -> int:
    """Return how far to the right a tree has to be, so that it neither meets its siblings nor their edges."""
    taken: dict[int, list[Span]] = {}
    for column, span in (box for other in packed for box in _boxes(other)):
        taken.setdefault(column, []).append(span)
    boxes = _boxes(tree)
    columns = max(other.column for other in packed) + 1
    while any(_overlap(span, other) for column, span in boxes for other in taken.get(column + columns, ())):
        columns += 1
    return columns


def _boxes(tree: Placed) -> list[tuple[int, Span]]:
    """Return what a tree takes up of each column: its cards, and the level parts of the edges between them."""
    boxes: list[tuple[int, Span]] = []
    for each in walk(tree):
        boxes.append((each.column, (each.top, each.bottom)))
        for below in each.inputs[1:]:
            level = below.top - ROW_GAP / 2
            boxes.extend((column, (level, level)) for column in range(each.column + 1, below.column))
    return boxes


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] + ROW_GAP and other[0] < one[1] + ROW_GAP
