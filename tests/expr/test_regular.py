"""Regular expressions: the groups of a pattern, options, errors of the pattern."""

from __future__ import annotations

import pytest

from remuda.expr import Column, Literal, Parameters, call, can_fail
from remuda.expr.functions.regular import named_groups
from remuda.types import BIGINT, VARCHAR
from tests.expr.evaluation import Failure, evaluate_batch, evaluate_row, record_batch

TEXT = Column(0, "s", VARCHAR)


@pytest.mark.parametrize(
    ("pattern", "named", "count"),
    [
        ("a", "(?P<g0>a)", 0),
        ("(a)(b)", "(?P<g0>(?P<g1>a)(?P<g2>b))", 2),
        (r"\(a(b)", r"(?P<g0>\(a(?P<g1>b))", 1),
        ("[(](a)", "(?P<g0>[(](?P<g1>a))", 1),
        ("[]()](a)", "(?P<g0>[]()](?P<g1>a))", 1),
        ("[^]()](a)", "(?P<g0>[^]()](?P<g1>a))", 1),
        ("[[:alpha:](](a)", "(?P<g0>[[:alpha:](](?P<g1>a))", 1),
        ("(?i)(?:a)(?P<name>b)(?<other>c)", "(?P<g0>(?i)(?:a)(?P<g1>b)(?P<g2>c))", 2),
    ],
)
def test_groups_are_found(pattern: str, named: str, count: int) -> None:
    assert named_groups(pattern) == (named, count)


def outcome(name: str, text: str | None, *others: str | int) -> object:
    literals = [Literal(value, VARCHAR if isinstance(value, str) else BIGINT) for value in others]
    expression = call(name, TEXT, *literals)
    assert expression is not None
    alone = evaluate_row(expression, {0: 0}, (text,), ())
    for dictionaries in (False, True):
        batch = record_batch([VARCHAR], [(text,)], dictionaries=dictionaries)
        together = evaluate_batch(expression, {0: 0}, batch, Parameters())
        assert together == (alone if isinstance(alone, Failure) else [alone])
    return alone if isinstance(alone, Failure) else alone[1]


def test_groups_are_extracted_by_number() -> None:
    assert outcome("regexp_extract", "key=val", r"(\w+)=(\w+)") == "key=val"
    assert outcome("regexp_extract", "key=val", r"(\w+)=(\w+)", 2) == "val"
    assert outcome("regexp_extract", "nothing", r"(\w+)=(\w+)", 2) == ""
    assert outcome("regexp_extract", None, "a") is None
    assert outcome("regexp_extract", "a", "(a)", 2) == Failure("the regular expression has no group 2")


def test_letters_choose_how_to_match() -> None:
    assert outcome("regexp_matches", "ABC", "b") is False
    assert outcome("regexp_matches", "ABC", "b", "i") is True
    assert outcome("regexp_matches", "a\nb", "a.b") is False
    assert outcome("regexp_matches", "a\nb", "a.b", "s") is True
    assert outcome("regexp_replace", "a.b.c", "[.]", "-") == "a-b.c"
    assert outcome("regexp_replace", "a.b.c", "[.]", "-", "g") == "a-b-c"
    assert outcome("regexp_count", "banana", "an") == 2
    assert isinstance(outcome("regexp_matches", "a", "a", "z"), Failure)


def test_a_bad_pattern_is_an_error_only_for_a_text() -> None:
    assert isinstance(outcome("~", "a", "("), Failure)
    assert outcome("~", None, "(") is None


def test_only_a_pattern_that_is_not_known_to_be_right_can_fail() -> None:
    for pattern, expected in ((Literal("a+", VARCHAR), False), (Literal("(", VARCHAR), True), (TEXT, True)):
        for name in ("~", "like", "similar to"):
            expression = call(name, TEXT, pattern)
            assert expression is not None
            assert can_fail(expression) is (expected and not (name == "like" and pattern != TEXT))
