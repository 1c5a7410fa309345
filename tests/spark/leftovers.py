"""What jobs leave in a store's folder."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from remuda.grid import Grid


def left_behind(grid: Grid) -> list[Path]:
    """Files of shuffle blocks and answers; a job that was cancelled removes its own when it has ended."""
    assert grid.store.path is not None
    folder = grid.store.path / "inbox"
    for _ in range(1_200):
        found = list(folder.rglob("*"))
        if not found:
            break
        time.sleep(0.05)
    return found
