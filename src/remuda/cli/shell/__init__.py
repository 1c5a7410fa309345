r"""The shell: statements and backslash commands, from a terminal, a script or the command line.

`Shell` runs text and prints answers; where the text comes from is not its business. `interactive.py` reads it from a
terminal, with prompt_toolkit or readline, which are imported there and nowhere else. The package uses what
`remuda.open` gives and must not know what is behind it: tables, columns, functions and settings come from SQL.
"""

from remuda.cli.shell.screen import Screen
from remuda.cli.shell.shell import Shell

__all__ = ["Screen", "Shell"]
