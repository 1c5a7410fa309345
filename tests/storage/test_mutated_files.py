"""Whatever bytes a store's files have, there is the right answer or our error: the process never dies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.storage.mutate_files import make


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "store"
    make(path)
    return path


def outcomes(template: Path, scratch: Path, first: int, count: int, verified: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.storage.mutate_files", str(template), str(scratch), str(first), str(count)]
    ran = subprocess.run([*command, verified], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"the process died: {lines[-1:]}\n{ran.stderr[-2000:]}"
    found = [line for line in lines if "what" in line]
    assert len(found) == count
    return found


def check(found: list[dict[str, Any]]) -> None:
    assert [each for each in found if "foreign" in each or each.get("wrong")] == []


@pytest.mark.parametrize("verified", ["first", "later", "fetched"])
def test_some_mutated_files(template: Path, tmp_path: Path, verified: str) -> None:
    check(outcomes(template, tmp_path, 0, 60, verified))


@pytest.mark.slow
@pytest.mark.parametrize("verified", ["first", "later", "fetched"])
@pytest.mark.parametrize("first", range(1_000, 11_000, 1_000))
def test_many_mutated_files(template: Path, tmp_path: Path, first: int, verified: str) -> None:
    check(outcomes(template, tmp_path, first, 500, verified))
