"""Documents keep to the width, name paths that exist, and the index of decision notes is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import markdown

REPAIR = "run `make format`"


@pytest.mark.parametrize("document", markdown.documents(), ids=lambda path: str(path.relative_to(markdown.ROOT)))
def test_a_document_is_wrapped_and_names_paths_that_exist(document: Path) -> None:
    assert not markdown.too_long(document.read_text(encoding="utf-8")), f"lines beyond 120 columns: {REPAIR}"
    assert not markdown.missing_paths(document)


def test_comments_name_files_that_exist() -> None:
    gone = {path: markdown.missing_paths(path) for path in markdown.SOURCE.rglob("*.py")}
    assert not {path.name: names for path, names in gone.items() if names}


def test_decision_notes_are_numbered_and_indexed() -> None:
    numbers = [path.name[:5] for path in markdown.decision_notes()]
    assert numbers == [f"{number:04d}-" for number in range(1, len(numbers) + 1)]
    index = (markdown.DECISIONS / "README.md").read_text(encoding="utf-8")
    assert index.endswith(markdown.decision_index()), REPAIR


def test_wrapping_keeps_the_words_and_leaves_tables_and_code_alone() -> None:
    long = "word " * 50
    text = f"# Title\n\n- one {long}\n  two\n- three\n\n| {long} |\n\n```\n{long}\n```\n\nshort\nlines\n"
    wrapped = markdown.wrap(text)
    assert wrapped.split() == text.split()
    assert markdown.too_long(text) == [3]
    assert markdown.too_long(wrapped) == []
    assert f"| {long} |" in wrapped
    assert f"```\n{long}\n```" in wrapped
    assert "short\nlines\n" in wrapped
    assert "\n- three\n" in wrapped
    assert "\n  word" in wrapped, "a list item goes on below its text"


def test_wrapping_makes_no_list_item_of_a_number() -> None:
    text = "word " * 23 + "end 2147483647. And " + "word " * 20
    assert not [line for line in markdown.wrap(text).split("\n") if line.startswith("2147483647.")]


def test_a_path_that_is_gone_is_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "`expr/nodes.py`, `expr/gone.py`, `nodes.py`, `exec/`, `no_such.py`, [a](gone.md), `plan/explain*.py`"
    )
    assert markdown.missing_paths(document) == ["expr/gone.py", "gone.md", "no_such.py"]
