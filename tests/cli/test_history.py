"""The history: whole statements, kept from others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from remuda.cli.shell.history import MOST_ENTRIES, History


def test_entries_of_several_lines_come_back(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = History(path)
    entries = ["SELECT 1,\n\n  2;", "\\d t", "SELECT '+x\n+y'\n;", "SELECT 'é 馬';"]
    for entry in entries:
        history.add(entry)
        history.add(f"{entry}  ")
    history.add("  ")
    assert History(path).entries == entries
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_shells_share_a_file(tmp_path: Path) -> None:
    first, second = History(tmp_path / "history"), History(tmp_path / "history")
    first.add("SELECT 1;")
    second.add("SELECT 2;")
    first.add("SELECT 3;")
    assert History(tmp_path / "history").entries == ["SELECT 1;", "SELECT 2;", "SELECT 3;"]


def test_a_history_that_others_can_read_is_taken_from_them(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("SELECT 1;\n\\d\n")
    path.chmod(0o644)
    assert History(path).entries == ["SELECT 1;", "\\d"], "lines of earlier versions"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("+SELECT 1;\n\n")
    (tmp_path / "history").symlink_to(target)
    history = History(tmp_path / "history")
    assert history.entries == []
    history.add("SELECT 2;")
    assert history.entries == ["SELECT 2;"]
    assert target.read_text() == "+SELECT 1;\n\n"


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    history = History(tmp_path / "no" / "such" / "folder")
    history.add("SELECT 1;")
    assert history.entries == ["SELECT 1;"]
    (tmp_path / "a folder").mkdir()
    History(tmp_path / "a folder").add("SELECT 1;")


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"+SELECT {number};\n\n" for number in range(2 * MOST_ENTRIES + 1)))
    assert History(path).entries[-1] == f"SELECT {2 * MOST_ENTRIES};"
    assert path.read_text().count("+") == MOST_ENTRIES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["history"]  # noqa: PTH208


def test_the_environment_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMUDA_HISTORY", str(tmp_path / "mine"))
    History().add("SELECT 1;")
    assert (tmp_path / "mine").exists()
    monkeypatch.setenv("REMUDA_HISTORY", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert History().path == tmp_path / ".remuda_history"
