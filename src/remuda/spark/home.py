"""A SPARK_HOME for clusters whose workers run on this machine.

Spark's workers keep a folder `work` in SPARK_HOME, with what every executor printed and was sent. The home of an
installed PySpark is the package itself: a cluster would write among its files, which may be read-only and are another
program's. So the home is a folder of links to what is in the package, made for the process and removed with it.
"""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from remuda.errors import RemudaError

_PARTS = ("bin", "sbin", "jars", "python", "data", "examples", "licenses")


@cache
def linked_home() -> Path:
    """One for the whole process, however many sessions it starts one after the other."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise RemudaError('PySpark is not installed. Run: pip install "remuda[spark]"')
    package = Path(found.origin).parent
    home = Path(tempfile.mkdtemp(prefix="remuda-spark-"))
    atexit.register(_remove, home)
    for part in _PARTS:
        if (package / part).exists():
            (home / part).symlink_to(package / part)
    return home


def _remove(home: Path) -> None:
    """A cluster that is still up is stopped first: it would start its executors anew, in the folder that is gone."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    rmtree(home, ignore_errors=True)
