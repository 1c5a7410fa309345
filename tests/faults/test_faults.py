"""Every system call that changes a file fails in turn, and power fails at every call: a sample here, all with `slow`.

Needs a C compiler; without one these tests are skipped, and pytest counts them as skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
MANY = 10**9

pytestmark = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="needs a C compiler, and LD_PRELOAD of Linux"
)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = [str(COMPILER), "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def _lines(shim: Path, module: str, *arguments: object) -> list[Any]:
    """What a process under the shim prints."""
    python_path = os.pathsep.join(["src", *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", f"tests.faults.{module}", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": python_path, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


FAULTS = [
    ("fsync", "EIO", "once"),
    ("fsync", "ENOSPC", "half"),
    ("fsync", "EIO", "on"),
    ("os", "ENOSPC", "on"),
    ("none", "EIO", "once"),
]
MORE_FAULTS = [
    ("fsync", "ENOSPC", "once"),
    ("fsync", "EIO", "half"),
    ("fsync", "ENOSPC", "on"),
    ("os", "EIO", "once"),
    ("os", "ENOSPC", "half"),
    ("none", "ENOSPC", "on"),
]


def _fail(shim: Path, folder: Path, durability: str, error: str, mode: str, most: int, command: str = "sample") -> None:
    answers = _lines(shim, "driver", command, folder / "store", durability, error, mode, most)
    assert len(answers) >= min(most, 400)
    assert [answer for answer in answers if answer["problems"]] == []


@pytest.mark.parametrize(("durability", "error", "mode"), FAULTS)
def test_some_calls_fail(shim: Path, tmp_path: Path, durability: str, error: str, mode: str) -> None:
    _fail(shim, tmp_path, durability, error, mode, 5)


@pytest.mark.parametrize(("durability", "error", "mode"), [("fsync", "EIO", "once"), ("os", "ENOSPC", "on")])
def test_some_calls_of_openings_fail(shim: Path, tmp_path: Path, durability: str, error: str, mode: str) -> None:
    """A store that is opened while its disk fails is whole again once the disk works."""
    _fail(shim, tmp_path, durability, error, mode, 10, "openings")


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize(("durability", "error", "mode"), FAULTS + MORE_FAULTS)
def test_each_call_fails_in_turn(shim: Path, tmp_path: Path, durability: str, error: str, mode: str) -> None:
    _fail(shim, tmp_path, durability, error, mode, MANY)


LEVELS = [("fsync", 1), ("os", 1), ("none", 1), ("fsync", 16), ("os", 16)]


def _lose_power(shim: Path, folder: Path, durability: str, threads: int, images: int, *first: int) -> None:
    *wrong, summary = _lines(shim, "power_loss", folder, durability, threads, images, 1, *first)
    assert wrong == []
    assert summary["images"] >= min(images, summary["calls"])


@pytest.mark.parametrize(("durability", "threads"), LEVELS)
def test_power_fails_at_some_calls(shim: Path, tmp_path: Path, durability: str, threads: int) -> None:
    _lose_power(shim, tmp_path, durability, threads, 25)


def test_power_fails_while_a_store_is_made(shim: Path, tmp_path: Path) -> None:
    _lose_power(shim, tmp_path, "fsync", 1, 80, 20)


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize(("durability", "threads"), LEVELS)
def test_power_fails_at_every_call(shim: Path, tmp_path: Path, durability: str, threads: int) -> None:
    _lose_power(shim, tmp_path, durability, threads, MANY)
