"""Where the shell prints: the terminal, a pager, or a file, each with the characters that it may get."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from remuda.errors import RemudaError
from remuda.presentation.text_table import Layout, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.cli.shell.options import Options

_RED, _BOLD_RED, _DIM, _PLAIN = "\033[31m", "\033[1;31m", "\033[2m", "\033[0m"


class Screen:
    """Prints answers, messages and errors.

    Control characters of data are escaped for a terminal and for a pager; a file and a pipe get every value as it is.
    """

    def __init__(self, *, interactive: bool = False) -> None:
        self.interactive = interactive
        """Whether a person reads each answer before the next statement is typed."""
        self._file: TextIO | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether answers go to a terminal."""
        return self._file is None and sys.stdout.isatty()

    @property
    def shows_progress(self) -> bool:
        return self.interactive and sys.stderr.isatty()

    def layout(self, options: Options) -> Layout:
        """Return how rows are laid out here: fitted to the terminal, if it is one."""
        if not self.is_terminal:
            return Layout(options.null, None, "on" if options.expanded == "on" else "off")
        return Layout(options.null, _size().columns, options.expanded, has_colour(sys.stdout))

    def answer(self, text: str, *, pager: str = "off") -> None:
        """Print an answer; on a terminal through the pager, where it is larger than the screen or `pager` is always."""
        if not self.is_terminal:
            print(text, file=self._file, flush=True)
        elif self.interactive and _needs_pager(text, pager):
            _page(text)
        else:
            print(text, flush=True)

    def stream(self, lines: Iterable[str]) -> None:
        """Print the lines of an answer as they come."""
        is_terminal = self.is_terminal
        for line in lines:
            print(printable(line) if is_terminal else line, file=self._file)
        (self._file or sys.stdout).flush()

    def say(self, text: str) -> None:
        """Print a message of the shell itself."""
        if text:
            print(printable(text), file=self._file if not self.interactive else None, flush=True)

    def note(self, text: str) -> None:
        """Print a line about an answer that is no part of it; dim, where there are colours."""
        text = printable(text)
        print(f"{_DIM}{text}{_PLAIN}" if has_colour(sys.stdout) else text, flush=True)

    def error(self, text: str) -> None:
        """Print an error on standard error, with its first line and its carets in red."""
        sys.stdout.flush()
        text = printable(text)
        print(_painted(text) if has_colour(sys.stderr) else text, file=sys.stderr, flush=True)

    def redirect(self, path: str | None) -> None:
        """Send answers to a file from now on, or back to where they went before."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if path is not None:
            try:
                self._file = Path(path).expanduser().open("w", encoding="utf-8")
            except OSError as error:
                raise RemudaError(f"{path} cannot be written: {error.strerror}", sqlstate="58030") from error


def has_colour(stream: TextIO) -> bool:
    """Test whether a stream is a terminal with colours; NO_COLOR, set to anything, turns them off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _painted(text: str) -> str:
    first, *others = text.split("\n")
    painted = [f"{_BOLD_RED}{first}{_PLAIN}"]
    for line in others:
        is_caret = bool(line.strip()) and set(line.strip()) == {"^"}
        painted.append(f"{_RED}{line}{_PLAIN}" if is_caret else line)
    return "\n".join(painted)


def _size() -> os.terminal_size:
    """Return the size of the terminal as it is now: $COLUMNS, if exported, is as it was."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):  # tests and emulations have no terminal behind it
        return shutil.get_terminal_size()
    return size if size.columns and size.lines else shutil.get_terminal_size()


def _needs_pager(text: str, pager: str) -> bool:
    if pager == "off":
        return False
    # A line is kept for the prompt below the answer, and one for the time that the statement took.
    return pager == "always" or text.count("\n") + 1 > _size().lines - 2


def _page(text: str) -> None:
    """Show the text with $PAGER, which /bin/sh starts as it does for git and psql, or with `less`."""
    import subprocess

    command = os.environ.get("PAGER", "less" if shutil.which("less") else "")
    if not command.strip():
        print(text, flush=True)
        return
    # Quit where it fits, keep colours, cut long lines, and leave the text on the screen.
    environment = {"LESS": "FRSX", "LESSCHARSET": "utf-8"} | os.environ
    with _interrupts_left_to_the_child():
        pager = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, env=environment)
        with suppress(BrokenPipeError):  # the reader has seen enough
            pager.communicate(f"{text}\n".encode("utf-8", "backslashreplace"))
        pager.wait()


@contextmanager
def _interrupts_left_to_the_child() -> Iterator[None]:
    """Keep Ctrl-C in a pager or an editor from ending the shell. A handler, as an ignored signal would be inherited."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def edit(path: Path) -> None:
    """Open a file in $VISUAL or $EDITOR and wait until it is closed."""
    import subprocess

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with _interrupts_left_to_the_child():
        done = subprocess.run(["/bin/sh", "-c", f'{command} "$1"', "sh", str(path)], check=False)
    if done.returncode:
        raise RemudaError(f"the editor {command} ended with status {done.returncode}", sqlstate="22023")
