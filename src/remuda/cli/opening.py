"""What the paths after `remuda` mean: a folder of maps, or files whose rows become tables in memory."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.dataclass import dataclass
from remuda.errors import RemudaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.grid import Grid

IN_MEMORY = ":memory:"
_DATA = re.compile(r"\.(parquet|csv|json|jsonl|ndjson|arrow|feather)(\.(gz|zst|bz2|lz4|br))?$", re.IGNORECASE)
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Target:
    """What a shell works on: a folder, or memory with the tables that files are read into."""

    folder: str | None
    files: tuple[tuple[str, str], ...] = ()
    """The name of each table, and the path or the pattern of its files."""
    read_only: bool = False

    @property
    def place(self) -> str:
        return "in memory" if self.folder is None else self.folder


def find_target(paths: Sequence[str], *, read_only: bool = False, create: bool = False) -> Target:
    """Say what the paths mean; a folder that does not exist is created only if the user says so."""
    given = [path for path in paths if path != IN_MEMORY]
    files = [path for path in given if _DATA.search(path) and "://" not in path]
    folders = [path for path in given if path not in files]
    if len(folders) > 1:
        raise RemudaError(f"one folder is opened at a time, not {' and '.join(folders)}", sqlstate="22023")
    if files and folders:
        raise RemudaError(
            f"{files[0]} is read into memory, and {folders[0]} is a folder: open one of them", sqlstate="22023"
        )
    if not folders and read_only:
        raise RemudaError(
            "--read-only is said of a folder: files are read into memory and stay as they are", sqlstate="22023"
        )
    if not folders:
        return Target(None, _named(files))
    if "://" not in folders[0]:
        _check_folder(folders[0], read_only=read_only, create=create)
    return Target(folders[0], (), read_only)


def open_target(target: Target) -> Grid:
    """Open the folder, or load the files into tables in memory."""
    from remuda.grid import load_files

    grid = remuda.open(target.folder, read_only=target.read_only)
    try:
        for name, path in target.files:
            load_files(grid, name, _expand(path))
    except BaseException:
        grid.close()
        raise
    return grid


def _check_folder(folder: str, *, read_only: bool, create: bool) -> None:
    path = Path(folder).expanduser()
    if path.is_file():
        hint = "run it with: remuda -f " + folder if path.suffix == ".sql" else "data files are " + _KINDS
        raise RemudaError(f"{folder} is a file and not a folder of maps: {hint}", sqlstate="22023")
    if (path / "MANIFEST").exists() or create:
        return
    if read_only:
        raise RemudaError(f"{folder} has no maps: --read-only needs a folder that has some", sqlstate="58P01")
    problem = f"{folder} is a folder without maps" if path.is_dir() else f"{folder} does not exist"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RemudaError(f"{problem}. Add --create to create it, or check the path", sqlstate="58P01")
    print(f"{problem}. Create maps there? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
        raise RemudaError("nothing was created", sqlstate="57014")


_KINDS = ".parquet, .csv, .json, .arrow and .feather"


def _named(files: Sequence[str]) -> tuple[tuple[str, str], ...]:
    named: dict[str, str] = {}
    for path in files:
        if not _expand(path):
            raise RemudaError(
                f"no file matches {path}" if _PATTERN.search(path) else f"there is no such file: {path}",
                sqlstate="58P01",
            )
        base = name = table_name(path)
        number = 1
        while name in named:
            number += 1
            name = f"{base}_{number}"
        named[name] = path
    return tuple(named.items())


def _expand(path: str) -> list[Path]:
    """Return the files that a path means, which may be a pattern; a file may have its characters in its name."""
    import glob

    whole = Path(path).expanduser()
    if whole.exists():
        return [whole]
    return [Path(each) for each in sorted(glob.glob(str(whole), recursive=True))]  # noqa: PTH207  (may be absolute)


def table_name(path: str) -> str:
    """Return the name of the table that a file is read into.

    >>> table_name("data/orders.parquet"), table_name("2024 sales.csv.gz"), table_name("logs/part-*.json")
    ('orders', 't_2024_sales', 'part')
    >>> table_name("logs/*.json"), table_name("*.csv")
    ('logs', 'data')
    """
    *folders, last = Path(path).parts
    stem = _DATA.sub("", last)
    for part in (stem, *reversed(folders)):
        word = re.sub(r"\W+", "_", re.sub(r"[*?]|\[[^]]*\]", "", part)).strip("_").casefold()
        if word:
            return word if word.isidentifier() else f"t_{word}"
    return "data"
