"""The golden plan format itself."""

from __future__ import annotations

import pytest

from tests.harness.plan_file import Load, PlanFileError, Setup, parse, rewrite

TEXT = """\
# Two cases.

setup
CREATE TABLE t (k BIGINT, PRIMARY KEY (k));
CREATE INDEX i ON t (k);

load t
SELECT i AS k FROM range(3) AS r(i)

plan expect=a,b members=3
SELECT k
FROM t
----
Root
  Scan

# why this case is here
plan disable=c
SELECT 1
----
"""


def test_parse_reads_header_and_cases() -> None:
    file = parse(TEXT)
    assert file.header == (
        Setup(("CREATE TABLE t (k BIGINT, PRIMARY KEY (k))", "CREATE INDEX i ON t (k)")),
        Load("t", "SELECT i AS k FROM range(3) AS r(i)"),
    )
    first, second = file.cases
    assert (first.sql, first.expected, first.members) == ("SELECT k\nFROM t", "Root\n  Scan", 3)
    assert (first.expect, first.disable) == ({"a", "b"}, frozenset())
    assert (second.sql, second.expected, second.disable) == ("SELECT 1", "", {"c"})


def test_rewrite_with_the_same_plans_changes_nothing() -> None:
    cases = parse(TEXT).cases
    assert rewrite(TEXT, {cases[0].line: cases[0].expected}) == TEXT


def test_rewrite_replaces_only_the_named_cases() -> None:
    first, second = parse(TEXT).cases
    longer = rewrite(TEXT, {first.line: "Root\n  Sort\n    Scan\n", second.line: "Values"})
    assert [case.expected for case in parse(longer).cases] == ["Root\n  Sort\n    Scan", "Values"]
    assert [case.expected for case in parse(rewrite(TEXT, {second.line: "Values"})).cases] == ["Root\n  Scan", "Values"]
    assert "# why this case is here" in longer


@pytest.mark.parametrize(
    "text",
    [
        "plan\nSELECT 1",
        "plan unknown=1\nSELECT 1\n----\n",
        "plan expect\nSELECT 1\n----\n",
        "query\nSELECT 1",
        "plan\nSELECT 1\n----\nRoot\n\nsetup\nCREATE TABLE t (k BIGINT)",
    ],
)
def test_parse_refuses_what_it_does_not_know(text: str) -> None:
    with pytest.raises(PlanFileError, match=r"line 1|line 6"):
        parse(text)
