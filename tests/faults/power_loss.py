"""Crash images: what a power failure may leave of a folder, rebuilt from the calls that a run has recorded.

    LD_PRELOAD=shim.so python -m tests.faults.power_loss <folder> <durability> <threads> <images> <seed> [<first calls>]

A file has what was synced, and writes that were not. So has a folder: its names are durable when *it* is synced. A
power failure at any call leaves of what was not synced, by model,

    strict      nothing
    ordered     everything: what a killed process leaves
    reordered   some of the writes and names, each or not, in their order
    torn        some sectors of the writes, and some of the names
    zeros       the new lengths of files with zeros in them, and all names

Each image is opened by a process of its own. With `fsync` it holds all that was acknowledged before the call, with `os`
and `none` a state that the store had, and one not older than the last checkpoint or close. Prints a line of JSON for
each image that is wrong, and at last a summary. Of the first calls alone, those that make a store, there are as many
images as asked for, of the model that leaves the most different ones.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import struct
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.faults.driver import Run, difference, import_all, in_child, shim
from tests.faults.series import SAVING, SERIES, State, effects, open_store, state_of

Model = Literal["strict", "ordered", "reordered", "torn", "zeros"]
MODELS: tuple[Model, ...] = ("strict", "ordered", "reordered", "torn", "zeros")

OPEN, WRITE, SYNC, RENAME, TRUNCATE, MKDIR, UNLINK, LINK, RMDIR, NOTE = range(1, 11)
_HEAD = struct.Struct("<IQQIIIQ")
_SYNCED_WRITE = os.RWF_DSYNC
_SECTOR = 512
PUTS = 12
"""By each thread."""


@dataclass(frozen=True, slots=True)
class Call:
    kind: int
    inode: int
    offset: int
    flags: int
    path: str
    second: str
    data: bytes


def read_calls(log: Path) -> Iterator[Call]:
    raw, place = log.read_bytes(), 0
    while place < len(raw):
        kind, inode, offset, flags, first, second, size = _HEAD.unpack_from(raw, place)
        place += _HEAD.size
        path = raw[place : place + first].decode()
        other = raw[place + first : place + first + second].decode()
        place += first + second
        yield Call(kind, inode, offset, flags, path, other, raw[place : place + size])
        place += size


Write = tuple[int, bytes | None]
"""Bytes at an offset, or with None the cut to that length."""

Pending = tuple[int, bytes | None, bool]
"""The same, and whether it was synced by itself, which what was written before it was not."""


@dataclass(slots=True)
class File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Pending] = field(default_factory=list)

    def sync(self) -> None:
        for offset, data, _ in self.pending:
            _apply(self.durable, (offset, data))
        self.pending.clear()

    def image(self, model: Model, choose: random.Random) -> bytes:
        left = bytearray(self.durable)
        for offset, data, synced in self.pending:
            match model:
                case _ if synced:
                    _apply(left, (offset, data))
                case "strict":
                    continue
                case "zeros":
                    # Only a file that grows has sectors that were never written.
                    end = offset if data is None else offset + len(data)
                    left.extend(bytes(max(0, end - len(left))))
                case "torn" if data is not None:
                    for part in _sectors(offset, data):
                        if choose.random() < 0.5:
                            _apply(left, part)
                case "reordered" if choose.random() < 0.5:
                    continue
                case _:
                    _apply(left, (offset, data))
        return bytes(left)


def _apply(content: bytearray, write: Write) -> None:
    offset, data = write
    if data is None:
        del content[offset:]
    content.extend(bytes(max(0, offset - len(content))))
    if data is not None:
        content[offset : offset + len(data)] = data


def _sectors(offset: int, data: bytes) -> Iterator[Write]:
    start = 0
    while start < len(data):
        stop = min(len(data), ((offset + start) // _SECTOR + 1) * _SECTOR - offset)
        yield offset + start, data[start:stop]
        start = stop


Change = tuple[str | None, str | None, "File | Folder | None"]
"""A name that goes, a name that comes, and what it stands for: a rename is both at once."""


@dataclass(slots=True)
class Folder:
    present: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def change(self, gone: str | None, came: str | None, node: File | Folder | None) -> None:
        self.pending.append((gone, came, node))
        _rename(self.present, gone, came, node)

    def sync(self) -> None:
        self.durable = dict(self.present)
        self.pending.clear()

    def image(self, path: Path, model: Model, choose: random.Random) -> None:
        path.mkdir()
        names = dict(self.durable)
        for gone, came, node in self.pending:
            if model != "strict" and (model in {"ordered", "zeros"} or choose.random() < 0.5):
                _rename(names, gone, came, node)
        for name, found in names.items():
            if isinstance(found, Folder):
                found.image(path / name, model, choose)
            else:
                (path / name).write_bytes(found.image(model, choose))


def _rename(names: dict[str, File | Folder], gone: str | None, came: str | None, node: File | Folder | None) -> None:
    if gone is not None:
        names.pop(gone, None)
    if came is not None and node is not None:
        names[came] = node


class Disk:
    """The folder around the store, and what is below it, as the calls so far have left it."""

    def __init__(self, root: str) -> None:
        self._around = str(Path(root).parent)
        self.top = Folder()
        self._files: dict[int, File] = {}

    def apply(self, call: Call) -> None:
        match call.kind:
            case 1:
                self._open(call)
            case 2:
                synced = bool(call.flags & _SYNCED_WRITE)
                self._files[call.inode].pending.append((call.offset, call.data, synced))
            case 3:
                self._sync(call)
            case 4:
                folder, old = self._place(call.path)
                target, new = self._place(call.second)
                assert folder is target, "a store moves nothing to another folder"
                folder.change(old, new, folder.present[old])
            case 5:
                self._files[call.inode].pending.append((call.offset, None, False))
            case 6:
                folder, name = self._place(call.path)
                folder.change(None, name, Folder())
            case 7 | 9:
                folder, name = self._place(call.path)
                folder.change(name, None, None)
            case 8:
                source, old = self._place(call.path)
                folder, name = self._place(call.second)
                folder.change(None, name, source.present[old])

    def _open(self, call: Call) -> None:
        folder, name = self._place(call.path)
        found = folder.present.get(name)
        if found is None:
            found = self._files[call.inode] = File()
            folder.change(None, name, found)
        if call.flags & os.O_TRUNC and isinstance(found, File):
            found.pending.append((0, None, False))

    def _sync(self, call: Call) -> None:
        if call.path == self._around:
            self.top.sync()
            return
        found = self._find(call.path)
        if not isinstance(found, Folder):
            found = self._files[call.inode]
        found.sync()

    def _find(self, path: str) -> File | Folder | None:
        found: File | Folder | None = self.top
        for name in Path(path).relative_to(self._around).parts:
            if not isinstance(found, Folder):
                return None
            found = found.present.get(name)
        return found

    def _place(self, path: str) -> tuple[Folder, str]:
        folder = self._find(str(Path(path).parent))
        assert isinstance(folder, Folder), path
        return folder, Path(path).name


# What is written


def run_series(folder: str, durability: str, log: Path) -> list[str]:
    loaded = shim()
    loaded.faults_begin(folder.encode(), str(log).encode(), 0, 0, 0, 0)
    run = Run(folder, durability, lambda text: loaded.faults_note(text.encode()))
    run.series()
    loaded.faults_end()
    return run.problems + run.errors


def run_threads(folder: str, durability: str, threads: int, log: Path) -> list[str]:
    """Each thread puts the rows of its own, one after the other; there are checkpoints meanwhile."""
    loaded = shim()
    loaded.faults_begin(folder.encode(), str(log).encode(), 0, 0, 0, 0)
    grid = open_store(folder, durability)
    grid.sql("CREATE TABLE a (id BIGINT, v VARCHAR, n BIGINT, PRIMARY KEY (id))")
    loaded.faults_note(b"made")
    rows = grid.map("a")

    def write(thread: int) -> None:
        for number in range(PUTS):
            rows.set(thread * 1000 + number, (f"thread {thread}" * (1 + number % 7), number))
            loaded.faults_note(f"put {thread} {number}".encode())

    writers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for each in writers:
        each.start()
    while any(each.is_alive() for each in writers):
        before = rows.size()
        grid.checkpoint()
        loaded.faults_note(f"checkpoint {before}".encode())
        time.sleep(0.01)
    grid.close()
    loaded.faults_end()
    return []


# What may be found


def series_states(notes: list[str], durability: str) -> set[State]:
    """The states in which a crash after these notes may leave the store."""
    possible = [{State()}]
    """After each statement that was acknowledged."""
    least = 0
    flying: int | None = None
    for note in notes:
        word, _, place = note.partition(" ")
        if word == "begin":
            flying = int(place)
        elif word == "done":
            possible.append(effects(possible[-1], SERIES[int(place)]))
            flying = None
            if SERIES[int(place)].name in SAVING:
                least = len(possible) - 1
    if durability == "fsync":
        least = len(possible) - 1
    states = set().union(*possible[least:])
    return states if flying is None else states | effects(possible[-1], SERIES[flying])


def check_series(folder: str, states: set[State]) -> str | None:
    try:
        grid = open_store(folder, "os")
        grid.store.verify()
        found = state_of(grid)
        grid.close()
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        return f"the folder cannot be used: {''.join(traceback.format_exception(error))}"
    if found in states:
        return None
    return f"none of {len(states)} states: " + min((difference(state, found) for state in states), key=len)


def check_threads(folder: str, notes: list[str], durability: str) -> str | None:
    """Of each thread the first rows are there, up to some number; with `fsync` at least those acknowledged."""
    try:
        grid = open_store(folder, "os")
        grid.store.verify()
        made = bool(grid.store.catalog.maps)
        rows = {row[0]: row[1:] for row in grid.sql("SELECT id, v, n FROM a")} if made else {}
        grid.close()
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        return f"the folder cannot be used: {''.join(traceback.format_exception(error))}"
    if not made:
        return "the table is missing" if "made" in notes and durability == "fsync" else None
    acknowledged = Counter(note.split()[1] for note in notes if note.startswith("put"))
    for thread in sorted({key // 1000 for key in rows} | {int(each) for each in acknowledged}):
        found = [key % 1000 for key in sorted(rows) if key // 1000 == thread]
        if found != list(range(len(found))):
            return f"thread {thread} has {found}"
        if durability == "fsync" and len(found) < acknowledged[str(thread)]:
            return f"thread {thread} has {len(found)} of {acknowledged[str(thread)]} rows"
        for number in found:
            if tuple(rows[thread * 1000 + number]) != (f"thread {thread}" * (1 + number % 7), number):
                return f"thread {thread} has in {number}: {rows[thread * 1000 + number]}"
    saved = [int(note.split()[1]) for note in notes if note.startswith("checkpoint")]
    return f"{len(rows)} rows, {saved[-1]} at a checkpoint" if saved and len(rows) < saved[-1] else None


def main(folder: str, durability: str, threads: str, images: str, seed: str, first: str | None = None) -> None:
    logging.disable()
    choose = random.Random(int(seed))
    store, log, image = Path(folder, "store"), Path(folder, "log"), Path(folder, "image")
    many = int(threads) > 1
    import_all(str(store))
    if many:
        trouble = in_child(lambda: run_threads(str(store), durability, int(threads), log))
    else:
        trouble = in_child(lambda: run_series(str(store), durability, log))
    assert trouble == [], trouble
    calls = list(read_calls(log))
    points = [(point, model) for point in range(1, len(calls) + 1) for model in MODELS]
    if first is None:
        chosen = sorted(choose.sample(points, min(int(images), len(points))))
    else:
        chosen = sorted((choose.randrange(1, int(first) + 1), "reordered") for _ in range(int(images)))
    disk, notes, applied, wrong = Disk(str(store)), [], 0, 0
    for point, model in chosen:
        for call in calls[applied:point]:
            if call.kind == NOTE:
                notes.append(call.data.decode())
            else:
                disk.apply(call)
        applied = point
        shutil.rmtree(image, ignore_errors=True)
        disk.top.image(image, model, choose)
        answer = in_child(lambda: _check(str(image / "store"), list(notes), durability, many=many))
        if answer is not None:
            wrong += 1
            print(json.dumps({"call": point, "model": model, "notes": notes[-2:], "problem": answer}), flush=True)
    print(json.dumps({"calls": len(calls), "images": len(chosen), "wrong": wrong}))


def _check(folder: str, notes: list[str], durability: str, *, many: bool) -> Any:
    if many:
        return check_threads(folder, notes, durability)
    return check_series(folder, series_states(notes, durability))


if __name__ == "__main__":
    main(*sys.argv[1:])
