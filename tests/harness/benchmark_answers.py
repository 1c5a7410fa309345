"""Compares the answers to a benchmark's query with the oracle's: types of averages and the order of ties may differ."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp, parse_one

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = list[tuple[Any, ...]]


def same(ours: Any, theirs: Any) -> bool:
    """Averages of DECIMALs are DECIMALs here and DOUBLEs there."""
    if isinstance(ours, float | Decimal) and isinstance(theirs, float | Decimal):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6)
    return bool(ours == theirs)


def same_rows(ours: Rows, theirs: Rows) -> bool:
    return len(ours) == len(theirs) and all(
        len(one) == len(other) and all(map(same, one, other)) for one, other in zip(ours, theirs, strict=True)
    )


def same_bags(ours: Rows, theirs: Rows) -> bool:
    """The same rows in any order."""
    return same_rows(sorted(ours, key=_sortable), sorted(theirs, key=_sortable))


def is_part_of(few: Rows, all_rows: Rows) -> bool:
    return not Counter(map(_sortable, few)) - Counter(map(_sortable, all_rows))


def _sortable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is None, f"{value:.4f}" if isinstance(value, float | Decimal) else str(value)) for value in row)


def ordered_values(sql: str, names: Sequence[str], rows: Rows) -> Rows:
    """Of each row the values that the query's ORDER BY names: with ties these, and no others, are always the same."""
    order = parse_one(sql, dialect="duckdb").args.get("order")
    keys = [ordered.this for ordered in order.expressions] if order is not None else []
    wanted = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
    places = [place for place, name in enumerate(names) if name.lower() in wanted]
    return [tuple(row[place] for place in places) for row in rows]


def without_limit(sql: str) -> str | None:
    """The query with all of its rows; None where it has no LIMIT."""
    tree = parse_one(sql, dialect="duckdb")
    if tree.args.get("limit") is None:
        return None
    return sql[: sql.upper().rindex("LIMIT")]
