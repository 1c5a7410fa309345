"""Runs what may end a process in a process of its own, with bounded memory and time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SECONDS = 120
"""Only what hangs takes so long, on a busy machine too."""

_BEFORE = """
import resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import remuda
from remuda.errors import RemudaError, SqlError
grid = remuda.open()
try:
{body}
except SqlError as error:
    assert len(error.message) < 1_000, len(error.message)
    print("refused", int(error.code), error.message)
except RemudaError as error:
    print("refused", error)
"""


def run_apart(body: str, memory: int = 4 << 30) -> str:
    """Run Python code with a `grid`; return what it printed, or the error of Remuda that ended it.

    A process that dies, that raises anything else or that does not end fails the test.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("limits the memory of a process as Linux does")
    code = _BEFORE.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))
    roots = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[2])]
    done = subprocess.run(
        [sys.executable, "-c", code, str(memory)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
        check=False,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2_000:]}"
    return done.stdout.strip()
