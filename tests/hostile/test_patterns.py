"""Patterns: no engine backtracks exponentially, and one row gets the same answer as a column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.errors import SqlError
from remuda.expr.registry import FUNCTIONS
from remuda.types import BIGINT, VARCHAR, SqlType
from tests.hostile.processes import run_apart

EXPONENTIAL = {
    "like": ("a" * 40, "%a" * 25 + "%c"),
    "like of any": ("a" * 5_000, "%_a" * 20 + "b"),
    "similar to": ("a" * 40, "(a|a)*" * 10 + "c"),
    "~": ("a" * 40, "(a+)+$c"),
    "regexp_full_match": ("a" * 40, "(a|aa)+c"),
}


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_no_exponential_backtracking(name: str) -> None:
    """With a constant pattern, with one from a column, of one row, with a parameter, without regard to case."""
    text, pattern = EXPONENTIAL[name]
    operator = name.split(" of", maxsplit=1)[0].upper()
    operators = [operator, "ILIKE"] if operator == "LIKE" else [operator]
    for each in operators:
        call = "regexp_full_match({}, {})" if "regexp" in name else f"{{}} {each} {{}}"
        body = f"""
grid.sql("CREATE TABLE t (id BIGINT, s VARCHAR, p VARCHAR, PRIMARY KEY (id))")
for id_ in range(20):
    grid.sql("INSERT INTO t VALUES (?, ?, ?)", id_, {text!r}, {pattern!r})
found = [
    grid.sql("SELECT count(*) FROM t WHERE {call.format("s", "p")}").fetchone()[0],
    grid.sql("SELECT count(*) FROM t WHERE {call.format("s", "?")}", {pattern!r}).fetchone()[0],
    grid.sql("SELECT s FROM t WHERE id = 1 AND {call.format("s", "p")}").fetchall(),
    grid.sql("SELECT s FROM t WHERE id = 1 AND {call.format("s", "?")}", {pattern!r}).fetchall(),
    grid.sql("SELECT {call.format("CAST(? AS VARCHAR)", "?")}", {text!r}, {pattern!r}).fetchone()[0],
]
print(found)
"""
        assert run_apart(body) == "[0, 0, [], [], False]"


TEXTS = st.text("ab%_\\\n.é😀İß$^*", max_size=12) | st.text(max_size=6)
PATTERNS = {
    "like": st.text("ab%_\\\n.éİi", max_size=10),
    "ilike": st.text("abAB%_\\\n.éÉ", max_size=10),
    "similar to": st.text("ab%_\\()|*+.[]", max_size=8),
    "~": st.text("ab.*+?()|^$[]\\d", max_size=8),
    "~*": st.text("aB.*+?()|^$[]\\d", max_size=8),
    "regexp_matches": st.text("ab.*+?()|^$[]", max_size=8),
    "regexp_full_match": st.text("ab.*+?()|^$[]", max_size=8),
    "regexp_count": st.text("ab.*+?()|^$[]", max_size=8),
    "regexp_extract": st.text("ab.*+?()|^$[]", max_size=8),
    "contains": TEXTS,
    "starts_with": TEXTS,
    "ends_with": TEXTS,
    "position": TEXTS,
    "trim": TEXTS,
    "ltrim": TEXTS,
    "rtrim": TEXTS,
}
NUMBERS = st.integers(-5, 20) | st.sampled_from([2**31, -(2**31), 2**62])
CALLS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    **{name: (TEXTS, patterns) for name, patterns in PATTERNS.items()},
    "replace": (TEXTS, st.text("ab%é", max_size=2), TEXTS),
    "regexp_replace": (TEXTS, PATTERNS["~"], st.text("ab\\01", max_size=5), st.sampled_from(["", "g", "gi", "s", "x"])),
    "repeat": (TEXTS, st.integers(-5, 50)),
    "lpad": (TEXTS, NUMBERS, TEXTS),
    "rpad": (TEXTS, NUMBERS, TEXTS),
    "left": (TEXTS, NUMBERS),
    "right": (TEXTS, NUMBERS),
    "substring": (TEXTS, NUMBERS, NUMBERS),
    "split_part": (TEXTS, st.text("ab%é", max_size=2), st.integers(-4, 4)),
    "translate": (TEXTS, TEXTS, TEXTS),
    "overlay": (TEXTS, TEXTS, st.integers(-2, 15), st.integers(-2, 15)),
    "upper": (TEXTS,),
    "lower": (TEXTS,),
    "reverse": (TEXTS,),
    "initcap": (TEXTS,),
    "concat": (TEXTS, TEXTS, TEXTS),
    "concat_ws": (TEXTS, TEXTS, TEXTS),
    "||": (TEXTS, TEXTS),
    "levenshtein": (TEXTS, TEXTS),
    "length": (TEXTS,),
    "octet_length": (TEXTS,),
}


def _type(value: Any) -> SqlType:
    return BIGINT if isinstance(value, int) else VARCHAR


def _outcome(evaluate: Any) -> Any:
    try:
        return evaluate()
    except SqlError as error:
        return error.code


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_one_row_agrees_with_a_column(name: str, data: st.DataObject) -> None:
    """With all arguments from columns, and with all but the first the same for every row."""
    rows = data.draw(st.lists(st.tuples(*CALLS[name]), min_size=1, max_size=4))
    constants = rows[0][1:]
    function = FUNCTIONS[name]
    signature = function.resolve([_type(value) for value in rows[0]])
    assert signature is not None
    row, batch = function.row(signature), function.batch(signature)

    def stored(value: Any) -> pa.Scalar:
        return pa.scalar(value, _type(value).arrow)

    for values in rows:
        columns = [pa.array([value], _type(value).arrow) for value in values]
        wanted = _outcome(lambda values=values: row(*values))
        assert _outcome(lambda columns=columns: batch(*columns)[0].as_py()) == wanted
    texts = pa.array([values[0] for values in rows], _type(rows[0][0]).arrow)
    wanted = [_outcome(lambda values=values: row(values[0], *constants)) for values in rows]
    found = _outcome(lambda: batch(texts, *map(stored, constants)))
    failed = [each for each in wanted if hasattr(each, "name")]
    if failed:
        assert found in failed
    else:
        assert found.to_pylist() == wanted
