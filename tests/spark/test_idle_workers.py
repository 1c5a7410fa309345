"""Workers that Spark ends because they have nothing to do say nothing on the console of the session."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda
from pyspark_remuda.daemon import run_or_end
from tests.spark.test_forgotten import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(remuda.__file__).parents[1]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def end_idle_worker(module: str, secret: bool) -> str:
    """Do as Spark's JVM does: start the daemon, take a worker, close its connection. Return what was printed."""
    with tempfile.TemporaryDirectory(prefix="remuda-idle-") as folder:
        sockets = {"PYTHON_UNIX_DOMAIN_ENABLED": str(not secret).lower(), "PYTHON_WORKER_FACTORY_SOCK_DIR": folder}
        settings = {"SPARK_REUSE_WORKER": "1", "PYTHON_WORKER_FACTORY_SECRET": "word", "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [sys.executable, "-m", module, "pyspark.worker"],
            env={**os.environ, **sockets, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            (number,) = struct.unpack("!i", process.stdout.read(4))
            with connected(number if secret else process.stdout.read(number)) as connection:
                if secret:
                    connection.sendall(struct.pack("!i4s", 4, b"word"))
                (worker,) = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))
                if secret:
                    assert connection.recv(6, socket.MSG_WAITALL) == b"\0\0\0\2ok"
            wait_until(lambda: not is_running(worker))
            process.stdin.close()
            return process.stderr.read().decode()


def connected(address: int | bytes) -> socket.socket:
    """Connect with the port, or the Unix socket, that a daemon listens on."""
    if isinstance(address, int):
        return socket.create_connection(("127.0.0.1", address))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


@pytest.mark.parametrize("secret", [False, True])
def test_a_worker_whose_connection_is_closed_says_nothing(secret: bool) -> None:
    """By a Unix socket, and by TCP, where a worker first asks for a secret."""
    pytest.importorskip("pyspark")
    assert end_idle_worker("pyspark_remuda.daemon", secret) == ""


@pytest.mark.parametrize("failure", [BrokenPipeError, ConnectionResetError])
def test_a_worker_whose_task_was_cancelled_says_nothing(failure: type[OSError]) -> None:
    """Spark closes the connection of a task that it cancels; the daemon printed what the worker met when it flushed."""

    def run_task(_: socket.socket, _authenticated: bool) -> int:
        raise failure

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"a task")
        assert run_or_end(run_task, ours, True) != 0


def test_a_local_session_has_the_quiet_daemon(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.python.daemon.module") == "pyspark_remuda.daemon"


IDLE = """
import sys, time, remuda, remuda.spark
from pathlib import Path
from tests.spark.test_idle_workers import is_running
with remuda.open("shop.remuda") as grid:
    grid.load("t", {"id": [1, 2]}, key="id")
def worker(_):
    import os
    return os.getpid()
for session in range(2):
    spark = remuda.spark.session("local[1]")
    print(spark.conf.get("spark.python.daemon.module"))
    (process,) = spark.sparkContext.parallelize([1], 1).map(worker).collect()
    while sys.argv[1] == "idles" and is_running(process):
        time.sleep(0.5)
    print(spark.sparkContext.parallelize([1], 1).map(worker).count())
    print(spark.read.format("remuda").options(path=str(Path("shop.remuda").absolute()), map="t").load().count())
    if session:
        time.sleep(float(sys.argv[1] == "idles") * 70)  # as long as Spark keeps the processes that plan reads
    else:
        spark.stop()
"""


@pytest.mark.parametrize("idles", ["goes on", pytest.param("idles", marks=pytest.mark.slow)])
def test_a_session_prints_nothing_for_its_idle_workers(tmp_path: Path, idles: str) -> None:
    """It printed a traceback of BrokenPipeError for each, a minute after the last job or at the end. The second session
    runs in the Java of the first."""
    pytest.importorskip("pyspark")
    answer = subprocess.run(
        [sys.executable, "-c", IDLE, idles],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert answer.stdout.split() == ["pyspark_remuda.daemon", "1", "2"] * 2, answer.stderr[-2_000:]
    assert answer.stderr == ""
