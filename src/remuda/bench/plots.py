"""The pictures of a report: ratios of times case by case, and times as rows grow. All axes of times are logarithmic."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from remuda.bench.svg import Picture, Style
from remuda.dataclass import dataclass
from remuda.presentation.durations import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

STYLES = {
    "Remuda": Style("vermilion", "circle"),
    "SQLite": Style("blue", "square"),
    "DuckDB": Style("orange", "triangle"),
    "DuckDB file": Style("orange", "triangle", hollow=True),
    "Polars": Style("sky", "diamond"),
    "LMDB": Style("green", "down"),
    "chDB": Style("purple", "square", hollow=True),
    "Spark": Style("grey", "circle", hollow=True),
    "Spark Parquet": Style("grey", "diamond", hollow=True),
}
REFERENCE = Style("grey", "bar")
"""What is no peer, such as an empty process."""

WIDTH, RIGHT, ROW = 880.0, 34.0, 24.0
LETTER = 6.6
"""Pixels of an average letter."""
LEGEND_STEP = 26.0
OFFSETS = (-4.0, 0.0, 4.0)
"""Pixels by which contenders are moved up and down in turn: equal values stay visible beside each other."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a dot plot: a name, and a value for each contender."""

    name: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a growth plot: for each contender its time by number of rows."""

    name: str
    curves: Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, slots=True)
class LogAxis:
    """Map values to positions so that equal ratios have equal distances."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float) -> LogAxis:
        """Make an axis of whole decades that holds all values."""
        known = list(values)
        low, high = math.floor(math.log10(min(known)) + 1e-9), math.ceil(math.log10(max(known)) - 1e-9)
        return cls(10.0**low, 10.0 ** max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def decades(self) -> list[float]:
        """Return the powers of ten on the axis.

        >>> LogAxis.around([0.02, 30], 0, 1).decades()
        [0.01, 0.1, 1.0, 10.0, 100.0]
        """
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def style_of(contender: str) -> Style:
    """Find the style of a contender by the longest name that it begins with."""
    names = [name for name in STYLES if contender.startswith(name)]
    return STYLES[max(names, key=len)] if names else REFERENCE


def ratio_plot(title: str, axis_title: str, rows: Sequence[Row], *, lost: str = "") -> str:
    """Draw one line of dots for each row on an axis of ratios; the side below 1 is shaded and labelled `lost`."""
    picture, axis, top = _frame(title, rows, extra=[0.5, 2.0])
    bottom = top + ROW * len(rows)
    picture.area(axis.start, top, axis.at(1.0) - axis.start, bottom - top, "shade")
    if lost:
        picture.text(axis.start + 4, top - 6, lost, kind="small")
    _draw_rows(picture, axis, rows, top, [_ratio_label(tick) for tick in axis.decades()], _ratio_label)
    picture.line(axis.at(1.0), top, axis.at(1.0), bottom, "axis")
    picture.text((axis.start + axis.end) / 2, bottom + 38, axis_title, anchor="middle", kind="muted")
    return picture.render()


def time_plot(title: str, rows: Sequence[Row]) -> str:
    """Draw one line of dots for each row on an axis of times."""
    picture, axis, top = _frame(title, rows)
    _draw_rows(picture, axis, rows, top, [_time_label(tick) for tick in axis.decades()], duration)
    middle = (axis.start + axis.end) / 2
    picture.text(middle, top + ROW * len(rows) + 38, "time (log scale): left is faster", anchor="middle", kind="muted")
    return picture.render()


def growth_plot(title: str, panels: Sequence[Panel], *, columns: int = 3) -> str:
    """Draw a panel for each case: rows to the right, time upwards, both logarithmic."""
    contenders = _contenders(panel.curves for panel in panels)
    width, height, head = 250.0, 190.0, 40.0 + _legend_height(contenders, columns * 280.0)
    picture = Picture(columns * 280.0 + 20, head + (height + 70) * math.ceil(len(panels) / columns), title)
    picture.text(16, 24, title, kind="head")
    _legend(picture, contenders, 44, columns * 280.0)
    for number, panel in enumerate(panels):
        down, across = divmod(number, columns)
        _draw_panel(picture, panel, 60 + across * 280.0, head + 24 + down * (height + 70), width, height)
    return picture.render()


def _frame(title: str, rows: Sequence[Row], extra: Sequence[float] = ()) -> tuple[Picture, LogAxis, float]:
    contenders = _contenders(row.values for row in rows)
    top = 60.0 + _legend_height(contenders, WIDTH)
    picture = Picture(WIDTH, top + ROW * len(rows) + 54, title)
    picture.text(16, 24, title, kind="head")
    _legend(picture, contenders, 44, WIDTH)
    values = [value for row in rows for value in row.values.values()]
    left = 24 + LETTER * max(len(row.name) for row in rows)
    return picture, LogAxis.around([*values, *extra], left, WIDTH - RIGHT), top


def _draw_rows(
    picture: Picture,
    axis: LogAxis,
    rows: Sequence[Row],
    top: float,
    labels: Sequence[str],
    print_value: Callable[[float], str],
) -> None:
    bottom = top + ROW * len(rows)
    offsets = dict(zip(_names(row.values for row in rows), itertools.cycle(OFFSETS), strict=False))
    for tick, label in zip(axis.decades(), labels, strict=True):
        picture.line(axis.at(tick), top, axis.at(tick), bottom)
        picture.text(axis.at(tick), bottom + 16, label, anchor="middle", kind="small")
    for number, row in enumerate(rows):
        y = top + ROW * (number + 0.5)
        picture.line(axis.start, y, axis.end, y)
        picture.text(axis.start - 10, y + 4, row.name, anchor="end")
        for contender, value in row.values.items():
            title = f"{row.name}, {contender}: {print_value(value)}"
            picture.mark(axis.at(value), y + offsets[contender], style_of(contender), title)


def _draw_panel(picture: Picture, panel: Panel, left: float, top: float, width: float, height: float) -> None:
    times = [time for curve in panel.curves.values() for time in curve.values()]
    sizes = sorted({size for curve in panel.curves.values() for size in curve})
    across = LogAxis(sizes[0], max(sizes[-1], sizes[0] * 10), left + 12, left + width - 50)
    upwards = LogAxis.around(times, top + height, top)
    picture.text(left, top - 8, panel.name)
    for tick in upwards.decades():
        picture.line(left, upwards.at(tick), left + width - 38, upwards.at(tick))
        picture.text(left - 6, upwards.at(tick) + 4, _time_label(tick), anchor="end", kind="small")
    for size in sizes:
        picture.line(across.at(size), top, across.at(size), top + height)
        picture.text(across.at(size), top + height + 16, _size_label(size), anchor="middle", kind="small")
    picture.text(left + (width - 38) / 2, top + height + 32, "rows", anchor="middle", kind="small")
    for contender, curve in panel.curves.items():
        points = [(across.at(size), upwards.at(time)) for size, time in sorted(curve.items())]
        picture.curve(points, style_of(contender))
        for (x, y), (size, time) in zip(points, sorted(curve.items()), strict=True):
            picture.mark(x, y, style_of(contender), f"{contender}, {size:,} rows: {duration(time)}")


def _names(groups: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for group in groups for name in group))


def _contenders(groups: Iterable[Iterable[str]]) -> list[str]:
    """Name the entries of the legend: contenders of one style share the first name that has it."""
    found: dict[Style, str] = {}
    for contender in _names(groups):
        style = style_of(contender)
        known = [name for name, each in STYLES.items() if each == style]
        found.setdefault(style, known[0] if known else contender)
    return list(found.values())


def _legend_height(contenders: Sequence[str], width: float) -> float:
    return LEGEND_STEP * len(_legend_lines(contenders, width))


def _legend(picture: Picture, contenders: Sequence[str], top: float, width: float) -> None:
    for number, line in enumerate(_legend_lines(contenders, width)):
        for x, contender in line:
            picture.mark(x, top + LEGEND_STEP * number, style_of(contender))
            picture.text(x + 10, top + 4 + LEGEND_STEP * number, contender)


def _legend_lines(contenders: Sequence[str], width: float) -> list[list[tuple[float, str]]]:
    """Place the entries one after the other, on as many lines as they need."""
    lines: list[list[tuple[float, str]]] = [[]]
    x = 22.0
    for contender in contenders:
        needed = 36 + LETTER * len(contender)
        if x + needed > width - 10 and lines[-1]:
            lines.append([])
            x = 22.0
        lines[-1].append((x, contender))
        x += needed
    return lines


def _time_label(seconds: float) -> str:
    """Write the label of a time.

    >>> _time_label(1e-6), _time_label(0.01), _time_label(10), _time_label(1e-7)
    ('1 µs', '10 ms', '10 s', '0.1 µs')
    """
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor > 0.999 or unit == "µs":
            return f"{seconds * factor:g} {unit}"
    raise AssertionError("microseconds are the last unit")


def _ratio_label(ratio: float) -> str:
    """Write the label of a ratio.

    >>> _ratio_label(0.1), _ratio_label(1), _ratio_label(1000), _ratio_label(2.345)
    ('0.1×', '1×', '1,000×', '2.3×')
    """
    return f"{float(f'{ratio:.2g}'):,.6g}×" if ratio < 1000 else f"{ratio:,.0f}×"


def _size_label(rows: int) -> str:
    """Write the label of a number of rows.

    >>> _size_label(20_000), _size_label(10_000_000), _size_label(1_500)
    ('20k', '10M', '1.5k')
    """
    return f"{rows / 1e6:g}M" if rows >= 1_000_000 else f"{rows / 1e3:g}k"
