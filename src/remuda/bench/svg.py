"""Write SVG: shapes and texts with classes, whose colours follow the reader's light or dark theme.

An own writer of a hundred lines keeps the package free of a plotting library. The picture has a background of its own,
so that it can be read on a page whose theme the picture does not know.
"""

from __future__ import annotations

from dataclasses import field
from xml.sax.saxutils import escape, quoteattr

from remuda.dataclass import dataclass

MARK = 4.5
"""Half the width of a mark."""

COLOURS = {
    # After Okabe and Ito: readers with any kind of colour blindness can tell them apart. (light theme, dark theme)
    "vermilion": ("#c44e00", "#ff8a3d"),
    "blue": ("#0072b2", "#5ab4f0"),
    "orange": ("#d08a00", "#f0b73d"),
    "sky": ("#2f9fd8", "#8fd3ff"),
    "green": ("#00845f", "#33c79b"),
    "purple": ("#b0588c", "#e3a3c9"),
    "grey": ("#6b6b6b", "#a8a8a8"),
}


@dataclass(frozen=True, slots=True)
class Style:
    """Colour and shape of a series: either alone tells it from the others."""

    colour: str
    shape: str
    hollow: bool = False


@dataclass(slots=True)
class Picture:
    """Collect the elements of one SVG document."""

    width: float
    height: float
    title: str
    _elements: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", kind: str = "text") -> None:
        self._elements.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> None:
        self._elements.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def area(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        self._elements.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}"/>'
        )

    def curve(self, points: list[tuple[float, float]], style: Style) -> None:
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(f'<polyline class="curve {style.colour}-line" points="{joined}"/>')

    def mark(self, x: float, y: float, style: Style, label: str = "") -> None:
        """Draw a mark; its label appears when a pointer rests on it."""
        kind = f"{style.colour}-{'hollow' if style.hollow else 'full'}"
        title = f"<title>{escape(label)}</title>" if label else ""
        self._elements.append(f'<path class="{kind}" d="{_outline(style.shape, x, y)}">{title}</path>')

    def render(self) -> str:
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(self.title)}>\n'
            f"<title>{escape(self.title)}</title>\n<style>{_style_sheet()}</style>\n"
            f'<rect class="paper" width="100%" height="100%" rx="6"/>\n' + "\n".join(self._elements) + "\n</svg>\n"
        )


def _outline(shape: str, x: float, y: float) -> str:
    size = MARK
    match shape:
        case "square":
            points = [(-size, -size), (size, -size), (size, size), (-size, size)]
        case "triangle":
            points = [(0, -size * 1.2), (size * 1.15, size), (-size * 1.15, size)]
        case "down":
            points = [(0, size * 1.2), (size * 1.15, -size), (-size * 1.15, -size)]
        case "diamond":
            points = [(0, -size * 1.3), (size * 1.3, 0), (0, size * 1.3), (-size * 1.3, 0)]
        case "bar":
            points = [(-1.5, -size * 1.4), (1.5, -size * 1.4), (1.5, size * 1.4), (-1.5, size * 1.4)]
        case _:
            start = f"M{x - size:.1f},{y:.1f}"
            return f"{start} a{size},{size} 0 1,0 {2 * size},0 a{size},{size} 0 1,0 {-2 * size},0 Z"
    return "M" + " L".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points) + " Z"


def _style_sheet() -> str:
    light = _theme(0, paper="#ffffff", ink="#1f2328", muted="#59636e", grid="#d9dee3", shade="#f3e6df")
    dark = _theme(1, paper="#0d1117", ink="#e6edf3", muted="#9aa4af", grid="#30363d", shade="#2b1d16")
    fonts = (
        "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif}text.head{font-weight:600;font-size:14px}"
        "text.small{font-size:11px}.grid{stroke-width:1}.axis{stroke-width:1.5}.curve{fill:none;stroke-width:2}"
    )
    return f"{fonts}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _theme(which: int, *, paper: str, ink: str, muted: str, grid: str, shade: str) -> str:
    series = "".join(
        f".{name}-full{{fill:{colour};stroke:{paper};stroke-width:1}}.{name}-line{{stroke:{colour}}}"
        f".{name}-hollow{{fill:{paper};stroke:{colour};stroke-width:2}}"
        for name, pair in COLOURS.items()
        for colour in (pair[which],)
    )
    return (
        f".paper{{fill:{paper}}}text{{fill:{ink}}}text.muted,text.small{{fill:{muted}}}"
        f".grid{{stroke:{grid}}}.axis{{stroke:{muted}}}.shade{{fill:{shade}}}{series}"
    )
