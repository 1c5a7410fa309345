"""`remuda bench`: the benchmarks live beside the source, not in the installed package; this finds and runs them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_benchmarks(arguments: Sequence[str]) -> int:
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "__main__.py").is_file():
        raise RemudaError("the benchmarks are part of the source, not of the installed package: run this in a checkout")
    if importlib.util.find_spec("duckdb") is None:
        raise RemudaError('the benchmarks need the peers. Run: pip install -e ".[spark,dev]"')
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=checkout, check=False).returncode
