"""The shell on a terminal: reads statements, runs them, keeps their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import remuda
from remuda.cli.opening import open_target
from remuda.cli.shell.editors import open_editor
from remuda.cli.shell.history import History
from remuda.cli.shell.names import KnownNames
from remuda.cli.shell.screen import Screen
from remuda.cli.shell.shell import Shell
from remuda.presentation.text_table import counted

if TYPE_CHECKING:
    from remuda.cli.opening import Target
    from remuda.cli.shell.options import Options
    from remuda.grid import Grid


def run_interactive(target: Target, options: Options) -> int:
    """Talk with the user until they leave."""
    with open_target(target) as grid:
        shell = Shell(grid, Screen(interactive=True), options, place=target.place)
        _welcome(shell, target, grid)
        history = History()
        names = KnownNames(shell.session)
        editor = open_editor(history, names)

        def remember(text: str) -> None:
            history.add(text)
            editor.remember(text)

        shell.remember = remember
        while not shell.finished:
            begun, shell.pending = shell.pending, ""
            try:
                text = editor.read(begun)
                history.add(text)
                shell.run(text)
            except EOFError:
                print()
                break
            except KeyboardInterrupt:  # while a text was typed, or a second time while a statement was being cancelled
                print()
            names.forget()
        shell.screen.redirect(None)
    return 0


def _welcome(shell: Shell, target: Target, grid: Grid) -> None:
    mode = ", read-only" if target.read_only else ""
    shell.screen.say(f"Remuda {remuda.__version__}, {target.place}{mode}. \\? for help, \\q to leave.")
    for name, path in target.files:
        rows = counted(len(grid.map(name)), "row")
        shell.screen.say(f"{path} is the table {name}, {rows}, in memory: the file stays as it is.")
