"""What dead jobs have left in the inbox goes while the store is open, and nothing else does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from remuda.storage import Store
from remuda.storage.folder import inbox

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def left(folder: Path, name: str, age: float) -> Path:
    """A folder of the inbox in which the last file was written so long ago."""
    path = folder / "inbox" / name
    path.mkdir(parents=True)
    (path / "0123456789abcdef.arrow").write_bytes(b"rows")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_files_of_dead_jobs_go_while_the_store_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stayed for a day, and then until the store was opened again."""
    monkeypatch.setattr(inbox, "SWEEP_SECONDS", 0.0)
    store = Store.open(tmp_path)
    living = left(tmp_path, "load00000000000000aa", 1800.0)
    own = left(tmp_path, "own-query", 5 * 3600.0)
    dead = left(tmp_path, "load00000000000000cc", 5 * 3600.0)
    deadline = time.monotonic() + 30
    while dead.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not dead.exists()
    assert living.exists()
    assert own.exists(), "what the store that is open has its tasks write"
    store.close()
    Store.open(tmp_path).close()
    assert living.exists()
    assert not own.exists(), "its writer is gone"
