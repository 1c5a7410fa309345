"""Choose what each plot of a report shows, from the measurements of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench import plots, tables
from remuda.bench.case import REMUDA
from remuda.bench.peers import is_peer
from remuda.bench.run import GROWTH, START_UP
from remuda.bench.terminal import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remuda.bench.run import Measurement

NULLS = "nulls"
FASTER = "time of the peer ÷ time of Remuda (log scale): right of 1× Remuda is faster"
NULLS_COST = "time without NULLs ÷ time with NULLs (log scale): left of 1× NULLs cost time"


def pictures(measurements: Sequence[Measurement], titles: Mapping[str, str]) -> dict[str, str]:
    """Draw a plot for each group of `titles` and for NULLs, growth and start-up; those without a value are left out."""
    groups: dict[str, list[Measurement]] = {}
    for each in measurements:
        groups.setdefault(each.group, []).append(each)
    made = {group: _ratios(title, groups.get(group, [])) for group, title in titles.items()}
    made[NULLS] = _nulls([each for each in measurements if each.group != GROWTH])
    made[GROWTH] = _curves(groups.get(GROWTH, []))
    made[START_UP] = _times(groups.get(START_UP, []))
    return {name: picture for name, picture in made.items() if picture}


def _ratios(title: str, measured: Sequence[Measurement]) -> str:
    """Draw the peers' times divided by Remuda's."""
    rows = [
        plots.Row(
            label(each),
            {
                name: timing.minimum / tables.seconds(each, REMUDA)
                for name, timing in each.timings.items()
                if timing and is_peer(name)
            },
        )
        for each in measured
    ]
    shown = [row for row in rows if row.values]
    return plots.ratio_plot(title, FASTER, shown, lost="Remuda slower") if shown else ""


def _nulls(measured: Sequence[Measurement]) -> str:
    """Draw each contender's time without NULLs divided by its time with them."""
    plain = {(each.group, each.name): each for each in measured if not each.nulls}
    rows = [
        plots.Row(
            each.name,
            {
                name: tables.seconds(plain[each.group, each.name], name) / timing.minimum
                for name, timing in each.timings.items()
                if timing
            },
        )
        for each in measured
        if each.nulls and (each.group, each.name) in plain
    ]
    return plots.ratio_plot("What 1 to 2 % of NULLs cost", NULLS_COST, rows, lost="slower with NULLs") if rows else ""


def _curves(measured: Sequence[Measurement]) -> str:
    panels: dict[str, dict[str, dict[int, float]]] = {}
    for each in measured:
        for name, timing in each.timings.items():
            if timing:
                panels.setdefault(each.name, {}).setdefault(name, {})[each.rows] = timing.minimum
    shown = [plots.Panel(name, curves) for name, curves in panels.items()]
    return plots.growth_plot("Time by number of rows (both axes logarithmic)", shown) if shown else ""


def _times(measured: Sequence[Measurement]) -> str:
    rows = [
        plots.Row(label(each), {name: timing.minimum for name, timing in each.timings.items() if timing})
        for each in measured
    ]
    return plots.time_plot("Start-up", rows) if rows else ""
