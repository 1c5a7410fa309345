"""The tables of a report, in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.bench.case import REMUDA
from remuda.bench.machine import NOT_INSTALLED
from remuda.bench.peers import is_peer
from remuda.bench.terminal import label, ratio
from remuda.dataclass import dataclass
from remuda.presentation.durations import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.bench.import_time import ImportCost
    from remuda.bench.machine import Machine
    from remuda.bench.run import Measurement

ABSENT = "–"
"""The contender has no such case."""
COSTS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Comparison:
    """Remuda and the fastest peer of one case."""

    name: str
    ours: float
    peer: str
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def compared(measurement: Measurement) -> Comparison | None:
    """Compare with the fastest peer; None where no peer is installed that has the case."""
    peers = {name: timing.minimum for name, timing in measurement.timings.items() if timing and is_peer(name)}
    if not peers:
        return None
    peer = min(peers, key=lambda name: peers[name])
    return Comparison(label(measurement), seconds(measurement, REMUDA), peer, peers[peer])


def seconds(measurement: Measurement, contender: str) -> float:
    timing = measurement.timings[contender]
    assert timing is not None, "asked only for contenders that were measured"
    return timing.minimum


def losses_table(measurements: Iterable[Measurement]) -> str:
    """List the cases that a peer wins, the greatest loss first."""
    lost = [each for each in map(compared, measurements) if each is not None and each.ratio > 1]
    lost.sort(key=lambda each: -each.ratio)
    return _table(
        ("case", REMUDA, "fastest peer", "its time", "Remuda takes"),
        [(each.name, duration(each.ours), each.peer, duration(each.theirs), ratio(each.ratio)) for each in lost],
    )


def group_table(measurements: Sequence[Measurement]) -> str:
    """List the best times of one group, a column for each contender."""
    contenders = list(dict.fromkeys(name for each in measurements for name in each.timings))
    return _table(
        ("case", *contenders, "Remuda ÷ fastest peer"),
        [(label(each), *(_cell(each, name) for name in contenders), _verdict(each)) for each in measurements],
    )


def machine_table(machine: Machine, versions: dict[str, str], rows: int) -> str:
    """State the machine and the versions."""
    return _table(
        ("", ""),
        [
            ("rows", f"{rows:,}, unless a case says otherwise"),
            ("cores", f"{machine.cores}, {machine.processor}"),
            ("memory", f"{machine.memory_gib:.0f} GiB"),
            ("system", machine.system),
            ("Python", machine.python),
            ("versions", ", ".join(f"{name} {number}" for name, number in versions.items())),
        ],
    )


def import_table(costs: Sequence[ImportCost]) -> str:
    """List the dearest packages; the others in one line."""
    rest = costs[COSTS_SHOWN:]
    shown = [(cost.package, f"{cost.modules:,}", duration(cost.seconds)) for cost in costs[:COSTS_SHOWN]]
    if rest:
        others = (f"{len(rest)} others", f"{sum(c.modules for c in rest):,}", duration(sum(c.seconds for c in rest)))
        shown.append(others)
    total = ("in all", f"{sum(c.modules for c in costs):,}", duration(sum(c.seconds for c in costs)))
    return _table(("package", "modules", "time in its own modules"), [*shown, total])


def _cell(measurement: Measurement, contender: str) -> str:
    if contender not in measurement.timings:
        return ABSENT
    timing = measurement.timings[contender]
    return NOT_INSTALLED if timing is None else duration(timing.minimum)


def _verdict(measurement: Measurement) -> str:
    """Print the ratio to the fastest peer, in bold where Remuda loses."""
    comparison = compared(measurement)
    if comparison is None:
        return ABSENT
    text = f"{ratio(comparison.ratio)} {comparison.peer}"
    return f"**{text}**" if comparison.ratio > 1 else text


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], alignment: str = "---:") -> str:
    """Align all columns but the first; the site keeps what is on the right on one line, as numbers and their units.

    >>> print(_table(("a", "b"), [("1", "x|y")]))
    | a | b |
    | --- | ---: |
    | 1 | x\\|y |
    """
    lines = [heads, ["---", *(alignment for _ in heads[1:])], *([_escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
