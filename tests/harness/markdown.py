"""The Markdown of the repository: lines of at most 120 columns, paths that exist, an index of the decision notes.

`python -m tests.harness.markdown` wraps what is too long and writes the index anew.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness import page_examples

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "remuda"
DECISIONS = ROOT / "docs" / "decisions"
COLUMNS = 120

_GENERATED = {"benchmarks.md"}
"""Pages that a command writes; the command has tests of its own."""

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])\s+")
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"(?![A-Z]\w*\.plan)[\w.*/-]+\.(?:py|md|plan|slt|toml|sh|txt)")
_STATUS = re.compile(r"\*\*Status:\*\* (.+) · \*\*Date:\*\* (\d{4}-\d{2}-\d{2})")


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob(".forge/**/*.md"), *ROOT.glob("docs/**/*.md")])


def pages_with_examples() -> list[Path]:
    """The pages of the site, and README, that have a block of Python or of a shell."""
    pages = [path for path in documents() if path.parent.name not in {"decisions", "project"}]
    return [
        path
        for path in pages
        if path.name not in _GENERATED
        and any(
            not block.exempt and block.language in {"bash", "python"}
            for block in page_examples.blocks(path.read_text(encoding="utf-8"))
        )
    ]


def too_long(text: str) -> list[int]:
    """Return the numbers of the lines beyond the limit, counted from 1. Tables and code have no limit."""
    return [number for number, line, is_prose in _lines(text) if is_prose and len(line) > COLUMNS and " " in line]


def wrap(text: str) -> str:
    """Wrap the paragraphs that have a line beyond the limit; all others stay as they are."""
    result: list[str] = []
    paragraph: list[str] = []

    def end() -> None:
        result.extend(_wrap_paragraph(paragraph) if any(len(line) > COLUMNS for line in paragraph) else paragraph)
        paragraph.clear()

    for _, line, is_prose in _lines(text):
        if not is_prose or not line.strip() or line.startswith("#"):
            end()
            result.append(line)
            continue
        if _ITEM.match(line):
            end()
        paragraph.append(line)
    end()
    return "\n".join(result)


def missing_paths(document: Path) -> list[str]:
    """Return the files and folders that the document, or a module of the source, names and that are not there.

    A path begins at the root of the repository, at `src/remuda`, or beside the document. A bare file name is that of a
    file somewhere below `src`, `tests` or `benchmarks`.
    """
    text = "\n".join(
        line for _, line, is_prose in _lines(document.read_text(encoding="utf-8"), tables=True) if is_prose
    )
    links = [link for link in _LINK.findall(text) if "://" not in link] if document.suffix == ".md" else []
    return sorted({path for path in (*_paths(text), *links) if not _exists(path, document.parent)})


def decision_index() -> str:
    """Return the table of all decision notes, as `docs/decisions/README.md` ends with it."""
    rows = ["| number | title | status | date |", "| --- | --- | --- | --- |"]
    for path in decision_notes():
        title, _, status, *_ = path.read_text(encoding="utf-8").split("\n", 3)
        found = _STATUS.fullmatch(status)
        assert found is not None, f"{path.name}: the third line is **Status:** ... · **Date:** ..."
        rows.append(f"| [{path.name[:4]}]({path.name}) | {title.removeprefix('# ')} | {found[1]} | {found[2]} |")
    return "\n".join(rows) + "\n"


def decision_notes() -> list[Path]:
    return sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")


def _lines(text: str, *, tables: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Each line with its number, and whether it is prose: not code, and no table unless `tables` says so."""
    in_code = False
    for number, line in enumerate(text.split("\n"), start=1):
        is_fence = _FENCE.match(line) is not None
        in_code = in_code != is_fence
        yield number, line, not (in_code or is_fence or (line.lstrip().startswith("|") and not tables))


def _wrap_paragraph(lines: list[str]) -> list[str]:
    item = _ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    words = " ".join(line.strip() for line in lines)[len(first.lstrip()) :]
    # A word like the mark of an item stays behind the word before it: at the start of a line it would be one.
    held = re.sub(r" (?=(?:[-*+]|\d+[.)]) )", "\0", words)
    wrapped = textwrap.wrap(
        held,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in wrapped]


def _paths(text: str) -> Iterator[str]:
    folders = {path.name for path in (*SOURCE.iterdir(), *ROOT.iterdir()) if path.is_dir()}
    for span in _SPAN.findall(text):
        if _FILE.fullmatch(span) or (span.endswith("/") and span.split("/")[0] in folders):
            yield span


def _exists(path: str, folder: Path) -> bool:
    if any(list(base.glob(path)) if "*" in path else (base / path).exists() for base in (ROOT, SOURCE, folder)):
        return True
    return path in _file_names()


@cache
def _file_names() -> frozenset[str]:
    return frozenset(path.name for base in ("src", "tests", "benchmarks") for path in (ROOT / base).rglob("*.*"))


def main() -> None:
    for document in documents():
        document.write_text(wrap(document.read_text(encoding="utf-8")), encoding="utf-8")
    index = DECISIONS / "README.md"
    head, _, _ = index.read_text(encoding="utf-8").partition("| number |")
    index.write_text(head + decision_index(), encoding="utf-8")


if __name__ == "__main__":
    main()
