"""Cards overlap neither each other nor the edges between others, whatever the shape of the plan."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from remuda.plan.picture.cards import Card
from remuda.plan.picture.layout import MOST_COLUMNS, ROW_GAP, Placed, place
from remuda.plan.walk import walk


def card(height: int, *inputs: Card) -> Card:
    """A card whose name is its height."""
    return Card("row", str(height), "", "", (), 1.0, 1.0, inputs)


HEIGHTS = st.integers(60, 400)
TREES = st.recursive(
    HEIGHTS.map(card),
    lambda below: st.builds(
        lambda height, inputs: card(height, *inputs), HEIGHTS, st.lists(below, min_size=1, max_size=4)
    ),
    max_leaves=30,
)


def placed(tree: Card) -> Placed:
    return place(tree, lambda each: float(each.name))


def cards_of(tree: Card) -> list[Placed]:
    return list(walk(placed(tree)))


def edges(parent: Placed) -> list[tuple[int, int, float]]:
    """The level parts of edges: from column, to column, distance from the top."""
    return [(parent.column, below.column, below.top - ROW_GAP / 2) for below in parent.inputs[1:]]


@given(TREES)
def test_nothing_overlaps(tree: Card) -> None:
    cards = cards_of(tree)
    for one, other in combinations(cards, 2):
        assert one.column != other.column or one.bottom < other.top or other.bottom < one.top
    for left, right, level in (edge for each in cards for edge in edges(each)):
        crossed = [each for each in cards if left <= each.column <= right and each.top < level < each.bottom]
        assert not crossed


@given(TREES)
def test_inputs_are_below_and_in_order(tree: Card) -> None:
    for each in cards_of(tree):
        assert all(below.top >= each.bottom + ROW_GAP for below in each.inputs)
        shelves = [[below.column for below in each.inputs[1:] if below.top == top] for top in tops(each)]
        assert all(columns == sorted(set(columns)) for columns in shelves)
        assert tops(each) == sorted(tops(each))
        if each.inputs:
            assert each.inputs[0].column == each.column


def tops(parent: Placed) -> list[float]:
    return list(dict.fromkeys(below.top for below in parent.inputs[1:]))


@given(TREES)
def test_no_card_crosses_the_straight_edge_to_a_first_input(tree: Card) -> None:
    cards = cards_of(tree)
    for parent in (each for each in cards if each.inputs):
        between = (parent.bottom, parent.inputs[0].top)
        column = [each for each in cards if each.column == parent.column]
        assert not [each for each in column if between[0] < each.top < between[1]]


def test_a_chain_of_joins_stays_narrow() -> None:
    tree = card(100)
    for _ in range(40):
        tree = card(100, tree, card(80, card(80, card(80))))
    assert max(each.column for each in cards_of(tree)) < MOST_COLUMNS


def test_a_union_of_many_stays_narrow() -> None:
    tree = card(100, *(card(80 + number, card(60)) for number in range(50)))
    cards = cards_of(tree)
    assert max(each.column for each in cards) == MOST_COLUMNS - 1
    assert len({each.top for each in cards[0].inputs}) == 9
