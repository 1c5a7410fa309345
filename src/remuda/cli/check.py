"""`remuda check PATH`: reads every file of a folder and says what is damaged."""

from __future__ import annotations

from pathlib import Path

import remuda
from remuda.errors import StorageError


def run_check(path: str) -> int:
    """Return 0 where every map is sound, else 1. The folder may be open for writing in another process."""
    if "://" not in path and not Path(path).is_dir():
        raise StorageError("there is no such folder", path)
    damaged = 0
    with remuda.open(path, read_only=True) as grid:
        for row in grid.sql("CHECK TABLE"):
            if row.status == "ok":
                print(f"{row.map}: ok")
                continue
            damaged += 1
            place = f", offset {row.position}" if row.position is not None else ""
            print(f"{row.map}: DAMAGED: {row.problem} ({row.file}{place})")
    print("every file is as it was written" if not damaged else f"{damaged} damaged: restore these files from a backup")
    return 1 if damaged else 0
