"""Which packages a new process imports before its first answer, and what each costs (`-X importtime`)."""

from __future__ import annotations

from remuda.bench.cases.startup import SELECT_ONE, new_process
from remuda.dataclass import dataclass

RUNS = 3


@dataclass(frozen=True, slots=True)
class ImportCost:
    """Seconds in a package's own modules, without those that they import."""

    package: str
    modules: int
    seconds: float


def import_costs(contender: str) -> list[ImportCost]:
    """Measure a new process to SELECT 1, several times; return the run with the least sum, dearest package first."""
    runs = [_costs(SELECT_ONE[contender]) for _ in range(RUNS)]
    return min(runs, key=lambda run: sum(cost.seconds for cost in run))


def _costs(code: str) -> list[ImportCost]:
    return parse(new_process("-X", "importtime", "-c", code).stderr)


def parse(printed: str) -> list[ImportCost]:
    """Add up the lines of `-X importtime` by package.

    >>> parse(
    ...     "import time: self [us] | cumulative | imported package\\nimport time:  100 |  100 |   a.b\\n"
    ...     "import time:   50 |  150 | a\\nimport time:   10 |   10 | c"
    ... )
    [ImportCost(package='a', modules=2, seconds=0.00015), ImportCost(package='c', modules=1, seconds=1e-05)]
    """
    totals: dict[str, tuple[int, int]] = {}
    for line in printed.splitlines():
        fields = line.removeprefix("import time:").split("|")
        if not line.startswith("import time:") or not fields[0].strip().isdigit():
            continue
        package = fields[2].strip().partition(".")[0]
        modules, microseconds = totals.get(package, (0, 0))
        totals[package] = modules + 1, microseconds + int(fields[0])
    costs = [ImportCost(package, modules, spent / 1e6) for package, (modules, spent) in totals.items()]
    return sorted(costs, key=lambda cost: -cost.seconds)
