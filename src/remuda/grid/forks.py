"""What becomes of open grids in a process that is forked off.

The child has their memory and their open files, but not their threads: a query that needs one would wait for ever, and
two processes would write one log. So a grid answers only in the process that opened it; the child is told to open its
own. It also lets go of the folder's lock, which would otherwise outlive the parent in it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from remuda.grid.grid import Grid

REASON = "the grid was opened by another process, from which this one was forked: open one here"

_open: WeakSet[Grid] = WeakSet()


def leave_at_fork(grid: Grid) -> None:
    """From now on a fork leaves this grid to the process that has it now."""
    _open.add(grid)


def _leave_all() -> None:
    for grid in list(_open):
        grid.leave(REASON)
    _open.clear()


os.register_at_fork(after_in_child=_leave_all)
