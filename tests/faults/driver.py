"""Runs the series under the shim, once for each fault, each time in a process that is forked off for it.

    LD_PRELOAD=shim.so python -m tests.faults.driver sample <folder> <durability> <error> <once|on|half> <most>
    LD_PRELOAD=shim.so python -m tests.faults.driver openings <folder> <durability> <error> <once|on|half> <most>
    LD_PRELOAD=shim.so python -m tests.faults.driver these <folder> <durability> <error> <once|on|half> <call> ...

Lets so many calls fail, chosen at random but always the same: of all calls, or of those that open a store which is
there already; or these. Prints a line of JSON for each call: what is
wrong, or nothing. A second process, in which nothing fails, opens the folder that the first has left.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import logging
import os
import random
import shutil
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from remuda.errors import ErrorCode, RemudaError, StorageError
from tests.faults.series import CLOSE, SAVING, SERIES, State, Statement, effects, open_store, state_of

Outcome = list[tuple[str, int]]
"""How each statement ended: "done", "refused", "unknown", with its place in the series. "lost" is a close that has
failed without a write-ahead log: what was written since the last checkpoint may be gone."""


def shim() -> Any:
    loaded = ctypes.CDLL(None)
    loaded.faults_begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, *[ctypes.c_int] * 3]
    loaded.faults_note.argtypes = [ctypes.c_char_p]
    loaded.faults_end.restype = loaded.faults_count.restype = ctypes.c_long
    return loaded


class Run:
    """One run of the series; `problems` has what must not happen, whatever fails."""

    def __init__(self, folder: str, durability: str, note: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self.durability = durability
        self.note = note
        self.outcomes: Outcome = []
        self.problems: list[str] = []
        self.grid: Any = None
        self.errors: list[str] = []
        self.openings: list[int] = []
        """The calls that opened the store again."""

    def series(self) -> None:
        for place, statement in enumerate(SERIES):
            if self.grid is None and not (self._open() or self._open()):
                self.outcomes.append(("refused", place))
                continue
            self._run(place, statement)
        if self.grid is not None:
            self._lose_after(self._close(), len(SERIES) - 1)

    def _run(self, place: int, statement: Statement) -> None:
        self.note(f"begin {place}")
        outcome, error = self._attempt(statement.name, lambda: statement.run(self.grid))
        self.outcomes.append((outcome, place))
        self.note(f"{outcome} {place}")
        if statement is CLOSE:
            self.grid = None
            self._lose_after(outcome, place)
        elif outcome != "done":
            self._read_on(statement)
            if outcome == "unknown" or "opened anew" in str(error):
                self._lose_after(self._close(), place)

    def _lose_after(self, closing: str, place: int) -> None:
        if self.durability == "none" and closing != "done":
            self.outcomes.append(("lost", place))

    def _attempt(self, name: str, run: Callable[[], object]) -> tuple[str, BaseException | None]:
        try:
            run()
        except StorageError as error:
            self.errors.append(f"{name}: {error}")
            if error.path is None:
                self.problems.append(f"{name}: an error without a path: {error}")
            if error.sqlstate[:2] not in {"08", "40", "42", "53", "58", "XX"} or error.sqlstate == "XX000":
                self.problems.append(f"{name}: the SQLSTATE {error.sqlstate}: {error}")
            return ("unknown" if error.code is ErrorCode.OUTCOME_UNKNOWN else "refused"), error
        except RemudaError as error:
            # What an earlier statement that was refused should have made is missing.
            self.errors.append(f"{name}: {error}")
            return "refused", error
        except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
            self.problems.append(f"{name}: a foreign exception: {''.join(traceback.format_exception(error))}")
            return "unknown", error
        return "done", None

    def _read_on(self, statement: Statement) -> None:
        try:
            for definition in self.grid.store.catalog.maps.values():
                list(self.grid.sql(f"SELECT * FROM {definition.name}"))
        except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
            self.problems.append(f"{statement.name} has failed, and then reading: {error!r}")

    def _open(self) -> bool:
        def opening() -> None:
            self.grid = open_store(self.folder, self.durability)

        count = shim().faults_count
        before = count()
        outcome, _ = self._attempt("open", opening)
        if self.outcomes:
            self.openings += range(before + 1, count() + 1)
        return outcome == "done"

    def _close(self) -> str:
        outcome, _ = self._attempt("close", self.grid.close)
        self.grid = None
        return outcome

    def look_for_leaks(self) -> None:
        gc.collect()
        left = [found for found in map(_target, Path("/proc/self/fd").iterdir()) if found.startswith(self.folder)]
        if left:
            self.problems.append(f"descriptors are left: {left}")
        until = time.monotonic() + 5
        while names := [each.name for each in threading.enumerate() if each.name.startswith("remuda")]:
            if time.monotonic() > until:
                self.problems.append(f"threads are left: {names}")
                return
            time.sleep(0.01)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def possible_states(outcomes: Outcome) -> set[State]:
    states = {State()}
    since_saved = set(states)
    for outcome, place in outcomes:
        if outcome == "lost":
            states |= since_saved
            continue
        after = effects(states, SERIES[place])
        if outcome == "done":
            states = after
        elif outcome == "unknown":
            states |= after
        is_saved = outcome == "done" and SERIES[place].name in SAVING
        since_saved = set(states) if is_saved else since_saved | states
    return states


def check(folder: str, states: set[State]) -> str | None:
    """Opens the folder and compares; what is wrong, or None."""
    try:
        grid = open_store(folder, "fsync")
        grid.store.verify()
        found = state_of(grid)
        grid.sql("CREATE TABLE IF NOT EXISTS later (id BIGINT, v VARCHAR, n BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO later VALUES (1, 'later', 1)")
        grid.close()
        again = open_store(folder, "fsync")
        again_found = state_of(again).without("later")
        again.close()
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        return f"the folder cannot be used: {''.join(traceback.format_exception(error))}"
    if again_found != found:
        return f"it changes by being opened: {difference(found, again_found)}"
    if found in states:
        return None
    nearest = [difference(state, found) for state in states]
    return f"it is none of the {len(states)} possible states: " + min(nearest, key=len)


def difference(expected: State, found: State) -> str:
    lines = []
    for name in sorted({name for name, _ in expected.tables | found.tables}):
        left, right = dict(expected.tables).get(name), dict(found.tables).get(name)
        if left is None or right is None:
            lines.append(f"{name} is {'missing' if right is None else 'there'}")
        elif left != right:
            lines.append(
                f"{name} lacks {sorted(left.rows - right.rows)}, has {sorted(right.rows - left.rows)}, "
                f"indexes {sorted(left.indexes)} and {sorted(right.indexes)}"
            )
    if expected.views != found.views:
        lines.append(f"views {sorted(expected.views)} and {sorted(found.views)}")
    return "; ".join(lines)


def in_child(work: Callable[[], object]) -> Any:
    """Forks, does the work there, and gives what it returned, as JSON can hold it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
            answer = {"problems": ["".join(traceback.format_exception(error))], "outcomes": []}
        with os.fdopen(writing, "w") as file:
            json.dump(answer, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return {"problems": [f"the process died with status {status}"], "outcomes": []}
    return json.loads(text)


def import_all(folder: str) -> None:
    """Imports what the series needs, in this process: else every process that is forked off would do so again.

    Nothing of it is run here, as threads would not be there after a fork.
    """

    def modules() -> list[str]:
        Run(folder, "none").series()
        return list(sys.modules)

    for name in in_child(modules):
        with suppress(ImportError):
            import_module(name)
    shutil.rmtree(folder, ignore_errors=True)


def with_fault(folder: str, durability: str, number: int, mode: str, call: int) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)

    def faulty() -> dict[str, Any]:
        run, loaded = Run(folder, durability), shim()
        loaded.faults_begin(folder.encode(), b"", call, number, mode != "on", mode == "half")
        run.series()
        run.look_for_leaks()
        calls = loaded.faults_end()
        # The lock is free, in this process too.
        wrong = check_lock(folder)
        if wrong is not None:
            run.problems.append(wrong)
        return {
            "problems": run.problems,
            "outcomes": run.outcomes,
            "calls": calls,
            "openings": run.openings,
            "errors": run.errors,
        }

    answer: dict[str, Any] = in_child(faulty)
    states = possible_states([(outcome, place) for outcome, place in answer["outcomes"]])
    wrong = in_child(lambda: check(folder, states))
    if isinstance(wrong, dict):
        wrong = str(wrong)
    if wrong is not None:
        answer["problems"].append(wrong)
    return answer


def check_lock(folder: str) -> str | None:
    try:
        open_store(folder, "fsync").close()
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        return f"the folder cannot be opened again by the same process: {error!r}"
    return None


def main(command: str, folder: str, durability: str, error: str, mode: str, *given: str) -> None:
    logging.disable()
    import_all(folder)
    calls = [int(call) for call in given]
    if command != "these":
        made = with_fault(folder, durability, errno.EIO, "once", 0)
        possible = made["openings"] if command == "openings" else range(1, made["calls"] + 1)
        choose = random.Random(f"{durability} {error} {mode}")
        calls = sorted(choose.sample(possible, min(calls[0], len(possible))))
    for call in calls:
        answer = with_fault(folder, durability, getattr(errno, error), mode, call)
        ended = Counter(outcome for outcome, _ in answer["outcomes"])
        line = {"call": call, "problems": answer["problems"], "errors": answer.get("errors", [])[:5], **ended}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
