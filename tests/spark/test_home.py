"""The folder of links that stands for SPARK_HOME: it goes with its process, or with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import remuda.spark
from remuda.errors import RemudaError
from remuda.spark.driver import spark_session as home

PROGRAM = """
import sys
from remuda.spark.driver.spark_session import linked_home
print(linked_home(), flush=True)
sys.stdin.read()
"""


def start(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    root = Path(remuda.spark.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_and_what_a_live_one_uses_stays(tmp_path: Path) -> None:
    killed, left = start(tmp_path)
    assert (left / "jars").exists()
    killed.kill()
    killed.communicate()
    assert left.is_dir()
    first, first_home = start(tmp_path)
    second, second_home = start(tmp_path)
    assert not left.exists()
    assert (first_home / "bin").is_dir()
    assert (second_home / "bin").is_dir()
    for process in (first, second):
        process.communicate()
    assert list(first_home.parent.iterdir()) == []


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"remuda-spark-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(RemudaError, match="others may write"):
        home._homes()
