"""What other processes of this machine take, as Linux tells it in `/proc`."""

from __future__ import annotations

import os
from pathlib import Path


def own_memory(process: int) -> int:
    """Return the bytes that a process has in memory beside those of files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def processor_seconds(process: int, of_ended: bool = False) -> float:
    """Return the seconds that a process has worked, and, if asked, its children that have ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if of_ended else 13])) / os.sysconf("SC_CLK_TCK")


def worked_below() -> float:
    """Return the seconds that this process and all processes below it have worked, by ticks of a hundredth."""
    process = os.getpid()
    return sum(processor_seconds(each, of_ended=True) for each in (process, *descendants(process)))


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        parents.setdefault(parent, []).append(int(path.name))
    found: list[int] = []
    pending = [process]
    while pending:
        children = parents.get(pending.pop(), [])
        found += children
        pending += children
    return found


def command(process: int) -> bytes:
    """Return the name of the program that a process runs."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0].rpartition(b"/")[2]
    except OSError:
        return b""
