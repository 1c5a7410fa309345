"""What survives a close, who may write, and what is left behind."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from remuda.errors import StorageError
from remuda.storage import Durability, Store
from remuda.storage.folder import disposal
from remuda.storage.load import segment_cut
from tests.storage.crash_writer import statement_rows
from tests.storage.folders import abandon, filled, log_files, names_in_force, only_map
from tests.storage.maps import contents


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    store = filled(tmp_path)
    with pytest.raises(StorageError, match="by this process already"):
        Store.open(tmp_path)
    store.close()
    Store.open(tmp_path).close()


@pytest.mark.parametrize("durability", list(Durability))
def test_a_clean_close_keeps_everything(tmp_path: Path, durability: Durability) -> None:
    store = filled(tmp_path, durability)
    orders = only_map(store)
    for number in range(1, 30):
        orders.insert(statement_rows(number))
    orders.delete([10, 20])
    expected = contents(orders.snapshot())
    store.close()
    with pytest.raises(StorageError, match="closed"):
        orders.put([(1, "x", 1.0)])
    assert contents(orders.snapshot()) == expected
    again = Store.open(tmp_path, durability=durability)
    assert contents(only_map(again).snapshot()) == expected
    again.close()


def test_threads_share_the_sync_and_lose_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path, Durability.FSYNC)
    orders = only_map(store)

    def write(thread: int) -> None:
        for number in range(20):
            orders.put([(thread * 1000 + number, f"thread {thread}", 1.0)])

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.checkpoint()
    for thread in threads:
        thread.join()
    abandon(store)
    assert len(only_map(Store.open(tmp_path))) == 160


@pytest.mark.parametrize("group_bytes", [200, segment_cut.GROUP_BYTES], ids=["many groups", "one group"])
def test_checkpoints_leave_no_old_files_behind(
    tmp_path: Path, group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", group_bytes)
    store = filled(tmp_path)
    orders = only_map(store)
    for number in range(1, 60):
        orders.insert(statement_rows(number))
        orders.put(statement_rows(number // 2))
        store.checkpoint()
    assert len(log_files(tmp_path)) == 1
    assert {path.name.partition(".")[0] for path in tmp_path.glob("maps/*/*")} == names_in_force(store)
    assert len(orders.stored) <= 16 or group_bytes == 200
    store.drop_map(orders.definition)
    store.close()
    del orders
    Store.open(tmp_path).close()
    assert not list(tmp_path.glob("maps/*"))


def test_opening_after_a_clean_close_syncs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync waits for whatever else the disk has to write: opening would take as long as that."""
    store = filled(tmp_path, Durability.FSYNC)
    only_map(store).insert([(1, "a", 1.0)])
    store.close()
    manifest = (tmp_path / "MANIFEST").read_bytes()

    def refuse(descriptor: int) -> None:
        raise AssertionError("nothing has changed")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        patched.setattr(os, "fdatasync", refuse)
        store = Store.open(tmp_path)
        assert only_map(store).lookup(1, (1,)) == ("a",)
    store.close()
    assert (tmp_path / "MANIFEST").read_bytes() == manifest
    store = Store.open(tmp_path)
    only_map(store).insert([(2, "b", 2.0)])
    abandon(store)
    again = Store.open(tmp_path)
    assert (tmp_path / "MANIFEST").read_bytes() != manifest
    assert contents(only_map(again).snapshot()) == [(1, "a", 1.0), (2, "b", 2.0)]
    again.close()


def test_a_file_that_cannot_be_removed_fails_nothing_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    old = log_files(tmp_path)[0]

    def refuse(path: Path, *, levels: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(disposal, "remove_file", refuse)
        store.checkpoint()
        orders.insert(statement_rows(2))
        assert old.exists()
    store.checkpoint()
    assert not old.exists()
    expected = contents(orders.snapshot())
    store.close()
    assert contents(only_map(Store.open(tmp_path)).snapshot()) == expected


def test_a_store_that_was_refused_lets_go_of_the_folder(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    abandon(store)
    manifest = (tmp_path / "MANIFEST").read_bytes()
    (tmp_path / "MANIFEST").write_bytes(manifest[:-1])
    for _ in range(2):
        with pytest.raises(StorageError, match="the manifest is damaged"):
            Store.open(tmp_path)
    (tmp_path / "MANIFEST").write_bytes(manifest)
    Store.open(tmp_path).close()
