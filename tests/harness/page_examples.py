"""Run the examples of Markdown pages as a reader would: from top to bottom, in one folder, in one Python session.

    python page_examples.py page.md ...

Only the standard library is imported, so that the Python of an empty environment can run this file.

- ` ```bash ` runs in a shell in the current folder.
- ` ```python ` runs statement by statement in one session a page. As in the interactive interpreter, the value of an
  expression that stands by itself is shown; with `>>>` the block is a doctest.
- ` ```text ` right behind such a block is what it prints. `...` stands for any text, and spaces are compared as one.
- ` ```sql ` belongs to pages that `tests/harness/page.py` runs.
- A block without a language is a drawing or a grammar, one such as ` ```{toctree} ` a directive of the site.
- A comment `<!-- not run: reason -->` above a block exempts it.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = re.compile(
    r"^(?P<exempt><!-- not run: [^>]+ -->\n\n?)?(?P<indent> *)```(?P<language>[^`\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_LANGUAGES = {"bash", "python", "sql", "text", ""}
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class ExampleError(AssertionError):
    """An example that fails, or prints something else than its page says."""


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    code: str
    line: int
    """The line of its first line in the page, from 1."""
    exempt: bool
    adjacent: bool
    """Whether nothing stands between this block and the one before it."""


def blocks(text: str) -> Iterator[Block]:
    """Give the fenced blocks of a page in order; one of a language that cannot be run is an error."""
    end = 0
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        language, exempt = found["language"], found["exempt"] is not None
        if language not in _LANGUAGES and not (exempt or language.startswith("{")):
            raise ExampleError(f"line {line}: a block of {language} needs `<!-- not run: reason -->`")
        yield Block(language, found["code"], line, exempt, adjacent=not text[end : found.start()].strip())
        end = found.end()


def run_page(path: Path) -> int:
    """Run the examples of a page, and return how many there are."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    count = 0
    for block in blocks(path.read_text(encoding="utf-8")):
        try:
            if block.language == "text" and block.adjacent and printed is not None:
                _compare(block.code, printed)
            printed = None
            if not block.exempt and block.language in {"bash", "python"}:
                printed = _shell(block.code) if block.language == "bash" else _python(block, names, path)
                count += 1
        except Exception as error:
            raise ExampleError(f"{path.name}, line {block.line}: {type(error).__name__}: {error}") from error
    return count


def _compare(expected: str, printed: str) -> None:
    if not doctest.OutputChecker().check_output(expected, printed, _OPTIONS):
        raise ExampleError(f"the page says\n{expected}\nand the block above it prints\n{printed}")


def _shell(code: str) -> str:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        env={**os.environ, "PATH": programs},
        check=False,
        capture_output=True,
        text=True,
    )
    if ended.returncode != 0:
        raise ExampleError(f"the shell ends with {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    importlib.invalidate_caches()  # a package may have been installed
    return ended.stdout


def _python(block: Block, names: dict[str, Any], path: Path) -> str:
    if ">>> " in block.code:
        return _doctest(block, names, path)
    # Lines are those of the page, so that a traceback names them.
    tree = ast.parse("\n" * (block.line - 1) + block.code, str(path))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in tree.body:
            if isinstance(statement, ast.Expr):
                exec(compile(ast.Interactive([statement]), str(path), "single"), names)
            else:
                exec(compile(ast.Module([statement], []), str(path), "exec"), names)
    return printed.getvalue()


def _doctest(block: Block, names: dict[str, Any], path: Path) -> str:
    test = doctest.DocTestParser().get_doctest(block.code, {}, path.name, str(path), block.line - 1)
    test.globs = names
    report = io.StringIO()
    results = doctest.DocTestRunner(optionflags=_OPTIONS, verbose=False).run(test, out=report.write, clear_globs=False)
    if results.failed:
        raise ExampleError(report.getvalue())
    return ""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {run_page(Path(name))} examples")
