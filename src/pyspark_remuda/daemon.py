"""Spark's daemon of Python workers, for sessions whose workers are reached by Unix sockets.

Spark closes the connection of a worker that has had nothing to do for a minute. The worker takes the end of its input
for a failure and writes a report of it, which a TCP connection swallows; on a Unix socket the write fails, and each
idle worker prints the traceback of a BrokenPipeError on the console of the session. Here a worker begins a task only
where there is one, and ends without a word where Spark has closed the connection of a task that it cancelled. The
setting `spark.python.daemon.module` names this module: `python -m pyspark_remuda.daemon`.

The processes in which Spark plans reads and writes of data sources are forked by Spark's own daemon, whatever the
setting says: `quiet_forked_process` is for these.
"""

from __future__ import annotations

import sys
from functools import partial
from socket import MSG_PEEK
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

_CONNECTION_CLOSED = 1
"""An exit code other than 0: the daemon does not use the worker again, and ends it without a word."""


def run_or_end(run_task: Callable[[socket, bool], int], sock: socket, authenticated: bool) -> int:
    """Run the next task of a worker; end the worker where Spark closes its connection, before the task or in it."""
    if not sock.recv(1, MSG_PEEK):
        return _CONNECTION_CLOSED
    try:
        return run_task(sock, authenticated)
    except (BrokenPipeError, ConnectionResetError):  # what a task of its own meets is a failure that it reports
        return _CONNECTION_CLOSED


def quiet_forked_process() -> None:
    """Do the same in this process, if Spark's own daemon has forked it: before its next task it looks for one."""
    main: Any = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    run_task = getattr(main, "worker", None)
    if spec is not None and spec.name == "pyspark.daemon" and callable(run_task) and not isinstance(run_task, partial):
        main.worker = partial(run_or_end, run_task)


if __name__ == "__main__":
    from pyspark import daemon

    daemon.worker = partial(run_or_end, daemon.worker)
    daemon.manager()
