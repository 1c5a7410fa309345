"""`remuda demo`, without Spark: what it leaves on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from remuda.cli import demo
from remuda.grid.files.progress_bar import ProgressBar


def test_it_shows_every_step_and_every_query_with_its_path_and_time() -> None:
    text = "\n".join(map(_as_seen, _shown_by("demo", "--rows", "2000", "--no-spark").split("\n")))
    assert re.findall(r"^  (.+?) ·+ +[\d.]+ m?s$", text, re.MULTILINE) == [
        "Write 2,000 orders to a Parquet file",
        "Load them into a Remuda folder, with two indexes",
        "Open the folder again",
    ]
    paths = re.findall(r"^    → (\w+)\b.* [\d,]+ +[\d.]+ [mµ]?s$", text, re.MULTILINE)
    assert len(paths) == 11
    assert paths[:3] == ["key", "HASH", "SORTED"]


def test_a_bar_that_is_drawn_during_a_step_leaves_its_line_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        bar = ProgressBar("loading", 1000, terminal)
        demo._step("Load", bar.finish)
        monkeypatch.undo()
        terminal.flush()
        written = b""
        while not written.endswith(b"\n"):  # a terminal passes on what is written to it in pieces
            written += os.read(ours, 65_536)
    os.close(ours)
    line = _as_seen(written.decode().rstrip("\r\n"))
    assert re.fullmatch(r"  Load ·+ +[\d.]+ [mµ]?s", line)


def _shown_by(*arguments: str) -> str:
    """What the command writes where both its outputs are a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "remuda.cli", *arguments], stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    assert running.returncode == 0
    return written.decode()


def _read(terminal: int) -> bytes:
    """Nothing at the end, of which a terminal tells by an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def _as_seen(line: str) -> str:
    """What is left on the screen of a line over which others were written, or which was erased."""
    seen = ""
    for piece in line.rstrip("\r").split("\r"):
        kept = "" if piece.startswith("\033[K") else seen
        written = piece.removeprefix("\033[K")
        seen = written + kept[len(written) :]
    return seen.rstrip()
