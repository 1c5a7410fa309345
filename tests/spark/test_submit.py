"""Applications that `spark-submit` starts, with Remuda as a file that it brings along."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import remuda
from remuda.spark.driver.java import find_java, home_for_spark
from remuda.spark.driver.spark_session import linked_home

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
APPLICATION = Path(__file__).with_name("submitted_application.py")


@pytest.mark.parametrize(
    "master", ["local[2]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.slow)], ids=["local", "cluster"]
)
def test_an_application_brings_remuda_along(tmp_path: Path, master: str) -> None:
    """The dependencies are installed where tasks run, Remuda is not: driver and workers import it from the archive."""
    archive = shutil.make_archive(str(tmp_path / "remuda"), "zip", Path(remuda.__file__).parents[1])
    submit = [str(linked_home() / "bin" / "spark-submit"), "--master", master, "--py-files", archive]
    ended = subprocess.run(
        [*submit, str(APPLICATION), str(tmp_path / "shop.remuda")],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "JAVA_HOME": str(home_for_spark(find_java())),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(linked_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    assert all("remuda.zip" in path for path in [found["driver"], *found["workers"]]), found
    assert found["counts"] == [10_000, 5_000, 10_010]
    assert found["customers"] == [0, 1, 2, 3, 4]
