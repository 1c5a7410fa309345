"""Cuts text into statements at the semicolons that are not inside quotes or comments."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'            # text
    | "(?:[^"]|"")*"            # a quoted name
    | --[^\n]*                  # a comment to the end of the line
    | /\*.*?\*/                 # a comment in brackets
    | \$\$.*?\$\$               # text between dollars
    | ;
    | (?P<open>'|"|/\*|\$\$)         # one of the above, not yet closed
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def split(text: str) -> tuple[list[str], str]:
    """The complete statements, without their semicolons, and the rest that still waits for one.

    >>> split("SELECT ';'; SELECT 2 -- ; not here")
    (["SELECT ';'"], 'SELECT 2 -- ; not here')
    >>> split("SELECT 'open; ")
    ([], "SELECT 'open;")
    >>> split("SELECT $$a;b$$; SELECT $$c;")
    (['SELECT $$a;b$$'], 'SELECT $$c;')
    """
    statements: list[str] = []
    start = 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            break
        if token[0] == ";":
            statements.append(text[start : token.start()].strip())
            start = token.end()
    return [statement for statement in statements if statement], text[start:].strip()


def first_word(text: str) -> str:
    """What kind of statement it is.

    >>> first_word("-- all of them\\n delete FROM t")
    'DELETE'
    """
    words = "".join(" " if token[0].startswith(("--", "/*")) else token[0] for token in _TOKEN.finditer(text)).split()
    return words[0].upper() if words else ""


def is_blank(text: str) -> bool:
    """Whether there is nothing in the text but space and comments.

    >>> is_blank(" -- nothing"), is_blank("SELECT 1 -- one")
    (True, False)
    """
    return all(token[0].isspace() or token[0].startswith(("--", "/*")) for token in _TOKEN.finditer(text))
