"""Spark's daemon of Python workers, for sessions whose workers are reached by Unix sockets.

Spark closes the connection of a worker that has had nothing to do for a minute. The worker takes the end of its input
for a failure and writes a report of it, which a TCP connection swallows; on a Unix socket the write fails, and each
idle worker prints the traceback of a BrokenPipeError on the console of the session. Here a worker begins a task only
where there is one. The setting `spark.python.daemon.module` names this module: `python -m pyspark_remuda.daemon`.
"""

from __future__ import annotations

from socket import MSG_PEEK
from typing import TYPE_CHECKING

from pyspark import daemon

if TYPE_CHECKING:
    from socket import socket

_CONNECTION_CLOSED = 1
"""An exit code other than 0: the daemon does not use the worker again, and ends it without a word."""

_run_task = daemon.worker


def worker(sock: socket, authenticated: bool) -> int:
    """Run the next task of a worker; end the worker where Spark has closed its connection instead."""
    if not sock.recv(1, MSG_PEEK):
        return _CONNECTION_CLOSED
    return _run_task(sock, authenticated)


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
