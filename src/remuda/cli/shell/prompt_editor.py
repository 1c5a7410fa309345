"""Reads statements with prompt_toolkit: several lines, completion menu, highlighting, history of whole statements."""

from __future__ import annotations

from string import ascii_letters, digits
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import History as PromptHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from remuda.cli.shell.completion import complete
from remuda.cli.shell.editors import CONTINUED, PROMPT, is_complete
from remuda.cli.shell.highlighting import highlight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

    from remuda.cli.shell.history import History
    from remuda.cli.shell.names import KnownNames

_STYLE = Style.from_dict(
    {
        "keyword": "ansigreen bold",
        "function": "ansicyan",
        "string": "ansiyellow",
        "number": "ansimagenta",
        "comment": "ansibrightblack italic",
        "command": "ansicyan bold",
        "prompt": "bold",
        "continued": "ansibrightblack",
        "completion-menu.meta.completion": "bg:ansibrightblack ansiwhite",
    }
)


class PromptEditor:
    def __init__(self, history: History, names: KnownNames) -> None:
        completer = _Completer(names)
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            history=_Entries(history),
            completer=completer,
            complete_while_typing=True,
            lexer=_Lexer(names),
            style=_STYLE,
            key_bindings=_keys(completer),
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
            prompt_continuation=[("class:continued", CONTINUED)],
            reserve_space_for_menu=6,
        )

    def read(self, begun: str) -> str:
        return self._session.prompt([("class:prompt", PROMPT)], default=begun)

    def remember(self, text: str) -> None:
        self._session.history.append_string(text)


class _Entries(PromptHistory):
    """The history of the shell, as prompt_toolkit asks for it: newest first."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._history.entries)

    def store_string(self, string: str) -> None:
        """Do nothing: the shell adds what was typed itself, whichever editor read it."""


class _Completer(Completer):
    def __init__(self, names: KnownNames) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Offer commands at once, names from their second letter on and after a dot, and all whenever Tab asks."""
        before = document.text_before_cursor
        begun = len(before) - len(before.rstrip(_LETTERS))
        is_command = before.startswith(("\\", ".")) and " " not in before
        if not (complete_event.completion_requested or begun > 1 or is_command or before.endswith(".")):
            return
        for each in complete(document.text, document.cursor_position, self._names.current):
            yield Completion(each.text, -each.length, display_meta=each.kind)


_LETTERS = ascii_letters + digits + "_$"


class _Lexer(Lexer):
    def __init__(self, names: KnownNames) -> None:
        self._names = names

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines: list[StyleAndTextTuples] = [
            [(f"class:{style}" if style else "", text) for style, text in line]
            for line in highlight(document.text, self._names.current)
        ]
        return lambda number: lines[number] if number < len(lines) else []


def _keys(completer: Completer) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("tab")
    def _complete(event: KeyPressEvent) -> None:
        """Take the only completion at once: a menu that is being made while the user types would swallow the key."""
        buffer = event.current_buffer
        if buffer.complete_state is not None:
            buffer.complete_next()
            return
        found = list(completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        else:
            buffer.start_completion(insert_common_part=True)

    @keys.add("enter", filter=completion_is_selected)
    def _take_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=~completion_is_selected)
    def _run_or_continue(event: KeyPressEvent) -> None:
        """Run what is complete. Enter in the middle of a text breaks the line, as it does in any editor."""
        buffer = event.current_buffer
        behind = buffer.document.text_after_cursor.strip()
        if is_complete(buffer.text) and (not behind or "\n" not in behind):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @keys.add("escape", "enter")
    def _run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
