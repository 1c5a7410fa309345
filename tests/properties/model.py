"""Order, groups and aggregates of SQL over Python rows, written down as plainly as possible."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.properties.schemas import Row


def order_key(value: Any) -> tuple[int, Any]:
    """NULL is the lowest value, NaN the greatest number; text goes by code point.

    >>> sorted([1.0, float("nan"), None, float("inf")], key=order_key)
    [None, 1.0, inf, nan]
    """
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def ordered(rows: Sequence[Row], positions: Sequence[tuple[int, bool]]) -> list[Row]:
    """Sorted by (position, descending) pairs, the first one most significant."""
    result = list(rows)
    for position, descending in reversed(positions):
        result.sort(key=lambda row: order_key(row[position]), reverse=descending)
    return result


def grouped(rows: Sequence[Row], positions: Sequence[int]) -> list[list[Row]]:
    """Rows with equal values together; NULL equals NULL here, NaN equals NaN, 0.0 equals -0.0."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(order_key(row[position]) for position in positions), []).append(row)
    return list(groups.values()) if positions else [list(rows)]


def count(values: Sequence[Any]) -> int:
    return sum(value is not None for value in values)


def least(values: Sequence[Any]) -> Any:
    return min((value for value in values if value is not None), key=order_key, default=None)


def greatest(values: Sequence[Any]) -> Any:
    return max((value for value in values if value is not None), key=order_key, default=None)


def total(values: Sequence[Any]) -> Any:
    present = [value for value in values if value is not None]
    return sum(present) if present else None


def average(values: Sequence[Any]) -> float | None:
    present = [value for value in values if value is not None]
    return float(sum(present) / len(present)) if present else None


FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "COUNT": count,
    "MIN": least,
    "MAX": greatest,
    "SUM": total,
    "AVG": average,
}


def agree(left: Any, right: Any) -> bool:
    """Whether two aggregates are the same; the order of adding up may change the last digits of a real number."""
    if left is None or right is None:
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        a, b = float(left), float(right)
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-12)
    return bool(left == right)
