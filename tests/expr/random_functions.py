"""Which functions of the registry take which types: what random expressions are made of."""

from __future__ import annotations

from itertools import product

from remuda.expr import FUNCTIONS, hints_of
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARBINARY,
    VARCHAR,
    SqlType,
    decimal,
)

MONEY = decimal(10, 2)
WIDE = decimal(38, 0)
FRACTION = decimal(38, 30)
TYPES: tuple[SqlType, ...] = (
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INTEGER,
    BIGINT,
    MONEY,
    WIDE,
    FRACTION,
    REAL,
    DOUBLE,
    VARCHAR,
    VARBINARY,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    JSON,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
)

_MADE_ELSEWHERE = frozenset({"and", "or", "not", "in", "coalesce", "like", "ilike"})
_THREE = (VARCHAR, BIGINT)


def _calls() -> dict[SqlType, list[tuple[str, tuple[SqlType, ...]]]]:
    """By the type of the result, every function with every list of types that it takes as it is."""
    lists = [
        *product(TYPES, repeat=1),
        *product(TYPES, repeat=2),
        *((VARCHAR, *others) for others in product(_THREE, repeat=2)),
    ]
    found: dict[SqlType, list[tuple[str, tuple[SqlType, ...]]]] = {}
    for name, function in FUNCTIONS.items():
        own = [hints_of(function)] if len(hints_of(function)) > 2 else []
        if function.volatile:
            continue  # no two evaluations agree
        for types in [*lists, *own, ()] if name not in _MADE_ELSEWHERE else ():
            signature = function.resolve(types)
            if signature is not None:
                found.setdefault(signature.result, []).append((name, types))
    return found


CALLS = _calls()
