"""Starts a Spark session that is configured for short jobs with Python tasks.

A session made elsewhere works too; this one is faster and quieter, and finds its Java.
"""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.errors import RemudaError
from remuda.spark.driver.java import find_java, home_for_spark
from remuda.storage.folder.process_folder import ProcessFolder, remove_abandoned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# A SPARK_HOME for clusters whose workers run on this machine.
#
# Spark's workers keep a folder `work` in SPARK_HOME, with what every executor printed and was sent. The home of an
# installed PySpark is the package itself: a cluster would write among its files, which may be read-only and are
# another program's. So the home is a folder of links to what is in the package. It goes with the process; what a
# process that was killed has left goes when the next one makes its own.


_PARTS = ("bin", "sbin", "jars", "python", "data", "examples", "licenses")


@cache
def linked_home() -> Path:
    """Return the one linked home of the process, however many sessions it starts one after the other."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise RemudaError("PySpark is not installed. Run: pip install 'remudadb[spark]'", sqlstate="0A000")
    package = Path(found.origin).parent
    parent = _homes()
    remove_abandoned(parent)
    home = ProcessFolder(parent)
    atexit.register(_remove, home)
    for part in _PARTS:
        if (package / part).exists():
            (home.path / part).symlink_to(package / part)
    return home.path


def _homes() -> Path:
    """Return the folder of all homes of this user.

    The temporary folder is everyone's: another user who made one of this name could put other programs into our homes.
    """
    folder = Path(tempfile.gettempdir()) / f"remuda-spark-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise RemudaError(
            f"{folder} belongs to another user, or others may write to it: remove it, or set SPARK_HOME",
            sqlstate="42501",
        )
    return folder


def _remove(home: ProcessFolder) -> None:
    """Remove the home and stop a running cluster first, which would start executors in the removed folder."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    home.release()


_CONFIGURATION = {
    "spark.api.mode": "classic",  # Spark Connect has no way to run a job on chosen slots
    "spark.python.unix.domain.socket.enabled": "true",  # a two-task Python job: 16 ms instead of 60
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",  # the default of 10,000 makes loading 1.4x slower
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_QUIET_DAEMON = {"spark.python.daemon.module": "pyspark_remuda.daemon"}
"""On Unix sockets Spark's own one prints a traceback for each worker that idles; of a local master on our console."""

_CLUSTER_HERE = "local-cluster["
"""A master of its own with workers on this machine, each executor a process: Spark's way to try a cluster out."""
_LOOPBACK = ("spark://127.0.0.1:", "spark://localhost:")

_LOGGING_FOLDER = Path(__file__).parent / "conf"
_LARGEST_DRIVER_MEMORY = 8 << 30


def session(
    master: str = "local[*]", app_name: str = "remuda", config: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a Spark session on `master`; `config` adds to Remuda's settings and wins over them.

    Spark allows one master in a process. Where a session is running already, it is returned just as it is: with another
    master, or without a setting that `config` asks for, it is refused.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise RemudaError("PySpark is not installed. Run: pip install 'remudadb[spark]'", sqlstate="0A000") from error
    running = running_session()
    if running is not None:
        _refuse_other(running, master, config or {})
        make_importable(running.sparkContext)
        return running
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**_CONFIGURATION, **_local_configuration(master), **(config or {})}.items():
        builder = builder.config(key, value)
    with _environment(_variables(master)):
        try:
            started = builder.getOrCreate()
        except PySparkException as error:
            raise RemudaError(f"Spark did not start on {master}: {error}", sqlstate="08001") from error
    make_importable(started.sparkContext)
    return started


def running_session() -> SparkSession | None:
    """Return the session of this thread, else the one that the process began with."""
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    try:
        return SparkSession.active()
    except PySparkException:  # a context without a session: Spark makes one for it
        return None


def _refuse_other(running: SparkSession, master: str, config: Mapping[str, str]) -> None:
    """Raise where the session that runs is not the one that is asked for: its settings are its owner's."""
    present = running.sparkContext.master
    if present != master:
        raise RemudaError(
            f"a Spark session on {present} is running in this process: stop it before starting one on {master}",
            sqlstate="55006",
        )
    for name, value in config.items():
        found = running.conf.get(name, None)
        if found != str(value):
            raise RemudaError(
                f"a Spark session is running in this process, in which {name} is {found}, not {value}: set it there, "
                "or stop the session first",
                sqlstate="55006",
            )


def make_importable(context: SparkContext) -> None:
    """Lets Python workers import this very `remuda`, also when it is not installed but only on the path.

    PySpark hands `context.environment` to every worker it starts. A package in site-packages needs no help, and
    putting site-packages on PYTHONPATH would place it before the standard library.
    """
    if path := _with_this_package(context.environment.get("PYTHONPATH", "")):
        context.environment["PYTHONPATH"] = path


def _with_this_package(python_path: str) -> str:
    """Return a PYTHONPATH by which `remuda` is found, where it is not in site-packages."""
    root = str(Path(__file__).parents[3])
    present = [path for path in python_path.split(os.pathsep) if path]
    if root in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *present}:
        return python_path
    return os.pathsep.join([root, *present])


def _local_configuration(master: str) -> dict[str, str]:
    """Return settings for a local master: the driver is the only executor, and Spark's default of 1 GB is too small."""
    if not master.startswith("local") or master.startswith(_CLUSTER_HERE):
        return {}
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = f"{min(machine // 4, _LARGEST_DRIVER_MEMORY) >> 20}m"
    return {"spark.driver.memory": memory, **(_QUIET_DAEMON if _chooses_python() else {})}


def _chooses_python() -> bool:
    """Tell whether Spark's workers will run this Python and find this package; `spark-submit` may choose another."""
    from pyspark import SparkContext

    if "PYSPARK_GATEWAY_PORT" in os.environ or os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return False
    java = SparkContext._gateway
    path = None if java is None else java.jvm.java.lang.System.getenv("PYTHONPATH") or ""
    return path is None or _with_this_package(path) == path


def _variables(master: str) -> dict[str, str]:
    """Return the environment that Spark reads at its start; the user's variables stay, but for a Java too old."""
    variables = {"JAVA_HOME": str(home_for_spark(find_java()))}
    if path := _with_this_package(os.environ.get("PYTHONPATH", "")):
        variables["PYTHONPATH"] = path
    if "PYSPARK_PYTHON" not in os.environ:
        variables["PYSPARK_PYTHON"] = sys.executable  # else workers run `python3`, without this environment's packages
    if "SPARK_CONF_DIR" not in os.environ and "SPARK_HOME" not in os.environ and _LOGGING_FOLDER.is_dir():
        variables["SPARK_CONF_DIR"] = str(_LOGGING_FOLDER)
    if master.startswith(_CLUSTER_HERE) and "SPARK_HOME" not in os.environ:
        variables["SPARK_HOME"] = str(linked_home())
    if master.startswith(("local", *_LOOPBACK)) and "SPARK_LOCAL_IP" not in os.environ:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables for the time in which Spark starts; the Java process and its children keep them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
