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

Where that would need more than `MOST_COLUMNS` columns, the first input of a join is moved down until the second has its
room beside the edge to it, and the inputs of a union are put into several rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.plan.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.plan.picture.cards import Card

MOST_COLUMNS = 6
ROW_GAP = 32.0
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

    def is_on_lower_shelf(self, below: Placed) -> bool:
        """Test whether an input is below others of its operator, so that its edge goes around those on the left."""
        return below is not self.inputs[0] and below.top > self.bottom + ROW_GAP

    def moved(self, columns: int, down: float) -> Placed:
        below = tuple(each.moved(columns, down) for each in self.inputs)
        return Placed(self.card, self.column + columns, self.top + down, self.height, below)


def place(card: Card, height_of: Callable[[Card], float]) -> Placed:
    """Place a tree with its root at column 0 and at the top."""
    height = height_of(card)
    below = [place(each, height_of).moved(0, height + ROW_GAP) for each in card.inputs]
    return Placed(card, 0, 0.0, height, tuple(_arranged(below)))


def _arranged(trees: Sequence[Placed]) -> list[Placed]:
    """Move trees that begin at one place apart: beside each other where that is narrow enough."""
    packed = _side_by_side(trees)
    if _width(packed) <= MOST_COLUMNS:
        return packed
    narrower = _first_below_others(trees) if len(trees) == 2 else _in_shelves(trees)
    return narrower if _width(narrower) < _width(packed) else packed


def _side_by_side(trees: Sequence[Placed]) -> list[Placed]:
    """Move each tree to the right until it overlaps none before it."""
    packed = list(trees[:1])
    for tree in trees[1:]:
        packed.append(tree.moved(_columns_beside(packed, tree), 0.0))
    return packed


def _first_below_others(trees: Sequence[Placed]) -> list[Placed]:
    """Move the first tree down, until the others have their room beside the edge to it."""
    others = [each.moved(1, 0.0) for each in _side_by_side(trees[1:])]
    return [trees[0].moved(0, _bottom(others) + ROW_GAP - trees[0].top), *others]


def _in_shelves(trees: Sequence[Placed]) -> list[Placed]:
    """Put the many inputs of a union into rows, one below the other."""
    done: list[Placed] = []
    shelf: list[Placed] = []
    for tree in trees:
        if shelf and _width(_side_by_side([*shelf, tree])) > MOST_COLUMNS:
            done += _shelf_below(done, shelf)
            shelf = []
        shelf.append(tree)
    return done + _shelf_below(done, shelf)


def _shelf_below(done: Sequence[Placed], shelf: Sequence[Placed]) -> list[Placed]:
    down = _bottom(done) + ROW_GAP - shelf[0].top if done else 0.0
    return [each.moved(0, down) for each in _side_by_side(shelf)]


def _bottom(trees: Sequence[Placed]) -> float:
    bottoms: list[float] = [each.bottom for tree in trees for each in walk(tree)]
    return max(bottoms)


def _width(trees: Sequence[Placed]) -> int:
    return 1 + max((each.column for tree in trees for each in walk(tree)), default=0)


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
            first = each.column + (not each.is_on_lower_shelf(below))
            boxes.extend((column, (level, level)) for column in range(first, below.column))
    return boxes


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] + ROW_GAP and other[0] < one[1] + ROW_GAP
