"""Draws the inside of a card: what the operator does beside its rows and times, and below both what is wide."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.plan.picture.cards import BAD_ERROR, FAIR_ERROR
from remuda.plan.picture.strip import draw_strip
from remuda.plan.picture.text_layout import (
    MONO_ADVANCE,
    cells,
    counted,
    duration,
    escaped,
    sans_width,
    shortened,
    wrapped,
)

if TYPE_CHECKING:
    from remuda.plan.picture.cards import Card, PathsWeighed, Run

WIDTH = 384.0
LEFT = 18.0
RIGHT = WIDTH - 14.0
INNER = RIGHT - LEFT
_FIGURES = RIGHT - 118.0
"""Where the column with rows and times begins."""
_BODY = 11.0
_NAME = 13.5
_COLUMNS = int((_FIGURES - 10 - LEFT) / (_BODY * MONO_ADVANCE))
_WIDE_COLUMNS = int(INNER / (_BODY * MONO_ADVANCE))
_BAND = 22.0

MOST_NOT_TAKEN = 3
_MOST_LINES = 4
"""Lines of one attribute; its whole text is shown when the pointer rests on the card."""


@dataclass(slots=True)
class _Sheet:
    """Markup so far, and how far down it reaches."""

    y: float = 0.0
    parts: list[str] = field(default_factory=list)

    def line(self, height: float, markup: str) -> None:
        """Add a line of text whose baseline is near the lower end of its height."""
        self.y += height
        self.parts.append(markup.replace("$y", f"{self.y - height * 0.28:.1f}"))

    def lines(self, texts: list[str], classes: str, height: float = 15.0) -> None:
        for text in texts:
            self.line(height, _text(LEFT, text, classes))

    def rule(self) -> None:
        self.y += 8
        self.parts.append(f'<path class="rule" d="M{LEFT:g} {self.y:.1f}H{RIGHT:g}"/>')
        self.y += 3


def _text(x: float, text: str, classes: str, size: float = 0.0) -> str:
    sized = f' style="font-size:{size:g}px"' if size else ""
    return f'<text class="{classes}" x="{x:.1f}" y="$y"{sized}>{escaped(text)}</text>'


def draw_card(card: Card) -> tuple[str, float]:
    """Return the markup of a card, with its upper left corner at 0, 0, and its height."""
    sheet = _Sheet()
    if card.fragment:
        sheet.y = 1.0
        sheet.line(_BAND - 1, _text(LEFT, shortened(card.fragment, 54), "quiet b", 10.5))
    sheet.y += 5
    figures = _Sheet(sheet.y)
    _draw_head(sheet, card)
    for label, text in card.attributes:
        _draw_attribute(sheet, label, text)
    _draw_rows(figures, card)
    sheet.parts += figures.parts
    sheet.y = max(sheet.y, figures.y)
    if card.run is not None:
        for decision in card.run.decisions:
            sheet.lines(wrapped(f"◆ {decision}", _WIDE_COLUMNS, 3), "m decided")
    if card.reach is not None:
        markup, height = draw_strip(card.reach, LEFT, sheet.y + 4, INNER)
        sheet.parts.append(markup)
        sheet.y += height + 4
    if card.paths is not None:
        _draw_paths(sheet, card.paths)
    height = sheet.y + 11
    return _frame(card, height) + "".join(sheet.parts), height


def _frame(card: Card, height: float) -> str:
    band = ""
    if card.fragment:
        band = f'<path class="band" d="M6 .5H{WIDTH - 8:g}Q{WIDTH - 0.5:g} .5 {WIDTH - 0.5:g} 8V{_BAND:g}H6Z"/>'
    whole = "\n".join([f"{card.name} {card.subject}".strip(), *_whole_texts(card)])
    title = "\n".join(map(escaped, whole.split("\n")))
    return (
        f"<title>{title}</title>"
        f'<rect class="card" width="{WIDTH:g}" height="{height:.1f}" rx="8"/>{band}'
        f'<path class="kind {card.kind}" d="M6 0H8Q0 0 0 8V{height - 8:.1f}Q0 {height:.1f} 8 {height:.1f}H6Z"/>'
    )


def _whole_texts(card: Card) -> list[str]:
    """Return what may be cut in the card."""
    attributes = [f"{label}: {text}" if label else text for label, text in card.attributes]
    ran = [] if card.run is None else [*card.run.figures, *(f"decided: {each}" for each in card.run.decisions)]
    not_taken = () if card.paths is None else card.paths.not_taken
    return [*attributes, *ran, *(f"not taken: {each.description}" for each in not_taken)]


def _draw_head(sheet: _Sheet, card: Card) -> None:
    """Draw the operator's name, and what it works on behind it if there is room, else below it."""
    name = f'<tspan class="b" style="font-size:{_NAME:g}px">{escaped(card.name)}</tspan>'
    room = int((_FIGURES - LEFT - sans_width(card.name, _NAME) - 12) / (_BODY * MONO_ADVANCE))
    fits = cells(card.subject) <= room
    beside = f'<tspan class="m" dx="7">{escaped(card.subject)}</tspan>' if card.subject and fits else ""
    sheet.line(20, f'<text x="{LEFT:g}" y="$y">{name}{beside}</text>')
    if not fits:
        sheet.lines(wrapped(card.subject, _COLUMNS, 3), "m")
    cost = f"cost {counted(card.cost)}"
    traits = f"{shortened(card.traits, 38 - cells(cost))} · {cost}" if card.traits else cost
    sheet.line(14, _text(LEFT, traits, "quiet", 10))
    sheet.y += 3


def _draw_attribute(sheet: _Sheet, label: str, text: str) -> None:
    whole = f"{label}: {text}" if label else text
    for number, line in enumerate(wrapped(whole, _COLUMNS, _MOST_LINES)):
        if number == 0 and label and line.startswith(f"{label}:"):
            rest = line[len(label) + 1 :]
            markup = f'<tspan class="quiet">{escaped(label)}:</tspan>{escaped(rest)}'
            sheet.line(15, f'<text class="m" x="{LEFT:g}" y="$y">{markup}</text>')
        else:
            sheet.line(15, _text(LEFT + (10 if number and label else 0), line, "m"))


def _draw_rows(sheet: _Sheet, card: Card) -> None:
    """Draw the rows that came above those that were estimated; of a plan that did not run, the estimate alone."""
    run = card.run
    if run is None:
        sheet.line(20, _figure(f"≈ {counted(card.rows)}", card.rows))
        return
    sheet.line(20, _figure(counted(run.rows), run.rows))
    sheet.line(17, _pill(sheet.y, card) or _text(RIGHT, f"≈ {counted(card.rows)} estimated", "quiet e", 10.5))
    _draw_time(sheet, run)
    if run.read:
        sheet.line(14, _text(RIGHT, run.read, "quiet e", 10.5))


def _figure(number: str, rows: float) -> str:
    rows_text = "row" if rows == 1 else "rows"
    large = f'<tspan class="b" style="font-size:13.5px">{number}</tspan>'
    return f'<text class="e" x="{RIGHT:g}" y="$y">{large} {rows_text}</text>'


def _pill(top: float, card: Card) -> str:
    """Draw how wrong the estimate was; nothing where it was right enough."""
    error = card.row_error
    if error is None or error < FAIR_ERROR or card.run is None:
        return ""
    degree = "bad" if error >= BAD_ERROR else "fair"
    text = f"≈ {counted(card.rows)}, {counted(error)}× too {'high' if card.rows > card.run.rows else 'low'}"
    width = sans_width(text, 10) + 12
    return (
        f'<rect class="pill {degree}" x="{RIGHT + 4 - width:.1f}" y="{top + 1:.1f}" width="{width:.1f}" height="16" '
        f'rx="8"/><text class="{degree} b" text-anchor="middle" x="{RIGHT + 4 - width / 2:.1f}" y="$y" '
        f'style="font-size:10px">{escaped(text)}</text>'
    )


def _draw_time(sheet: _Sheet, run: Run) -> None:
    """Draw the operator's own time and its share of the whole, as figures and as a bar."""
    width = RIGHT - _FIGURES
    share = f"{run.share:.0%}" if run.share >= 0.005 else "< 1%"
    sheet.line(16, _text(RIGHT - 38, duration(run.seconds), "e", 10.5) + _text(RIGHT, share, "b e", 10.5))
    filled = max(width * run.share, 1.5)
    sheet.parts.append(
        f'<rect class="track" x="{_FIGURES:g}" y="{sheet.y + 2:.1f}" width="{width:g}" height="5" rx="2.5"/>'
        f'<rect class="bar{" hot" if run.is_slowest else ""}" x="{RIGHT - filled:.1f}" y="{sheet.y + 2:.1f}" '
        f'width="{filled:.1f}" height="5" rx="2.5"/>'
    )
    sheet.y += 10


def _draw_paths(sheet: _Sheet, paths: PathsWeighed) -> None:
    """List the cheapest alternatives below the cost of what was taken."""
    sheet.rule()
    cost = "cost of first rows" if paths.of_first_rows else "cost"
    sheet.line(15, _text(LEFT, "paths weighed", "quiet", 10) + _text(RIGHT - 44, cost, "quiet e", 10))
    sheet.line(15, _text(LEFT, "taken", "b") + _text(RIGHT - 44, counted(paths.taken), "b e"))
    for each in paths.not_taken[:MOST_NOT_TAKEN]:
        times = each.cost / paths.taken if paths.taken else 0.0
        figures = _text(RIGHT - 44, counted(each.cost), "e")
        figures += _text(RIGHT, f"{_times(times)}×" if times else "", "quiet e")
        first, *more = wrapped(each.description, 37, 3)
        sheet.line(15, _text(LEFT, first, "m quiet", 10.5) + figures)
        for line in more:
            sheet.line(14, _text(LEFT + 8, line, "m quiet", 10.5))
    left = len(paths.not_taken) - MOST_NOT_TAKEN
    if left > 0:
        sheet.line(14, _text(LEFT, f"and {left} more", "quiet", 10.5))


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else counted(ratio)
