"""Documents keep to the width, name paths that exist, their examples run, and the index of decision notes is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import markdown, page_examples

REPAIR = "run `make format`"
SQL_PAGES = {"sql.md", "queries.md"}
"""Pages whose SQL `tests/harness/page.py` runs."""


def named(path: Path) -> str:
    return str(path.relative_to(markdown.ROOT))


@pytest.mark.parametrize("document", markdown.documents(), ids=lambda path: str(path.relative_to(markdown.ROOT)))
def test_a_document_is_wrapped_and_names_paths_that_exist(document: Path) -> None:
    assert not markdown.too_long(document.read_text(encoding="utf-8")), f"lines beyond 120 columns: {REPAIR}"
    assert not markdown.missing_paths(document)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.spark] if "remuda.spark.session" in page.read_text() else [])
        for page in markdown.pages_with_examples()
    ],
    ids=named,
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """Run them in an empty folder; `tests/test_distribution.py` runs README again with what it installs."""
    text = page.read_text(encoding="utf-8").replace("\npip install", "\n: pip install")
    copy = tmp_path / page.name
    copy.write_text(text, encoding="utf-8")
    if "remuda.spark.session" in text:
        pytest.importorskip("pyspark")
    folder = tmp_path / "work"
    folder.mkdir()
    command = [sys.executable, page_examples.__file__, copy]
    ended = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=800)
    assert ended.returncode == 0, ended.stderr


def test_only_pages_that_are_run_as_sql_have_blocks_of_sql() -> None:
    documents = [path for path in markdown.documents() if ".forge" not in path.parts]
    found = {path.name for path in documents if "\n```sql\n" in path.read_text(encoding="utf-8")}
    assert found == SQL_PAGES


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 6\nx * 7\n```\n\n```text\n42\n```\n\n```python\nprint(x)\n```\n\n```text\n7\n```\n")
    with pytest.raises(page_examples.ExampleError, match=r"page\.md, line 15"):
        page_examples.run_page(page)
    page.write_text(page.read_text().replace("7\n```\n", "6\n```\n").replace("x * 6", "x * 7"))
    assert page_examples.run_page(page) == 2
    page.write_text("```bash\nexit 3\n```\n")
    with pytest.raises(page_examples.ExampleError, match="ends with 3"):
        page_examples.run_page(page)
    page.write_text("```java\nx\n```\n")
    with pytest.raises(page_examples.ExampleError, match="not run"):
        page_examples.run_page(page)


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
