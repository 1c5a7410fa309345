"""Runs the series and interrupts each statement, as Ctrl-C does, behind a call of the storage that is chosen at random.

    python -m tests.faults.interrupts <folder> <durability> <seed>

Prints a line of JSON for each statement: where it was interrupted, and what is wrong. An interrupted statement has its
effect or none, in memory and in a copy of the folder, which is what a kill in that moment leaves. The store goes on, or
refuses writes until it is opened again. A statement that had no effect is then run once more.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remuda.errors import RemudaError
from tests.faults.driver import difference
from tests.faults.series import CLOSE, SERIES, State, Statement, effects, open_store, state_of

if TYPE_CHECKING:
    from types import FrameType

MANIFEST_CALLS = 30
"""Calls from the writing of a manifest to the removal of what it does not name."""
_WATCHED = str(Path("remuda", "storage"))


class Interrupts:
    """Counts the calls of the system, of Arrow and numpy by the storage in this thread, and raises `KeyboardInterrupt`
    behind one of them: that is where a thread spends its time, and where Python looks for signals."""

    def __init__(self, call: int = 0, *, in_commit: bool = False) -> None:
        self.count = 0
        self.place = ""
        self._call = call
        self._counts = not in_commit
        """With `in_commit` calls count from the first one that writes a manifest."""

    def __enter__(self) -> None:
        sys.setprofile(self._see)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "call" and frame.f_code.co_name == "write_manifest":
            self._counts = True
        if event == "c_return" and self._counts and _WATCHED in frame.f_code.co_filename and _is_long(function):
            self.count += 1
            if self.count == self._call:
                sys.setprofile(None)
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}, {frame.f_code.co_name}"
                raise KeyboardInterrupt


def _is_long(function: Any) -> bool:
    owner = type(getattr(function, "__self__", None))
    return (function.__module__ or owner.__module__).partition(".")[0] in {"posix", "_io", "numpy", "pyarrow"}


class Run:
    """One run of the series. `state` is what the store holds."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.folder = folder
        self.durability = durability
        self.grid: Any = None
        self.state = State()
        self.problems: list[str] = []

    def statement(self, statement: Statement, interrupts: Interrupts) -> None:
        """Run a statement, interrupted, and again if it had no effect."""
        after = effects({self.state}, statement)
        self._statement(statement, interrupts)
        if self.state not in after and not self.problems:
            self._statement(statement, Interrupts())

    def _statement(self, statement: Statement, interrupts: Interrupts) -> None:
        if self.grid is None:
            self.grid = open_store(str(self.folder), self.durability)
        possible = {self.state}
        with interrupts:
            try:
                statement.run(self.grid)
                possible = effects(possible, statement)
            except KeyboardInterrupt:
                possible |= effects(possible, statement)
            except RemudaError as error:
                if effects(possible, statement) != possible and not interrupts.place:
                    self.problems.append(f"{statement.name} is refused: {error}")
        if interrupts.place:
            self._check_killed(possible)
        if statement is CLOSE:
            self._leave()
            if interrupts.place and self.durability == "none":  # It has not saved what was written since a checkpoint.
                self.grid = open_store(str(self.folder), self.durability)
                self.state = state_of(self.grid)
        else:
            self._go_on(possible)

    def _go_on(self, possible: set[State]) -> None:
        self._compare(state_of(self.grid), possible, "memory")
        with suppress(RemudaError):
            self.grid.sql("INSERT INTO a VALUES (-1, 'going on', 1)")
            self.grid.sql("DELETE FROM a WHERE id = -1")
            return
        if "a" in dict(self.state.tables):  # It refuses writes.
            self._leave()
            self.grid = open_store(str(self.folder), self.durability)
            self._compare(state_of(self.grid), possible, "the store that was opened again")

    def _leave(self) -> None:
        grid, self.grid = self.grid, None
        grid.close()

    def _check_killed(self, possible: set[State]) -> None:
        copy = self.folder.with_name("killed")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy)
        grid = open_store(str(copy), "fsync")
        damaged = [row for row in grid.sql("CHECK TABLE") if row.status != "ok"]
        if damaged:
            self.problems.append(f"a kill leaves damage: {damaged}")
        elif self.durability != "none":
            self._compare(state_of(grid), possible, "what a kill leaves")
        grid.close()

    def _compare(self, found: State, possible: set[State], what: str) -> None:
        if found not in possible:
            nearest = min((difference(state, found) for state in possible), key=len)
            self.problems.append(f"{what} is none of the {len(possible)} possible states: {nearest}")
        elif what != "what a kill leaves":
            self.state = found


def _attempt(run: Run, statement: Statement, interrupts: Interrupts) -> str:
    try:
        run.statement(statement, interrupts)
    except BaseException as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        run.problems.append("".join(traceback.format_exception(error)))
    return interrupts.place


def main(folder: str, durability: str, seed: str) -> None:
    logging.disable()
    sys.unraisablehook = lambda _: None  # A finaliser that was interrupted.
    counted = Run(Path(folder) / "counted", durability)
    calls = []
    for statement in SERIES:
        interrupts = Interrupts()
        counted.statement(statement, interrupts)
        calls.append(interrupts.count)
    assert not counted.problems, counted.problems
    choose = random.Random(int(seed))
    run = Run(Path(folder) / "store", durability)
    for statement, count in zip(SERIES, calls, strict=True):
        # Half of them from the moment on at which the manifest is written.
        in_commit = choose.random() < 0.5
        call = choose.randint(1, MANIFEST_CALLS if in_commit else max(1, count))
        place = _attempt(run, statement, Interrupts(call, in_commit=in_commit))
        print(json.dumps({"statement": statement.name, "place": place, "problems": run.problems}), flush=True)
        if run.problems:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
