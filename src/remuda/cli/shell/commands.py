r"""The commands of the shell. One table has them all: `\?`, completion and docs/shell.md follow it."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.cli.shell import catalog_commands
from remuda.cli.shell.options import OPTIONS
from remuda.cli.shell.screen import edit
from remuda.cli.shell.statement_help import statement_help
from remuda.cli.statement_text import split
from remuda.dataclass import dataclass
from remuda.errors import RemudaError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.cli.shell.shell import Shell

DEEPEST_SCRIPT = 20
"""Scripts that run each other."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    arguments: str
    meaning: str
    run: Callable[[Shell, str, str], bool | None]
    """Takes the shell, the arguments, and the statement before the command, or before this one."""
    alias: str | None = None
    """The command of sqlite3 and duckdb that does the same."""
    takes_statement: bool = False

    @property
    def usage(self) -> str:
        return f"{self.name} {self.arguments}".rstrip()


def run_command(shell: Shell, text: str, statement: str) -> bool:
    """Run a command; `statement` is what was typed before it. Return whether it succeeded."""
    name, _, argument = text.partition(" ")
    command = _find(name)
    if command is None:
        known = [each for command in COMMANDS for each in (command.name, command.alias) if each]
        hint = nearest(name, known)
        raise RemudaError(
            f"{name} is not a command. " + (f"Did you mean {hint}? " if hint else "") + "\\? lists them.",
            sqlstate="22023",
        )
    if statement and not command.takes_statement:
        raise RemudaError(
            f"{command.name} stands on a line of its own: end the statement before it with ;", sqlstate="22023"
        )
    given = argument.strip()
    if name == ".mode":
        given = f"format {given}".strip()
    return command.run(shell, given, statement) is not False


def _find(name: str) -> Command | None:
    name = _OTHER_NAMES.get(name, name)
    return next((command for command in COMMANDS if name in {command.name, command.alias}), None)


_OTHER_NAMES = {".exit": "\\q", "\\help": "\\?", "\\quit": "\\q", "\\dt+": "\\d+"}


def _quit(shell: Shell, _argument: str, _statement: str) -> None:
    shell.finished = True


def _help(shell: Shell, _argument: str, _statement: str) -> None:
    shell.screen.answer(help_text(), pager=shell.options.pager)


def _statement_help(shell: Shell, argument: str, _statement: str) -> None:
    shell.screen.answer(statement_help(argument), pager=shell.options.pager)


def _run_script(shell: Shell, argument: str, _statement: str) -> bool:
    path = Path(_unquoted(argument, "\\i FILE")).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RemudaError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", sqlstate="58P01"
        ) from error
    if shell.depth == DEEPEST_SCRIPT:
        raise RemudaError(
            f"{path}: {DEEPEST_SCRIPT} scripts run each other, which looks like a circle", sqlstate="22023"
        )
    shell.depth += 1
    try:
        return shell.run(text, str(path))
    finally:
        shell.depth -= 1


def _edit(shell: Shell, _argument: str, statement: str) -> bool:
    """Edit the statement in an editor. What is complete then is run; else the next prompt begins with it."""
    with tempfile.TemporaryDirectory(prefix="remuda-") as folder:  # of mode 0700
        path = Path(folder) / "statement.sql"
        path.write_text(f"{statement or shell.last};\n", encoding="utf-8")
        edit(path)
        text = path.read_text(encoding="utf-8").strip()
    pieces, rest = split(text)
    if rest is not None:
        shell.pending = text
        return True
    if pieces:
        shell.screen.say(text)
        shell.remember(text)
    return shell.run(text)


def _watch(shell: Shell, argument: str, statement: str) -> None:
    """Run the statement again and again until Ctrl-C, or so many times."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)?(?:\s+(\d+))?", argument)
    if found is None:
        raise RemudaError(f"\\watch takes seconds and perhaps a number of times, not {argument}", sqlstate="22023")
    seconds, times = float(found[1] or 2), int(found[2] or 0)
    statement = _needed(shell, statement)
    pager, shell.options.pager = shell.options.pager, "off"
    count = 0
    try:
        while True:
            shell.screen.note(f"{time.strftime('%H:%M:%S')} (every {seconds:g} s)")
            shell.execute(statement)
            count += 1
            if count == times:
                break
            time.sleep(seconds)
    except KeyboardInterrupt:
        if not shell.screen.interactive:
            raise
        shell.screen.say("")
    finally:
        shell.options.pager = pager


def _copy(shell: Shell, argument: str, _statement: str) -> None:
    """COPY, whose path needs no quotes here."""
    unquoted = re.compile(r"\b(from|to)\s+([^\s'(][^\s;]*)", re.IGNORECASE)
    *_, last = [None, *unquoted.finditer(argument)]
    if last is not None:
        path = last[2].replace("'", "''")
        argument = f"{argument[: last.start()]}{last[1]} '{path}'{argument[last.end() :]}"
    shell.execute(f"COPY {argument}")


def _explain(shell: Shell, argument: str, statement: str) -> None:
    """EXPLAIN of a query that follows or precedes; `analyze` may stand before it."""
    options = re.match(r"(?:(?:analyze|fragments|steps|logical|memo)\b\s*|\([^()]*\)\s*)*", argument, re.IGNORECASE)
    assert options is not None, "the pattern may match nothing"
    query = argument[options.end() :] or _needed(shell, statement)
    last = shell.last
    shell.execute(" ".join(["EXPLAIN", *options[0].split(), query]))
    shell.last = query if statement or argument[options.end() :] else last


def _expanded(shell: Shell, argument: str, _statement: str) -> None:
    shell.screen.say(shell.options.change("expanded", argument or ("off" if shell.options.expanded == "on" else "on")))


def _output(shell: Shell, argument: str, _statement: str) -> None:
    shell.screen.redirect(_unquoted(argument, "\\o FILE") if argument and argument != "stdout" else None)


def _timing(shell: Shell, argument: str, _statement: str) -> None:
    shell.screen.say(shell.options.change("timing", argument or ("off" if shell.options.timing else "on")))


def _rows(shell: Shell, argument: str, _statement: str) -> None:
    if not argument:
        raise RemudaError("\\rows takes the number of rows that are shown of an answer", sqlstate="22023")
    shell.screen.say(shell.options.change("rows", argument))


def _pset(shell: Shell, argument: str, _statement: str) -> None:
    name, _, value = argument.partition(" ")
    if not name:
        width = max(map(len, OPTIONS))
        for each in OPTIONS.values():
            shell.screen.say(f"{each.name:{width}}  {shell.options.shown(each.name):8}  {each.metadata['meaning']}")
    elif not value.strip() and name != "null":
        shell.screen.say(
            f"{name} is {shell.options.shown(name)}." if name in OPTIONS else shell.options.change(name, "")
        )
    else:
        shell.screen.say(shell.options.change(name, _unquoted(value.strip(), "\\pset OPTION VALUE", empty=True)))


def _needed(shell: Shell, statement: str) -> str:
    if not (statement or shell.last):
        raise RemudaError("there is no statement yet", sqlstate="22023")
    return statement or shell.last


def _unquoted(text: str, usage: str, *, empty: bool = False) -> str:
    text = text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
    if not text and not empty:
        raise RemudaError(f"it is written {usage}", sqlstate="22023")
    return text


COMMANDS = (
    Command("\\q", "", "leave the shell (so does Ctrl-D)", _quit, ".quit"),
    Command("\\?", "", "these commands", _help, ".help"),
    Command("\\h", "[STATEMENT]", "the syntax of a statement, or which there are", _statement_help),
    Command("\\d", "[NAME]", "the maps and views, or the columns of one", catalog_commands.describe),
    Command("\\d+", "[NAME]", "the same with keys, partitions, indexes and rows", catalog_commands.describe_more),
    Command("\\dt", "[PATTERN]", "the maps; `*` in a pattern stands for any text", catalog_commands.tables, ".tables"),
    Command("\\di", "[PATTERN]", "the indexes", catalog_commands.indexes, ".indexes"),
    Command("\\dv", "[PATTERN]", "the views", catalog_commands.views),
    Command("\\l", "", "the folder that is open: path, maps, rows, size", catalog_commands.folder),
    Command(
        "\\schema", "[NAME]", "the statements that create maps, indexes and views", catalog_commands.schema, ".schema"
    ),
    Command("\\i", "FILE", "run the statements and commands of a file, up to the first error", _run_script, ".read"),
    Command("\\e", "", "edit the last statement in $VISUAL or $EDITOR, then run it", _edit, takes_statement=True),
    Command("\\watch", "[SECONDS] [TIMES]", "run the last statement every 2 seconds, until Ctrl-C", _watch, None, True),
    Command("\\explain", "[ANALYZE] [QUERY]", "the plan of a query, or of the last statement", _explain, None, True),
    Command("\\copy", "MAP FROM|TO FILE", "COPY; the path needs no quotes", _copy),
    Command("\\o", "[FILE]", "write answers into a file, or to the terminal again", _output, ".output"),
    Command("\\x", "[on|off|auto]", "a line for each value; auto where a row is too wide", _expanded),
    Command("\\timing", "[on|off]", "show how long each statement takes", _timing, ".timer"),
    Command("\\rows", "N", "show so many rows of an answer", _rows),
    Command("\\pset", "[OPTION [VALUE]]", f"show or set an option: {', '.join(OPTIONS)}", _pset, ".mode"),
)

KEYS = (
    ("Tab", "completes a keyword, a function, a name, a setting, a path"),
    ("Enter", "runs what is complete, else begins a new line; Alt-Enter runs in any case"),
    ("Up, Down", "move through the lines, then through the statements before"),
    ("Ctrl-R", "searches the statements before"),
    ("Ctrl-C", "drops what is being typed, or cancels the statement that runs"),
)


def help_text() -> str:
    r"""Return what `\?` prints."""
    width = max(len(command.usage) for command in COMMANDS)
    lines = ["A statement ends with ; and may go over several lines.", ""]
    for command in COMMANDS:
        alias = f"  (or {command.alias})" if command.alias else ""
        lines.append(f"  {command.usage:{width}}  {command.meaning}{alias}")
    lines += ["", *(f"  {key:{width}}  {meaning}" for key, meaning in KEYS)]
    return "\n".join(lines)
