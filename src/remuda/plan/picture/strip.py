"""Draws the partitions of a map as cells, a block for each member, those that an operator touches filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.plan.picture.text_layout import escaped, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.picture.cards import Reach

_LABEL = 58.0
_PITCH = 6.0
_CELL = 5.0
MOST_ROWS = 5
"""Rows of cells for one member; a cell stands for several partitions where there are more."""
MOST_MEMBERS = 6


@dataclass(frozen=True, slots=True)
class MemberCells:
    """The cells of one member: `size` partitions each, True where one of them is touched."""

    member: str
    cells: tuple[bool, ...]
    size: int


def draw_strip(reach: Reach, left: float, top: float, width: float) -> tuple[str, float]:
    """Return the markup of a strip and its height. All or an unknown number of partitions is one bar."""
    owned = sum(len(partitions) for _, partitions in reach.owned)
    touched = reach.touched
    if touched is None or reach.is_everything:
        kind = "unknown" if touched is None else "all"
        label = f"partitions: {'decided by values' if touched is None else f'all {owned}'}"
        bar = _members_bar(reach, kind, left, top + 15, width)
        return _label(left, top, label) + bar, 24.0
    blocks = member_cells(reach, int((width - _LABEL) / _PITCH))
    shown = [block for block in blocks if any(block.cells)] if len(blocks) > MOST_MEMBERS else blocks
    shown = shown[:MOST_MEMBERS]
    note = f", a cell is {blocks[0].size}" if blocks and blocks[0].size > 1 else ""
    hidden = len(blocks) - len(shown)
    more = f", {hidden} more members" if hidden else ""
    parts = [_label(left, top, f"partitions: {len(touched)} of {owned}{note}{more}")]
    y = top + 17
    for block in shown:
        markup, height = _draw_member(block, left, y, width)
        parts.append(markup)
        y += height + 4
    return "".join(parts), y - top - 4


def member_cells(reach: Reach, in_row: int) -> list[MemberCells]:
    """Return the cells of each member; all of them stand for equally many partitions."""
    touched = reach.touched or frozenset()
    most = max((len(partitions) for _, partitions in reach.owned), default=0)
    size = max(1, -(-most // (in_row * MOST_ROWS)))
    return [
        MemberCells(
            member,
            tuple(not touched.isdisjoint(partitions[at : at + size]) for at in range(0, len(partitions), size)),
            size,
        )
        for member, partitions in reach.owned
    ]


def _draw_member(block: MemberCells, left: float, top: float, width: float) -> tuple[str, float]:
    """Draw each run of equal cells as one path: a plan with many scans stays small."""
    in_row = int((width - _LABEL) / _PITCH)
    paths: dict[bool, list[str]] = {False: [], True: []}
    for at, is_touched in enumerate(block.cells):
        row, column = divmod(at, in_row)
        paths[is_touched].append(
            f"M{left + _LABEL + column * _PITCH:g} {top + row * _PITCH:g}h{_CELL:g}v{_CELL:g}h-{_CELL:g}z"
        )
    rows = max(1, -(-len(block.cells) // in_row))
    label = _label(left, top - 4, shortened(block.member, 10))
    return (
        f"{label}{_path('untouched', paths[False])}{_path('touched', paths[True])}",
        max(rows * _PITCH, 10.0),
    )


def _path(kind: str, pieces: Sequence[str]) -> str:
    return f'<path class="{kind}" d="{"".join(pieces)}"/>' if pieces else ""


def _members_bar(reach: Reach, kind: str, left: float, top: float, width: float) -> str:
    """Draw one bar, with a gap between members."""
    gap = 2.0 if len(reach.owned) <= 40 else 0.0
    total = sum(len(partitions) for _, partitions in reach.owned) or 1
    room = width - gap * (len(reach.owned) - 1)
    pieces, x = [], left
    for _, partitions in reach.owned:
        length = room * len(partitions) / total
        pieces.append(f"M{x:.1f} {top:.1f}h{length:.1f}v5h-{length:.1f}z")
        x += length + gap
    return _path(kind, pieces)


def _label(left: float, top: float, text: str) -> str:
    return f'<text class="quiet" x="{left:g}" y="{top + 11:.1f}" style="font-size:10px">{escaped(text)}</text>'
