"""Who syncs and who waits: nobody is left behind, and nobody is told that a record is durable before it is."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from pathlib import Path

import pytest

from remuda.errors import StorageError
from remuda.storage import Durability, group_commit
from remuda.storage.write_ahead_file import read_log
from remuda.storage.write_ahead_log import LEAST_ROOM, WriteAheadLog

THREADS = 8
HANGS = 60
"""Seconds after which nobody will come any more."""


class _Disk:
    """`os.fdatasync` that goes on only when it is told to; every sync still happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.turns = threading.Semaphore(0)
        self.error: BaseException | None = None
        self._sync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._wait_and_sync)

    def _wait_and_sync(self, descriptor: int) -> None:
        self.begun.release()
        self.turns.acquire()
        error, self.error = self.error, None
        if error is not None:
            raise error
        self._sync(descriptor)


class _Writer(threading.Thread):
    """Appends one record and waits until it is durable."""

    def __init__(self, log: WriteAheadLog) -> None:
        super().__init__()
        self.log = log
        self.sequence = log.append(b"record")
        self.outcome: object = None
        self.start()

    def run(self) -> None:
        try:
            self.log.wait(self.sequence)
            self.outcome = self.log.durable_sequence >= self.sequence
        except (StorageError, KeyboardInterrupt) as error:
            self.outcome = type(error)


def _log(folder: Path) -> WriteAheadLog:
    return WriteAheadLog(folder, 1, 0, Durability.FSYNC, None)


def _until_waiting(log: WriteAheadLog, count: int) -> None:
    group = log._group
    while len(group._present) + len(group._following) < count:
        pass


def test_those_who_come_during_a_sync_share_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, disk = _log(tmp_path), _Disk(monkeypatch)
    first = _Writer(log)
    disk.begun.acquire()
    others = [_Writer(log) for _ in range(THREADS)]
    _until_waiting(log, THREADS)
    disk.turns.release()
    first.join()
    assert first.outcome is True
    disk.begun.acquire()
    assert all(each.is_alive() for each in others)
    disk.turns.release()
    for each in others:
        each.join()
    assert [each.outcome for each in others] == [True] * THREADS
    assert not disk.begun.acquire(blocking=False)
    disk.turns.release()
    log.close()


def test_a_failed_sync_is_told_to_all_who_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, disk = _log(tmp_path), _Disk(monkeypatch)
    first = _Writer(log)
    disk.begun.acquire()
    others = [_Writer(log) for _ in range(THREADS)]
    _until_waiting(log, THREADS)
    disk.error = OSError(5, "Input/output error")
    disk.turns.release()
    for each in (first, *others):
        each.join()
        assert each.outcome is StorageError
    log.close()
    assert [file.payloads for file in read_log(tmp_path, 1, (0, 0))] == [[]]


def test_an_interrupted_leader_leaves_its_records_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, disk = _log(tmp_path), _Disk(monkeypatch)
    first = _Writer(log)
    disk.begun.acquire()
    others = [_Writer(log) for _ in range(THREADS)]
    _until_waiting(log, THREADS)
    disk.error = KeyboardInterrupt()
    disk.turns.release(1 + THREADS)
    for each in (first, *others):
        each.join()
    assert first.outcome is KeyboardInterrupt
    assert [each.outcome for each in others] == [True] * THREADS
    assert log.durable_sequence == 1 + THREADS
    log.close()
    assert [len(file.payloads) for file in read_log(tmp_path, 1, (0, 0))] == [1 + THREADS]


def test_an_interrupted_waiter_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, disk = _log(tmp_path), _Disk(monkeypatch)
    first = _Writer(log)
    disk.begun.acquire()
    mine = log.append(b"mine")
    others: list[_Writer] = []

    def interrupt() -> None:
        _until_waiting(log, 1)
        others.extend(_Writer(log) for _ in range(THREADS))
        _until_waiting(log, 1 + THREADS)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        log.wait(mine)
    helper.join()
    disk.turns.release(1 + THREADS)
    for each in (first, *others):
        each.join()
        assert each.outcome is True
    log.wait(mine)
    log.close()


@pytest.mark.parametrize("slow_sync", [0.0, 1000.0])
def test_nobody_is_left_behind_when_files_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow_sync: float
) -> None:
    """A rotation flushes too, between the leaders' flushes, whoever calls the next one."""
    monkeypatch.setattr(group_commit, "SLOW_SYNC", slow_sync)
    log = _log(tmp_path)
    records = 60

    def write() -> None:
        for _ in range(records):
            sequence = log.append(b"record")
            log.wait(sequence)
            assert log.durable_sequence >= sequence

    writers = [threading.Thread(target=write, daemon=True) for _ in range(THREADS)]
    for each in writers:
        each.start()
    while any(each.is_alive() for each in writers) and log.number < 1000:
        log.rotate()
    for each in writers:
        each.join(HANGS)
        assert not each.is_alive()
    log.close()
    assert sum(len(file.payloads) for file in read_log(tmp_path, 1, (0, 0))) == THREADS * records


def test_the_next_leader_is_found_among_those_whom_a_rotation_has_moved() -> None:
    """Between a slow sync and the calling of the next leader, which the last who is woken does, a file is rotated."""
    group = group_commit.GroupCommit(threading.Lock(), 0, lambda: None)
    waiter = group_commit._Waiter()
    group._led = True
    group._following.append(waiter)
    group.begin(1)
    group._wake(deque([None]))
    assert waiter.called
    assert waiter.group is None


def test_room_is_made_ahead_and_gone_after_a_clean_end(tmp_path: Path) -> None:
    log = _log(tmp_path)
    for _ in range(3):
        log.wait(log.append(b"x" * LEAST_ROOM))
    path = tmp_path / "00000001.log"
    (file,) = read_log(tmp_path, 1, (0, 0))
    assert path.stat().st_size >= file.length + LEAST_ROOM
    log.rotate()
    assert path.stat().st_size == file.length
    log.wait(log.append(b"y"))
    log.close()
    assert [len(file.payloads) for file in read_log(tmp_path, 1, (0, 0))] == [3, 1]
    assert [(tmp_path / f"0000000{file.number}.log").stat().st_size for file in read_log(tmp_path, 1, (0, 0))] == [
        file.length for file in read_log(tmp_path, 1, (0, 0))
    ]
