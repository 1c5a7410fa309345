"""The `.slt` format itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from tests.harness.slt import Guard, Load, Query, SltFileError, Statement, parse, rewrite
from tests.harness.slt_values import WrongTypeError, render_rows, render_value

TEXT = """\
# a comment
statement ok
CREATE TABLE t (k BIGINT,
                PRIMARY KEY (k))

statement count 2
INSERT INTO t VALUES (1), (2)

skipif duckdb
onlyif spark
statement error duplicate|exists
INSERT INTO t VALUES (1)

load t
SELECT i AS k FROM range(3, 5) AS r(i)

parameters [1, "x", null]
query IT rowsort same
SELECT k, v FROM t
----
1 one
2 NULL

query I
SELECT k FROM t WHERE 1 = 2
----
"""


def test_parse_reads_every_kind_of_record() -> None:
    create, insert, fail, load, query, empty = parse(TEXT)
    assert create == Statement(2, "CREATE TABLE t (k BIGINT,\n                PRIMARY KEY (k))")
    assert insert == Statement(6, "INSERT INTO t VALUES (1), (2)", count=2)
    assert isinstance(fail, Statement)
    assert (fail.error, fail.guard) == ("duplicate|exists", Guard(frozenset({"duckdb"}), frozenset({"spark"})))
    assert load == Load(14, "t", "SELECT i AS k FROM range(3, 5) AS r(i)")
    assert query == Query(
        18, "SELECT k, v FROM t", "IT", ("1 one", "2 NULL"), (1, "x", None), order="rowsort", label="same"
    )
    assert empty == Query(24, "SELECT k FROM t WHERE 1 = 2", "I", ())


@pytest.mark.parametrize(
    "text",
    [
        "statement maybe\nSELECT 1",
        "statement count many\nSELECT 1",
        "statement ok",
        "query X nosort\nSELECT 1\n----\n",
        "query I sometimes\nSELECT 1\n----\n",
        "query I nosort\nSELECT 1",
        "SELECT 1",
    ],
)
def test_parse_refuses_what_it_does_not_know(text: str) -> None:
    with pytest.raises(SltFileError, match="line 1"):
        parse(text)


def test_rewrite_replaces_only_the_named_queries() -> None:
    *_, query, empty = parse(TEXT)
    assert rewrite(TEXT, {query.line: ["1 one", "2 NULL"]}) == TEXT
    *_, first, second = parse(rewrite(TEXT, {query.line: ["3 three"], empty.line: ["1", "2"]}))
    assert isinstance(first, Query)
    assert isinstance(second, Query)
    assert (first.expected, second.expected) == (("3 three",), ("1", "2"))


def test_guards() -> None:
    names = frozenset({"remuda", "spark"})
    assert Guard().admits(names)
    assert not Guard(skip=frozenset({"spark"})).admits(names)
    assert Guard(only=frozenset({"spark", "duckdb"})).admits(names)
    assert not Guard(only=frozenset({"duckdb"})).admits(names)


def test_rows_that_differ_look_different() -> None:
    texts: list[Any] = [None, "NULL", "", "(empty)", "'", " ", "\t", "\n"]
    rows = [("a b", "c"), ("a", "b c"), *[(text, "x") for text in texts]]
    assert len(set(render_rows("TT", rows))) == len(rows)


def test_values_of_every_type() -> None:
    assert render_value("P", dt.datetime(2024, 1, 2, 3, 4, 5)) == "2024-01-02T03:04:05"
    assert render_value("D", dt.date(2024, 1, 2)) == "2024-01-02"
    assert render_value("R", 0.1 + 0.2) == "0.3"
    assert render_value("R", Decimal("2.50")) == "2.5"
    assert render_value("R", float("nan")) == "nan"


@pytest.mark.parametrize(
    ("type_", "value"), [("I", 1.0), ("I", True), ("R", 1), ("T", 1), ("B", 1), ("D", dt.datetime(2024, 1, 2))]
)
def test_a_value_of_another_type_is_an_error(type_: str, value: object) -> None:
    with pytest.raises(WrongTypeError):
        render_value(type_, value)
