"""The statements of earlier conversations, in a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

MOST_ENTRIES = 10_000


class History:
    """Whole statements, oldest first. Each line of one is written after a `+`, and a blank line follows it.

    Statements have data in them, passwords of object stores for one. So the file is made with mode 0600 and is used
    only if it is a regular file of this user; without one the history lasts as long as the shell.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Read the file: $REMUDA_HISTORY, or `.remuda_history` in the user's own folder."""
        self.path = path or Path(os.environ.get("REMUDA_HISTORY") or "~/.remuda_history").expanduser()
        self.entries = self._read()

    def add(self, text: str) -> None:
        """Append an entry, unless it repeats the one before."""
        text = text.strip()
        if not text or (self.entries and self.entries[-1] == text):
            return
        self.entries.append(text)
        with suppress(OSError):  # no room or no permission: the statement runs all the same
            descriptor = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            if descriptor is not None:
                with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(_written(text))

    def _read(self) -> list[str]:
        with suppress(OSError):
            descriptor = self._open(os.O_RDONLY)
            if descriptor is not None:
                with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
                    entries = _entries(file.read())
                if len(entries) > 2 * MOST_ENTRIES:
                    self._shorten(entries[-MOST_ENTRIES:])
                return entries[-MOST_ENTRIES:]
        return []

    def _shorten(self, entries: list[str]) -> None:
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(map(_written, entries))
        beside.replace(self.path)

    def _open(self, flags: int) -> int | None:
        """Open the file, and take it from others if they could read it; None where it is not this user's."""
        descriptor = os.open(self.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            os.close(descriptor)
            return None
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(descriptor, 0o600)
        return descriptor


def _written(text: str) -> str:
    return "".join(f"+{line}\n" for line in text.split("\n")) + "\n"


def _entries(text: str) -> list[str]:
    """Return the entries of a file; lines without a `+` are entries of earlier versions, one a line.

    >>> _entries("+SELECT 1,\\n+2;\\n\\nSELECT 3;\\n+\\\\d\\n\\n")
    ['SELECT 1,\\n2;', 'SELECT 3;', '\\\\d']
    """
    entries: list[str] = []
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith("+"):
            lines.append(line[1:])
            continue
        if lines:
            entries.append("\n".join(lines))
            lines = []
        if line:
            entries.append(line)
    return entries
