"""A real terminal for tests: a process in a pane of tmux, keys that are pressed, and the screen that is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pytest

TMUX = shutil.which("tmux")
needs_tmux = pytest.mark.skipif(TMUX is None, reason="tmux is not installed: the shell is not driven in a terminal")
PATIENCE = 60
"""Seconds after which something on the screen is missing for good; a busy machine takes some of them."""


class Terminal:
    """Runs `remuda` with these arguments in a terminal of its own; `close` ends it."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        *,
        columns: int = 100,
        lines: int = 30,
        environment: dict[str, str] | None = None,
        without: str | None = None,
    ) -> None:
        """`without` is a package that cannot be imported there."""
        self._socket = f"remuda-{uuid4().hex[:12]}"
        settings = {
            "TERM": "xterm-256color",
            "REMUDA_HISTORY": str(folder / "history"),
            "LC_ALL": "C.UTF-8",
            "PAGER": "cat",
        }
        settings |= environment or {}
        hidden = "" if without is None else f"import sys; sys.modules[{without!r}] = None; "
        hidden += "" if without is None else "import importlib.util as u; find = u.find_spec; "
        hidden += "" if without is None else f"u.find_spec = lambda n, *a: None if n == {without!r} else find(n, *a); "
        code = f"{hidden}from remuda.cli import main; import sys; sys.exit(main())"
        # tmux now and then loses the status of a process. The shell must survive the Ctrl-C that its child gets.
        self._status = folder / f"{self._socket}.status"
        wait = ["/bin/sh", "-c", 'trap : INT; status=$1; shift; "$@"; echo $? > "$status"', "sh", str(self._status)]
        command = [*wait, sys.executable, "-c", code, *arguments]
        size = ["-x", str(columns), "-y", str(lines)]
        assignments = [f"{name}={value}" for name, value in settings.items()]
        inherited = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TMUX", "EDITOR"}}
        self._tmux(
            ["-f", os.devnull, "new-session", "-d", *size, "-c", str(folder), "env", *assignments, *command],
            environment=inherited,
        )
        self._tmux(["set-option", "-g", "remain-on-exit", "on"])

    def press(self, *keys: str) -> Self:
        """Press keys by their names: Enter, Up, C-c, Tab."""
        self._tmux(["send-keys", *keys])
        return self

    def type(self, text: str) -> Self:
        """Type a text; it has no line breaks."""
        self._tmux(["send-keys", "-l", text.replace(";", "\\;") if text.endswith(";") else text])
        return self

    def enter(self, text: str) -> Self:
        return self.type(text).press("Enter")

    def screen(self, *, colours: bool = False) -> str:
        """Return what is seen now, without the blanks at the ends of the lines."""
        shown = self._tmux(["capture-pane", "-p", *(["-e"] if colours else [])])
        return "\n".join(line.rstrip() for line in shown.split("\n")).rstrip()

    def wait_for(self, *texts: str, colours: bool = False) -> str:
        """Wait until all these texts are on the screen, and return it."""
        return self.wait(lambda seen: all(text in seen for text in texts), f"{texts} seen", colours=colours)

    def wait_until_gone(self, text: str) -> str:
        return self.wait(lambda seen: text not in seen, f"{text!r} gone")

    def wait_for_prompt(self) -> str:
        """Wait until the last line is an empty prompt."""
        return self.wait(lambda seen: seen.endswith("remuda>"), "a prompt")

    def press_until(self, key: str, text: str) -> str:
        """Press a key again and again, for a program that throws away what is typed while it is interrupted."""
        end = time.monotonic() + PATIENCE
        while text not in self.press(key).screen():
            assert time.monotonic() < end, f"not {text!r} seen on:\n{self.screen()}"
            time.sleep(0.2)
        return self.screen()

    def wait_for_end(self) -> int:
        """Wait until the process has ended, and return its status."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status = self._status.read_text() if self._status.exists() else ""
            if status.endswith("\n"):
                return int(status)
            time.sleep(0.05)
        raise AssertionError(f"it runs on:\n{self.screen()}")

    def wait(self, condition: Callable[[str], bool], described: str, *, colours: bool = False) -> str:
        """Wait until the screen meets a condition, and return it."""
        end = time.monotonic() + PATIENCE
        while True:
            seen = self.screen(colours=colours)
            if condition(seen):
                return seen
            if time.monotonic() > end:
                raise AssertionError(f"not {described} on:\n{seen}")
            time.sleep(0.05)

    def close(self) -> None:
        subprocess.run([str(TMUX), "-L", self._socket, "kill-server"], capture_output=True, check=False)

    def _tmux(self, arguments: Sequence[str], environment: dict[str, str] | None = None) -> str:
        command = [str(TMUX), "-L", self._socket, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Return a function that opens terminals, all of which are closed at the end of the test."""
    opened: list[Terminal] = []

    def open_one(*arguments: str, **options: Any) -> Terminal:
        opened.append(Terminal(arguments, tmp_path, **options))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()
