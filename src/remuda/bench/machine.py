"""What a report says of the machine and of the versions, without a name of either."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import remuda
from remuda.dataclass import dataclass

NOT_INSTALLED = "not installed"
PACKAGES = {
    "DuckDB": "duckdb",
    "Polars": "polars",
    "LMDB": "lmdb",
    "chDB": "chdb",
    "Spark": "pyspark",
    "pyarrow": "pyarrow",
    "numpy": "numpy",
}
BUSY_LOAD = 0.5
"""Load by core, before the run, from which a report is marked."""


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    memory_gib: float
    system: str
    processor: str
    python: str
    load: float
    """Processes that wanted a core in the minute before the run."""

    @property
    def is_busy(self) -> bool:
        return self.load > BUSY_LOAD * self.cores


def describe() -> Machine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return Machine(_cores(), memory, f"{platform.system()} {platform.machine()}", _processor(), python, _load())


def versions() -> dict[str, str]:
    """Name each engine's version, or say that it is not installed."""
    import sqlite3

    return {
        "Remuda": remuda.__version__,
        "SQLite": sqlite3.sqlite_version,
        **{name: _version(package) for name, package in PACKAGES.items()},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> float:
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [
            line.partition(":")[2].strip() for line in information.read_text().splitlines() if "model name" in line
        ]
        return names[0] if names else platform.machine()
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
    return platform.machine()
