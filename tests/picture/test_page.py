"""The examples of docs/explain.md run as they are written, and leave the files that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness.page import read_page


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", read_page("explain.md"), re.DOTALL)
    exec(block, names)
    names["grid"].close()
    assert capsys.readouterr().out.startswith("Root")
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    assert (tmp_path / "plan.html").read_text().startswith("<!doctype html>")
