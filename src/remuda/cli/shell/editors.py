"""Where an interactive shell reads from: prompt_toolkit, or readline where that is not installed."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from remuda.cli.shell.completion import complete
from remuda.cli.shell.shell import WORDS
from remuda.cli.statement_text import split

if TYPE_CHECKING:
    from remuda.cli.shell.history import History
    from remuda.cli.shell.names import KnownNames

PROMPT = "remuda> "
CONTINUED = "   ...> "
DELIMITERS = " \t\n()=<>,;*+-/|%'\""
"""Between these stand the words that readline completes."""


class Editor(Protocol):
    """Reads what the user types."""

    def read(self, begun: str) -> str:
        """Return a text that can be run; the user finds `begun` in it. EOFError at the end of the input."""

    def remember(self, text: str) -> None:
        """Add a text that was not typed to what the Up key brings back."""


def open_editor(history: History, names: KnownNames) -> Editor:
    """Return the best editor that is installed."""
    if find_spec("prompt_toolkit") is not None:
        from remuda.cli.shell.prompt_editor import PromptEditor

        return PromptEditor(history, names)
    return ReadlineEditor(history, names)


def is_complete(text: str) -> bool:
    """Test whether a text can be run: all its statements end with a semicolon, or it is a command.

    >>> is_complete("SELECT 1"), is_complete("SELECT 1;"), is_complete("\\\\d t"), is_complete("exit"), is_complete("")
    (False, True, True, True, True)
    """
    return split(text)[1] is None or text.strip().rstrip(";").casefold() in WORDS


class ReadlineEditor:
    """Reads line by line; the history has whole statements all the same."""

    def __init__(self, history: History, names: KnownNames) -> None:
        self._names = names
        self._typed = ""
        with suppress(ImportError):  # some builds of Python have no readline: then there is neither history nor Tab
            import readline

            readline.set_auto_history(False)
            readline.clear_history()
            for entry in history.entries:
                readline.add_history(entry)
            readline.set_completer(self._complete)
            readline.set_completer_delims(DELIMITERS)
            editline = "libedit" in (readline.__doc__ or "")
            readline.parse_and_bind("bind ^I rl_complete" if editline else "tab: complete")

    def read(self, begun: str) -> str:
        self._typed = begun
        if begun:
            print(begun)
        while True:
            line = input(CONTINUED if self._typed else PROMPT)
            self._typed = f"{self._typed}\n{line}" if self._typed else line
            if is_complete(self._typed):
                self.remember(self._typed)
                return self._typed

    def remember(self, text: str) -> None:
        with suppress(ImportError):
            import readline

            if text.strip():
                readline.add_history(text.strip())

    def _complete(self, word: str, number: int) -> str | None:
        import readline

        if number == 0:
            line = readline.get_line_buffer()
            before = f"{self._typed}\n" if self._typed else ""
            found = complete(before + line, len(before) + readline.get_endidx(), self._names.current)
            self._found = [word[: len(word) - each.length] + each.text for each in found]
        return self._found[number] if number < len(self._found) else None
