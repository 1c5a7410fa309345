"""Who syncs and who waits: nobody is left behind, and nobody is told that a record is durable before it is."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from remuda.errors import OutcomeUnknownError, StorageError
from remuda.storage import Durability
from remuda.storage.wal import group_commit
from remuda.storage.wal.log import LEAST_ROOM, WriteAheadLog
from remuda.storage.wal.log_file import read_log

THREADS = 8
HANGS = 60
"""Seconds after which nobody will come any more."""


class _Disk:
    """`os.pwritev` that goes on only when it is told to; every write, and its sync, still happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.turns = threading.Semaphore(0)
        self.error: BaseException | None = None
        self._write = os.pwritev
        monkeypatch.setattr(os, "pwritev", self._wait_and_write)

    def _wait_and_write(self, descriptor: int, buffers: Any, place: int, flags: int) -> int:
        assert flags == os.RWF_DSYNC
        self.begun.release()
        self.turns.acquire()
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self._write(descriptor, buffers, place, flags)


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
    """Until so many wait for a flush that others lead."""
    group = log._group
    while True:
        with group._lock:
            present, following = group._present, group._following
            waiting = 0 if present is None else present.waiting + (not present.begun)
            if following is not None:
                waiting += 1 + following.waiting
        if waiting >= count:
            return


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
    # What was written may be on disk; the records behind it were not written.
    assert first.outcome is OutcomeUnknownError
    assert {each.outcome for each in others} == {StorageError}
    log.close()
    assert [file.records for file in read_log(tmp_path, 1, (1, 0))] == [[]]


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
    assert [len(file.records) for file in read_log(tmp_path, 1, (1, 0))] == [1 + THREADS]


def test_an_interrupted_waiter_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, disk = _log(tmp_path), _Disk(monkeypatch)
    # A run in the background may have been started with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
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
    try:
        with pytest.raises(KeyboardInterrupt):
            log.wait(mine)
    finally:
        signal.signal(signal.SIGINT, before)
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
    assert sum(len(file.records) for file in read_log(tmp_path, 1, (1, 0))) == THREADS * records


def test_those_whose_leader_was_interrupted_lead_themselves() -> None:
    """The leader of the next turn goes before it is called; who waits behind it is let in, and leads."""
    flushed: list[int] = []
    group: group_commit.GroupCommit

    def flush() -> None:
        with lock:
            group.begin(2)
        flushed.append(2)
        group.durable = 2

    lock = threading.Lock()
    group = group_commit.GroupCommit(lock, 0, flush)
    led, abandoned = (group_commit._CommitGroup(called=called) for called in (True, False))
    led.begun = abandoned.abandoned = True
    group.taken, group._present, group._following = 1, led, abandoned

    def follow() -> None:
        while group.durable < 2:
            group.wait(2)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    while not abandoned.waiting:
        pass
    with lock:
        group._call_next()
    follower.join(HANGS)
    assert flushed == [2]
    assert group._present is None


@pytest.mark.parametrize("alone", [True, False])
def test_a_writer_interrupted_before_it_comes_to_wait_leaves_nobody_behind(alone: bool) -> None:
    """It is on the list already, as the leader of the present or of the next turn, when the interrupt is noticed."""

    class InterruptingLock:
        """Is left with an interrupt once, by the thread that is to be interrupted."""

        armed = False

        def __init__(self) -> None:
            self._lock = threading.Lock()

        def __enter__(self) -> None:
            self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()
            if self.armed and threading.current_thread() is threading.main_thread():
                self.armed = False
                raise KeyboardInterrupt

    flushed: list[int] = []

    def flush() -> None:
        with lock:
            group.begin(2)
        flushed.append(2)
        group.durable = 2

    lock = InterruptingLock()
    group = group_commit.GroupCommit(lock, 0, flush)  # type: ignore[arg-type]
    led = group_commit._CommitGroup(called=True)
    if not alone:
        led.begun = True
        group.taken, group._present = 1, led
    lock.armed = True
    with pytest.raises(KeyboardInterrupt):
        group.wait(2)
    assert flushed == ([2] if alone else [])
    if not alone:
        with lock:
            group._call_next()
        group.wait(2)
        assert flushed == [2]
    assert group._present is None
    assert group._following is None


def test_a_writer_alone_syncs_once_for_each_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, disk = _log(tmp_path), _Disk(monkeypatch)
    disk.turns.release(3)
    for number in range(1, 4):
        log.wait(log.append(b"record"))
        assert log.durable_sequence == number
    assert [disk.begun.acquire(blocking=False) for _ in range(4)] == [True, True, True, False]
    log.close()


def test_closing_syncs_what_was_written_without_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A synced write makes itself durable, not what was written before it."""
    log = WriteAheadLog(tmp_path, 1, 0, Durability.OS, None)
    log.wait(log.append(b"first"))
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    log.append(b"second")
    log.close()
    assert len(synced) == 1
    assert log.synced[1] == (tmp_path / "00000001.log").stat().st_size


def test_room_is_made_ahead_and_gone_after_a_clean_end(tmp_path: Path) -> None:
    log = _log(tmp_path)
    for _ in range(3):
        log.wait(log.append(b"x" * LEAST_ROOM))
    path = tmp_path / "00000001.log"
    (file,) = read_log(tmp_path, 1, (1, 0))
    assert path.stat().st_size >= file.length + LEAST_ROOM
    log.rotate()
    assert path.stat().st_size == file.length
    log.wait(log.append(b"y"))
    log.close()
    assert [len(file.records) for file in read_log(tmp_path, 1, (1, 0))] == [3, 1]
    assert [(tmp_path / f"0000000{file.number}.log").stat().st_size for file in read_log(tmp_path, 1, (1, 0))] == [
        file.length for file in read_log(tmp_path, 1, (1, 0))
    ]


def test_a_file_system_without_synced_writes_is_synced_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwritev
    synced: list[int] = []

    def refuse(descriptor: int, buffers: Any, place: int, flags: int = 0) -> int:
        if flags:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return write(descriptor, buffers, place)

    monkeypatch.setattr(os, "pwritev", refuse)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    log = _log(tmp_path)
    log.wait(log.append(b"record"))
    assert len(synced) == 1
    log.close()
    assert [file.records for file in read_log(tmp_path, 1, (1, 0))] == [[(1, b"record")]]
