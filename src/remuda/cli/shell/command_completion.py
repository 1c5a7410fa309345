"""What the Tab key offers in a command of the shell, and where a path is typed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.cli.shell.commands import COMMANDS
from remuda.cli.shell.options import OPTIONS
from remuda.cli.shell.statement_help import SYNTAX
from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.cli.shell.names import Names

_PATH_COMMAND = re.compile(r"\s*(?:\\i|\\o|\.read|\.output)\s+'?(?P<path>\S*)$")
_COPY_COMMAND = re.compile(r"\s*\\copy\s.*\s(?:from|to)\s+'?(?P<path>\S*)$", re.IGNORECASE)
_NAME_COMMAND = re.compile(r"\s*(?:\\d\+?|\\dt|\\dv|\\schema|\.schema|\.tables)\s+(?P<word>\S*)$")
_COMMAND = re.compile(r"\s*(?P<word>[\\.]\S*)$")


@dataclass(frozen=True, slots=True)
class Completion:
    """What may stand in place of the `length` characters before the cursor, and what it is."""

    text: str
    length: int
    kind: str


def complete_command(before: str, names: Names) -> list[Completion] | None:
    """Return what completes a command of the shell; None where the text is no command."""
    if not before.lstrip().startswith(("\\", ".")):
        return None
    if path := _PATH_COMMAND.match(before) or _COPY_COMMAND.match(before):
        return complete_path(path["path"])
    if table := _NAME_COMMAND.match(before):
        return matching(table["word"], [(name, "table") for name in names.tables])
    if command := _COMMAND.match(before):
        known = [each for command in COMMANDS for each in (command.name, command.alias) if each]
        return matching(command["word"], [(each, "command") for each in known])
    name, *arguments = before.split(" ")
    values: Iterable[str] = ()
    match name.strip(), arguments:
        case "\\pset", [_]:
            values = OPTIONS
        case "\\pset", [option, _] if option in OPTIONS:
            values = OPTIONS[option].metadata["values"].split(", ")
        case ".mode", [_]:
            values = OPTIONS["format"].metadata["values"].split(", ")
        case "\\x", [_]:
            values = ("on", "off", "auto")
        case "\\timing" | ".timer", [_]:
            values = ("on", "off")
        case "\\h", _:
            begun = " ".join(arguments)
            found = [each.name for each in SYNTAX if each.name.startswith(begun.upper())]
            return [Completion(each, len(begun), "statement") for each in found]
        case "\\copy", [_]:
            values = names.tables
    return matching(arguments[-1], [(value, "value") for value in values])


def complete_path(begun: str) -> list[Completion]:
    """Return the files and folders whose paths begin so; hidden ones only after a dot."""
    folder, name = os.path.split(begun)
    try:
        entries = sorted(os.scandir(Path(folder or ".").expanduser()), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        Completion(entry.name + ("/" if entry.is_dir() else ""), len(name), "path")
        for entry in entries
        if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith("."))
    ]


def matching(word: str, offered: Iterable[tuple[str, str]]) -> list[Completion]:
    """Return those that begin as the word does, each once, in the order in which they are offered."""
    return list(_matches(word, offered))


def _matches(word: str, offered: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    seen: set[str] = set()
    for text, kind in offered:
        if text.lstrip('"').casefold().startswith(word.casefold()) and text.casefold() not in seen:
            seen.add(text.casefold())
            yield Completion(text, len(word), kind)
