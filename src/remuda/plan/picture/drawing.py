"""Draws a picture: the statement and what is known of the whole run, the cards, the edges between them, a legend."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.plan.picture.card_blocks import WIDTH, draw_card
from remuda.plan.picture.cards import highlights
from remuda.plan.picture.layout import ROW_GAP, place
from remuda.plan.picture.style import CLASS, standalone_style_sheet
from remuda.plan.picture.text_layout import MONO_ADVANCE, SANS_ADVANCE, counted, escaped, sans_width, wrapped
from remuda.plan.walk import walk

if TYPE_CHECKING:
    from remuda.plan.picture.cards import Card
    from remuda.plan.picture.layout import Placed

_MARGIN = 24.0
_COLUMN_GAP = 28.0
_PITCH = WIDTH + _COLUMN_GAP
_LEAST_WIDTH = 680.0
_STATEMENT_SIZE = 12.0
_STATEMENT_LINES = 16
_STATEMENT_COLUMNS = 120
_CORNER = 9.0
_INPUT_GAP = 64.0
"""How far apart the inputs of an operator arrive at it."""

_LEGEND = {
    "read": "reads a map",
    "join": "joins",
    "group": "groups, orders",
    "row": "row by row",
    "move": "moves rows",
    "write": "writes",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A plan that can be drawn: `facts` are short texts about the whole of it."""

    title: str
    statement: str
    facts: tuple[str, ...]
    root: Card


def svg(picture: Picture, style: str | None = None) -> str:
    """Return the drawing, with a style sheet inside it; the same picture gives the same text."""
    drawn: dict[int, tuple[str, float]] = {}

    def height_of(card: Card) -> float:
        drawn[id(card)] = draw_card(card)
        return drawn[id(card)][1]

    tree = place(picture.root, height_of)
    placed = list(walk(tree))
    width = max(_LEAST_WIDTH, _MARGIN * 2 + max(each.column for each in placed) * _PITCH + WIDTH)
    head, top = _head(picture, width)
    bottom = top + max(each.bottom for each in placed)
    edges = "".join(_edges(each) for each in placed)
    cards = "".join(
        f'<g transform="translate({_left(each):g} {each.top:.1f})">{drawn[id(each.card)][0]}</g>' for each in placed
    )
    height = bottom + 44
    sheet = standalone_style_sheet() if style is None else style
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" width="{width:g}" height="{height:.0f}" '
        f'viewBox="0 0 {width:g} {height:.0f}"><style>{sheet}</style>'
        f'<rect class="ground" width="100%" height="100%" rx="10"/>{head}'
        f'<g transform="translate({_MARGIN:g} {top:.1f})">{edges}{cards}</g>'
        f"{_legend(placed, bottom + 26)}</svg>"
    )


def _head(picture: Picture, width: float) -> tuple[str, float]:
    """Return the title, the statement and the facts, and how far down they reach."""
    columns = min(int((width - 2 * _MARGIN) / (_STATEMENT_SIZE * MONO_ADVANCE)), _STATEMENT_COLUMNS)
    lines = [line for each in picture.statement.expandtabs(4).splitlines() for line in _statement_lines(each, columns)]
    if len(lines) > _STATEMENT_LINES:
        lines = [*lines[: _STATEMENT_LINES - 1], "…"]
    room = int((width - 2 * _MARGIN) / (12 * SANS_ADVANCE))
    facts = [line for each in (*picture.facts, *highlights(picture.root)) for line in wrapped(each, room, 4)]
    parts = [f'<text class="b" x="{_MARGIN:g}" y="34" style="font-size:15px">{escaped(picture.title)}</text>']
    y = 40.0
    for line in lines:
        y += 17
        parts.append(f'<text class="m" x="{_MARGIN:g}" y="{y:g}" style="font-size:{_STATEMENT_SIZE:g}px">{line}</text>')
    y += 6
    for fact in facts:
        y += 17
        parts.append(f'<text class="quiet" x="{_MARGIN:g}" y="{y:g}" style="font-size:12px">{escaped(fact)}</text>')
    return "".join(parts), y + 22


def _statement_lines(line: str, columns: int) -> list[str]:
    """Break a line of SQL; blanks at its beginning stay, which SVG would drop."""
    indent = len(line) - len(line.lstrip())
    first, *more = wrapped(line.strip(), max(columns - indent - 4, 20), _STATEMENT_LINES)
    return ["\u00a0" * indent + escaped(first), *("\u00a0" * (indent + 4) + escaped(each) for each in more)]


def _left(placed: Placed) -> float:
    return placed.column * _PITCH


def _edges(placed: Placed) -> str:
    """Draw the way of the rows of each input, up to the operator that takes them."""
    parts = []
    for number, below in enumerate(placed.inputs):
        rows = below.card.rows if below.card.run is None else float(below.card.run.rows)
        width = edge_width(rows)
        kind = "edge move" if placed.card.kind == "move" and below.card.fragment else "edge"
        parts.append(f'<path class="{kind}" stroke-width="{width:.1f}" d="{_way(placed, below, number)}"/>')
        label = counted(rows) if below.card.run is not None else f"≈ {counted(rows)}"
        x = _left(below) + WIDTH / 2 + width / 2 + 5
        parts.append(
            f'<text class="quiet" x="{x:.1f}" y="{below.top - 7:.1f}" style="font-size:10px">{escaped(label)}</text>'
        )
    return "".join(parts)


def _way(placed: Placed, below: Placed, number: int) -> str:
    """Return the path of an edge: up, across just above the input, and up again to its own place at the operator."""
    start = _left(below) + WIDTH / 2
    level = below.top - ROW_GAP / 2
    if placed.is_on_lower_shelf(below):
        beside, end = _left(placed) - _COLUMN_GAP / 2, _left(placed) + _INPUT_GAP / 2
        return _rounded(
            [
                (start, below.top),
                (start, level),
                (beside, level),
                (beside, placed.bottom + ROW_GAP / 2),
                (end, placed.bottom + ROW_GAP / 2),
                (end, placed.bottom),
            ]
        )
    end = min(_left(placed) + WIDTH / 2 + number * _INPUT_GAP, _left(placed) + WIDTH - 20)
    if start == end:
        return f"M{start:g} {below.top:.1f}V{placed.bottom:.1f}"
    return _rounded([(start, below.top), (start, level), (end, level), (end, placed.bottom)])


def _rounded(points: list[tuple[float, float]]) -> str:
    """Return a path along points whose parts are level or upright, with round corners."""
    path = f"M{points[0][0]:g} {points[0][1]:.1f}"
    for before, (x, y), after in zip(points, points[1:], points[2:], strict=False):
        into = _towards((x, y), before)
        out = _towards((x, y), after)
        path += f"L{into[0]:.1f} {into[1]:.1f}Q{x:.1f} {y:.1f} {out[0]:.1f} {out[1]:.1f}"
    return f"{path}L{points[-1][0]:.1f} {points[-1][1]:.1f}"


def _towards(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the point of a part at which the rounding of its corner ends."""
    across, down = other[0] - corner[0], other[1] - corner[1]
    share = min(_CORNER / max(abs(across), abs(down), 1e-9), 0.5)
    return corner[0] + across * share, corner[1] + down * share


def edge_width(rows: float) -> float:
    """Return a width that grows by the same step whenever the rows are ten times as many.

    >>> [round(edge_width(rows), 1) for rows in (0, 9, 999, 9_999_999)]
    [1.2, 2.8, 6.0, 12.4]
    """
    return min(1.2 + 1.6 * math.log10(1 + max(rows, 0.0)), 14.0)


def _legend(placed: list[Placed], y: float) -> str:
    kinds = {each.card.kind for each in placed}
    parts, x = [], _MARGIN
    texts = [(kind, text) for kind, text in _LEGEND.items() if kind in kinds]
    if any(each.card.run is not None and each.card.run.decisions for each in placed):
        texts.append(("", "◆ decided at execution"))
    for kind, text in texts:
        if kind:
            parts.append(f'<rect class="kind {kind}" x="{x:.1f}" y="{y - 8:.1f}" width="9" height="9" rx="2"/>')
            x += 15
        classes = "quiet" if kind else "decided"
        parts.append(f'<text class="{classes}" x="{x:.1f}" y="{y:.1f}" style="font-size:10.5px">{escaped(text)}</text>')
        x += sans_width(text, 10.5) + 14
    return "".join(parts)
