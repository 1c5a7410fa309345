"""Random values in stored form for every type a column can have."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_RANGES,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    VARBINARY,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
    to_stored,
)

TYPES: tuple[SqlType, ...] = (
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INTEGER,
    BIGINT,
    decimal(9, 2),
    decimal(18, 0),
    decimal(19, 4),
    decimal(38, 10),
    REAL,
    DOUBLE,
    VARCHAR,
    VARBINARY,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
)

_LETTERS = "aZ0 éß中𝄞\x00'"
_SPECIAL = (math.nan, -0.0, 0.0, math.inf, -math.inf)


def random_value(sql_type: SqlType, source: random.Random) -> Any:
    match sql_type.kind:
        case Kind.BOOLEAN:
            return source.random() < 0.5
        case Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            low, high = INTEGER_RANGES[sql_type.kind]
            return source.choice([low, high, 0, -1, source.randint(low, high), source.randint(low, high)])
        case Kind.DECIMAL:
            digits = source.randint(1, sql_type.precision)
            unscaled = source.choice([-1, 1]) * source.randrange(10**digits)
            sign, figures, _ = Decimal(unscaled).as_tuple()
            return Decimal((sign, figures, -sql_type.scale))
        case Kind.REAL | Kind.DOUBLE:
            number = source.choice([*_SPECIAL, source.uniform(-1e6, 1e6), source.uniform(-1, 1) * 1e30])
            return to_stored(sql_type, number)
        case Kind.VARCHAR:
            return "".join(source.choices(_LETTERS, k=source.randint(0, 40)))
        case Kind.VARBINARY:
            return source.randbytes(source.randint(0, 40))
        case Kind.DATE:
            return source.randint(-100_000, 100_000)
        case Kind.TIME:
            return source.randrange(86_400_000_000)
        case _:
            return source.randint(-(10**16), 10**16)
