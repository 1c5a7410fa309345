"""A SPARK_HOME for clusters whose workers run on this machine.

Spark's workers keep a folder `work` in SPARK_HOME, with what every executor printed and was sent. The home of an
installed PySpark is the package itself: a cluster would write among its files, which may be read-only and are another
program's. So the home is a folder of links to what is in the package. It goes with the process; what a process that was
killed has left goes when the next one makes its own.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from remuda.errors import RemudaError
from remuda.storage.folder.process_folder import ProcessFolder, remove_abandoned

_PARTS = ("bin", "sbin", "jars", "python", "data", "examples", "licenses")


@cache
def linked_home() -> Path:
    """One for the whole process, however many sessions it starts one after the other."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise RemudaError('PySpark is not installed. Run: pip install "remuda[spark]"')
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
    """The folder that all homes of this user are in. The temporary folder is everyone's: another user who made one of
    this name could put other programs into our homes."""
    folder = Path(tempfile.gettempdir()) / f"remuda-spark-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise RemudaError(f"{folder} belongs to another user, or others may write to it: remove it, or set SPARK_HOME")
    return folder


def _remove(home: ProcessFolder) -> None:
    """A cluster that is still up is stopped first: it would start its executors anew, in the folder that is gone."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    home.release()
