"""Pins of Spark executions: one state for all that name the same execution, kept until it is out of use."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remuda.errors import StorageError
from remuda.storage import Store
from remuda.storage.folder import execution_pin
from tests.storage.crash_writer import ROWS, statement_rows
from tests.storage.folders import filled, only_map
from tests.storage.maps import contents, table_of

ONE, OTHER = "1" * 32, "2" * 32


def read(path: Path, execution: str) -> Store:
    return Store.open(path, read_only=True, verifies=False, execution=execution)


def replace_all(store: Store, number: int) -> None:
    """Makes all files of the state before superfluous."""
    orders = only_map(store)
    orders.load(table_of(orders.definition, statement_rows(number)), "replace")
    store.checkpoint()


def make_old(path: Path, name: str) -> None:
    os.utime(path / "pins" / name / "state", (0, 0))


def test_readers_of_one_execution_read_one_state(tmp_path: Path) -> None:
    store = filled(tmp_path)
    orders = only_map(store)
    orders.insert(statement_rows(1))
    first = read(tmp_path, ONE)
    orders.insert(statement_rows(2))
    second, fresh = read(tmp_path, ONE), read(tmp_path, OTHER)
    assert contents(only_map(first).snapshot()) == contents(only_map(second).snapshot()) == statement_rows(1)
    assert len(only_map(fresh)) == 2 * ROWS
    for number in range(3, 6):
        replace_all(store, number)
        third = read(tmp_path, ONE)
        assert contents(only_map(third).snapshot()) == statement_rows(1)
        first.refresh()
        assert contents(only_map(first).snapshot()) == statement_rows(1)
    first.read_execution("3" * 32)
    assert contents(only_map(first).snapshot()) == statement_rows(5)
    first.read_execution(ONE)
    assert contents(only_map(first).snapshot()) == statement_rows(1)
    store.close()


def test_of_tasks_that_begin_at_once_one_pins(tmp_path: Path) -> None:
    store = filled(tmp_path)
    orders = only_map(store)
    with ThreadPoolExecutor(8) as pool:
        for execution in range(10):
            name = f"{execution:032x}"
            readers = [pool.submit(read, tmp_path, name) for _ in range(8)]
            orders.put([(1, "x", float(execution))])
            found = [each.result() for each in readers]
            assert len({str(contents(only_map(each).snapshot())) for each in found}) == 1
            for each in found:
                each.close()
    assert len(list((tmp_path / "pins").iterdir())) == 10
    store.close()


def test_a_pin_in_use_outlives_its_age_and_one_out_of_use_does_not(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    reader = read(tmp_path, ONE)
    assert reader.pin is not None
    make_old(tmp_path, ONE)
    replace_all(store, 2)
    replace_all(store, 3)
    other = read(tmp_path, ONE)
    assert contents(only_map(other).snapshot()) == statement_rows(1)
    other.close()
    reader.close()
    make_old(tmp_path, ONE)
    files = set(tmp_path.glob("maps/*/*"))
    replace_all(store, 4)
    assert not files & set(tmp_path.glob("maps/*/*"))
    assert [each.name for each in (tmp_path / "pins").iterdir()] == [f"{ONE}.ended"]
    with pytest.raises(StorageError, match="run the query again") as caught:
        read(tmp_path, ONE)
    assert caught.value.sqlstate == "40001"
    store.close()


def test_a_pin_that_ended_between_two_tasks_of_a_worker_is_noticed(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    reader = read(tmp_path, ONE)
    assert reader.pin is not None
    reader.pin.unlock()
    reader.pin.lock()
    reader.pin.unlock()
    make_old(tmp_path, ONE)
    replace_all(store, 2)
    replace_all(store, 3)
    with pytest.raises(StorageError, match="run the query again"):
        reader.pin.lock()
    store.close()


def test_the_lock_of_a_killed_task_is_gone_with_it(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    program = (
        "import sys, time; from pathlib import Path; from remuda.storage import Store;"
        f"store = Store.open(Path(sys.argv[1]), read_only=True, verifies=False, execution='{ONE}');"
        "print('ready', flush=True); time.sleep(600)"
    )
    task = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert task.stdout is not None
    assert task.stdout.readline() == "ready\n"
    make_old(tmp_path, ONE)
    replace_all(store, 2)
    assert (tmp_path / "pins" / ONE).is_dir()
    task.send_signal(signal.SIGKILL)
    task.wait()
    task.stdout.close()
    replace_all(store, 3)
    assert not (tmp_path / "pins" / ONE).exists()
    store.close()


def test_the_next_writer_keeps_what_a_pin_needs(tmp_path: Path) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))
    read(tmp_path, ONE).close()
    replace_all(store, 2)
    store.close()
    again = Store.open(tmp_path)
    replace_all(again, 3)
    assert contents(only_map(read(tmp_path, ONE)).snapshot()) == statement_rows(1)
    again.close()


def test_a_folder_that_cannot_be_pinned_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path)
    only_map(store).insert(statement_rows(1))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "link", refuse)
    reader = read(tmp_path, ONE)
    assert reader.pin is None
    assert contents(only_map(reader).snapshot()) == statement_rows(1)
    assert list((tmp_path / "pins").iterdir()) == []
    store.close()


@pytest.mark.parametrize(("call", "number"), [("link", errno.ENOSPC), ("link", errno.EIO), ("rename", errno.ENOSPC)])
def test_a_task_whose_pin_fails_for_now_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """It read the version that was planned, and a task for which there was room again a newer one: two in one query."""
    store = filled(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(StorageError, match=f"{os.strerror(number)}|no lease could be written"):
            read(tmp_path, ONE)
    assert read(tmp_path, ONE).pin is not None
    store.close()


def test_what_a_killed_task_left_of_a_pin_goes(tmp_path: Path) -> None:
    store = filled(tmp_path)
    left = tmp_path / "pins" / f"{'a' * 16}.fresh"
    left.mkdir(parents=True)
    (left / "state").write_text("1 1")
    stranger = tmp_path / "pins" / "notes"
    stranger.mkdir()
    replace_all(store, 1)
    assert left.exists()
    old = time.time() - execution_pin.ENDED_SECONDS - 10
    os.utime(left, (old, old))
    os.utime(stranger, (old, old))
    replace_all(store, 2)
    replace_all(store, 3)
    assert not left.exists()
    assert stranger.exists()
    store.close()
