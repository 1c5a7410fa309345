"""LIKE and its escapes, and the functions of strings, by row and by batch, plain and over dictionaries."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.expr import Column, Literal, Parameters, call
from remuda.types import VARCHAR
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, identity_of, record_batch

TEXT, PATTERN = Column(0, "text", VARCHAR), Column(1, "pattern", VARCHAR)
LAYOUT = {0: 0, 1: 1}


def _everywhere(name: str, text: str | None, pattern: str | None) -> list[Any]:
    """The outcome by row, and by batch with the pattern as a constant and as a column."""
    constant, column = call(name, TEXT, Literal(pattern, VARCHAR)), call(name, TEXT, PATTERN)
    assert constant is not None
    assert column is not None
    found = [evaluate_row(constant, LAYOUT, (text, pattern), ())]
    for dictionaries in (False, True):
        batch = record_batch([VARCHAR, VARCHAR], [(text, pattern)], dictionaries=dictionaries)
        for expression in (constant, column):
            together = evaluate_batch(expression, LAYOUT, batch, Parameters())
            found.append(together if isinstance(together, Failure) else together[0])
    return found


LIKE = [
    ("abc", "abc", True),
    ("abc", "ABC", False),
    ("abc", "a", False),
    ("abc", "a%", True),
    ("abc", "%c", True),
    ("abc", "%b%", True),
    ("abc", "a_c", True),
    ("abc", "a_", False),
    ("", "", True),
    ("", "%", True),
    ("", "_", False),
    ("a%c", "a\\%c", True),
    ("abc", "a\\%c", False),
    ("a_c", "a\\_c", True),
    ("abc", "a\\_c", False),
    ("a\\c", "a\\\\c", True),
    ("abc", "a\\bc", True),
    ("a.c", "a.c", True),
    ("abc", "a.c", False),
    ("(a)", "(a)", True),
    ("x\ny", "x%y", True),
    ("x\ny", "x_y", True),
    ("ü", "_", True),
    (None, "%", None),
    ("abc", None, None),
]


@pytest.mark.parametrize(("text", "pattern", "expected"), LIKE)
def test_like_matches_whole_texts(text: str | None, pattern: str | None, expected: bool | None) -> None:
    assert _everywhere("like", text, pattern) == [identity_of(expected)] * 5


ILIKE = [("abc", "ABC", True), ("ABC", "a%", True), ("Ä", "ä", True), ("İ", "i", False), ("x\nY", "X%y", True)]


@pytest.mark.parametrize(("text", "pattern", "expected"), ILIKE)
def test_ilike_does_not_regard_case(text: str, pattern: str, expected: bool) -> None:
    assert _everywhere("ilike", text, pattern) == [identity_of(expected)] * 5


@pytest.mark.parametrize("name", ["like", "ilike"])
def test_a_pattern_must_not_end_with_its_escape(name: str) -> None:
    assert _everywhere(name, "a", "a\\") == [Failure("the LIKE pattern ends with its escape character")] * 5
    assert _everywhere(name, None, "a\\") == [identity_of(None)] * 5


FUNCTIONS = [
    ("upper", ("aß",), "Aẞ"),
    ("lower", ("ÄB",), "äb"),
    ("length", ("ü\U0001f600",), 2),
    ("length", (None,), None),
    ("||", ("a", "b"), "ab"),
    ("||", ("a", None), None),
    ("coalesce", (None, "b"), "b"),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), FUNCTIONS)
def test_functions_of_text_give_the_same_everywhere(
    name: str, arguments: tuple[str | None, ...], expected: Any
) -> None:
    row = (*arguments, None)[:2]
    expression = call(name, *(TEXT, PATTERN)[: len(arguments)])
    assert expression is not None
    assert evaluate_row(expression, LAYOUT, row, ()) == identity_of(expected)
    for dictionaries in (False, True):
        batch = record_batch([VARCHAR, VARCHAR], [row], dictionaries=dictionaries)
        assert evaluate_batch(expression, LAYOUT, batch, Parameters()) == [identity_of(expected)]


def test_strings_compare_by_code_point() -> None:
    ordered = ["", "A", "Z", "a", "ab", "b", "ß", "ü", "\U0001f600"]
    less = call("<", TEXT, PATTERN)
    assert less is not None
    pairs = [(left, right) for left in ordered for right in ordered]
    expected = [identity_of(ordered.index(left) < ordered.index(right)) for left, right in pairs]
    for dictionaries in (False, True):
        batch = record_batch([VARCHAR, VARCHAR], pairs, dictionaries=dictionaries)
        assert evaluate_batch(less, LAYOUT, batch, Parameters()) == expected
    assert [evaluate_row(less, LAYOUT, pair, ()) for pair in pairs] == expected
