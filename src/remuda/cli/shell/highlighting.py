"""The styles of SQL text while it is typed. Knows nothing of the library that draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.cli.statement_text import tokens

if TYPE_CHECKING:
    from remuda.cli.shell.names import Names

_STYLES = {"string": "string", "open": "string", "number": "number", "comment": "comment", "command": "command"}


def highlight(text: str, names: Names) -> list[list[tuple[str, str]]]:
    """Return each line as pieces of text with their styles.

    A word is a function where a parenthesis follows it, else a keyword where it is one.
    """
    lines: list[list[tuple[str, str]]] = [[]]
    found = list(tokens(text))
    for at, token in enumerate(found):
        style = _STYLES.get(token.kind, "")
        if token.kind == "word":
            called = at + 1 < len(found) and found[at + 1].text == "("
            if called and token.text.lower() in names.functions:
                style = "function"
            elif token.text.upper() in names.keywords:
                style = "keyword"
        if not at and token.text == ".":
            return [[("command", line)] for line in text.split("\n")]
        for number, line in enumerate(token.text.split("\n")):
            if number:
                lines.append([])
            if line:
                lines[-1].append((style, line))
    return lines
