"""Spark's own hash of stored values: what Remuda's is measured by.

python -m tests.storage.spark_hash        writes hash_vectors.json anew, with a local Spark
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from remuda.types import BIGINT, DOUBLE, INTEGER, REAL, VARBINARY, VARCHAR, Kind, SqlType, decimal
from remuda.types.arrow_arrays import stored_array
from tests.storage.sample_values import TYPES, random_value

VECTORS = Path(__file__).with_name("hash_vectors.json")


def spark_hashes(spark: Any, rows: Sequence[Sequence[Any]], types: Sequence[SqlType]) -> list[int]:
    """`xxhash64` of each row, in the order of the rows."""
    names = [f"c{number}" for number in range(len(types))]
    arrays = [stored_array([row[number] for row in rows], sql_type) for number, sql_type in enumerate(types)]
    table = pa.table([pa.array(range(len(rows))), *arrays], names=["row", *names])
    frame = spark.createDataFrame(table).selectExpr("row", f"xxhash64({', '.join(names)}) AS hash")
    return [row["hash"] for row in sorted(frame.collect(), key=lambda row: row["row"])]


def to_json(sql_type: SqlType, value: Any) -> Any:
    if value is None:
        return None
    match sql_type.kind:
        case Kind.DECIMAL | Kind.REAL | Kind.DOUBLE:
            return repr(value) if isinstance(value, float) else str(value)
        case Kind.VARBINARY:
            return value.hex()
        case _:
            return value


def from_json(sql_type: SqlType, value: Any) -> Any:
    if value is None:
        return None
    match sql_type.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.REAL | Kind.DOUBLE:
            return float(value)
        case Kind.VARBINARY:
            return bytes.fromhex(value)
        case _:
            return value


def _cases() -> list[tuple[list[SqlType], list[list[Any]]]]:
    source = random.Random(42)
    cases: list[tuple[list[SqlType], list[list[Any]]]] = [
        ([each], [[None], *([random_value(each, source)] for _ in range(24))]) for each in TYPES
    ]
    texts = [("abcdefghijklmnopqrstuvwxyz0123456789ABCDEF")[:length] for length in range(41)]
    texts += ["é" * length for length in range(1, 21)] + ["中", "𝄞𝄞", "naïve café", "\x00"]
    cases.append(([VARCHAR], [[text] for text in texts]))
    cases.append(([VARBINARY], [[bytes(range(length))] for length in range(41)]))
    for each in (REAL, DOUBLE):
        cases.append(([each], [[math.nan], [-math.nan], [-0.0], [0.0], [math.inf], [-math.inf], [1.5]]))
    edges = [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63 - 1, 2**63, -(2**63), 10**38 - 1, 1 - 10**38]
    cases.append(([decimal(38, 0)], [[Decimal(edge)] for edge in edges]))
    for types in ([BIGINT, VARCHAR], [VARCHAR, INTEGER, DOUBLE], [decimal(38, 10), VARBINARY]):
        cases.append(
            (types, [[source.choice([None, random_value(each, source)]) for each in types] for _ in range(24)])
        )
    return cases


def _write_vectors() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    vectors = []
    for types, rows in _cases():
        hashes = spark_hashes(session, rows, types)
        named = [[each.kind.value, each.precision, each.scale] for each in types]
        values = [[to_json(each, value) for each, value in zip(types, row, strict=True)] for row in rows]
        vectors.append({"types": named, "rows": values, "hashes": hashes})
    lines = ",\n".join(json.dumps(vector, ensure_ascii=True) for vector in vectors)
    VECTORS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    session.stop()


if __name__ == "__main__":
    _write_vectors()
