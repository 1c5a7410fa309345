"""Text in a drawing keeps its words, keeps to its room, and never becomes markup."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from remuda.plan.picture.text_layout import cells, escaped, shortened, wrapped


@given(st.text(st.characters()))
def test_escaped_text_is_the_text_of_an_element(text: str) -> None:
    element = ET.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')
    assert not list(element)
    assert (element.text or "") == element.get("b")
    printable = "".join(each for each in text if each.isprintable())
    assert all(each in (element.text or "") for each in printable)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])), st.integers(12, 60))
def test_lines_have_all_words_within_their_room(text: str, columns: int) -> None:
    lines = wrapped(text, columns, 10_000)
    assert all(cells(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.text(), st.integers(12, 30), st.integers(1, 5))
def test_what_is_too_long_is_cut_and_says_so(text: str, columns: int, most: int) -> None:
    lines = wrapped(text, columns, most)
    assert len(lines) <= most
    assert all(cells(line) <= columns for line in lines)
    if len(wrapped(text, columns, 10_000)) > most:
        assert lines[-1].endswith("…")
    assert cells(shortened(text, columns)) <= columns
