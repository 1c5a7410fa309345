"""Every statement of the series is interrupted: it has its effect as a whole or not at all, and the store goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LEVELS = ("fsync", "os", "none")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("durability", "seed"),
    [
        *((level, seed) for seed, level in enumerate(LEVELS)),
        *(pytest.param(level, seed, marks=pytest.mark.slow) for level in LEVELS for seed in range(100, 140)),
    ],
)
def test_interrupted_statements(tmp_path: Path, durability: str, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.interrupts", str(tmp_path), durability, str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    statements = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each for each in statements if each["problems"]] == []
    assert sum(bool(each["place"]) for each in statements) > 15
