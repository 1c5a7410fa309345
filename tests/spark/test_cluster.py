"""Real clusters on this machine: executors in processes of their own, under a local cluster and a standalone master."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from remuda.spark.driver.java import find_java, home_for_spark
from remuda.spark.driver.spark_session import linked_home

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKS = Path(__file__).with_name("cluster_checks.py")
SHORT = "load_query_and_data_source or one_version_though_an_executor_is_killed"
"""What is run without `slow`: each cluster is several Java processes, and starting them is most of the time."""
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(1800)]


def run_checks(master: str, executors: int, only: str = "") -> None:
    root = CHECKS.parents[2]
    environment = {
        **os.environ,
        "REMUDA_TEST_MASTER": master,
        "REMUDA_TEST_EXECUTORS": str(executors),
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
    }
    options = ("-x", "-q", "-p", "no:cacheprovider", "--timeout=900", "-k", only)
    command = [sys.executable, "-m", "pytest", *options, str(CHECKS)]
    answer = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout[-6_000:] + answer.stderr[-2_000:]


def test_local_cluster() -> None:
    run_checks("local-cluster[2,1,1024]", 2, SHORT)


@pytest.mark.slow
def test_local_cluster_that_loses_executors() -> None:
    run_checks("local-cluster[3,1,1024]", 3)


@contextmanager
def standalone(folder: Path, workers: int, cores: int) -> Iterator[str]:
    """A master and its workers, on ports of their own choice, with an executor for each core. Yields the address."""
    environment = {
        **os.environ,
        "JAVA_HOME": str(home_for_spark(find_java())),
        "SPARK_HOME": str(linked_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(linked_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with (folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    started = [start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")]
    try:
        address = _address(folder / "master.Master.log", started[0])
        for number in range(workers):
            work = ("--work-dir", str(folder / f"work{number}"), "--webui-port", "0")
            size = ("--cores", str(cores), "--memory", f"{512 * cores}m")
            started.append(start("worker.Worker", *size, *work, address))
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def _address(log: Path, master: subprocess.Popen[bytes]) -> str:
    for _ in range(600):
        found = re.search(r"spark://127\.0\.0\.1:[1-9]\d*", log.read_text(encoding="utf-8"))
        if found is not None:
            return found[0]
        assert master.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.2)
    raise AssertionError(log.read_text(encoding="utf-8"))


def test_standalone_master(tmp_path: Path) -> None:
    with standalone(tmp_path, workers=1, cores=2) as master:
        run_checks(master, 2, SHORT)


@pytest.mark.slow
def test_standalone_master_that_loses_executors(tmp_path: Path) -> None:
    with standalone(tmp_path, workers=3, cores=1) as master:
        run_checks(master, 3)
