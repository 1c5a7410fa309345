"""Statements from the command line, from files or from standard input: answers on standard output, errors aside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.cli.opening import open_target
from remuda.cli.shell import Shell
from remuda.dataclass import dataclass
from remuda.errors import RemudaError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.cli.opening import Target
    from remuda.cli.shell.options import Options

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """Text to run. `name` is that of the file, where it comes from one."""

    text: str
    name: str | None = None


def read_file(path: str) -> Input:
    """Read a script; `-` is standard input."""
    if path == STANDARD_INPUT:
        return Input(sys.stdin.read(), "<stdin>")
    try:
        return Input(Path(path).expanduser().read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise RemudaError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", sqlstate="58P01"
        ) from error


def run_inputs(target: Target, inputs: Sequence[Input], options: Options, *, keep_going: bool) -> int:
    """Run all inputs in one session, in order. Return 1 where a statement failed, which ends it unless `keep_going`."""
    status = 0
    with open_target(target) as grid:
        shell = Shell(grid, options=options, place=target.place)
        for each in inputs:
            if not shell.run(each.text, each.name, keep_going=keep_going):
                status = 1
                if not keep_going:
                    break
            if shell.finished:
                break
        shell.screen.redirect(None)
    return status


# `remuda check PATH`: reads every file of a folder and says what is damaged.


def run_check(path: str) -> int:
    """Return 0 where every map is sound, else 1. The folder may be open for writing in another process."""
    if "://" not in path and not Path(path).is_dir():
        raise StorageError("there is no such folder", path, sqlstate="58P01")
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
