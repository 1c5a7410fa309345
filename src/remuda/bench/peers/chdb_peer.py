"""chDB, ClickHouse in this process: a MergeTree in the order of the key. It has no index on another column.

A process has one session; each peer has a database of its own in it.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.bench.data import Data

TYPES = {
    "id": "Int64",
    "customer": "String",
    "status": "LowCardinality(String)",
    "amount": "Float64",
    "created": "DateTime64(6, 'UTC')",
    "qty": "Int32",
    "region": "LowCardinality(String)",
}
_numbers = itertools.count()


@functools.cache
def _session() -> Any:
    from chdb.session import Session

    return Session()


class ChdbPeer:
    def __init__(self, data: Data) -> None:
        self._database = f"bench{next(_numbers)}"
        self._query = _session().query
        self._query(f"CREATE DATABASE {self._database} ENGINE = Atomic")
        self._load("orders", "id", data.table)
        self._load("customers", "customer", data.customer_table)

    def rows(self, sql: str, *parameters: Any) -> Any:
        return self.arrow(sql, *parameters).to_pylist()

    def arrow(self, sql: str, *parameters: Any) -> Any:
        values = iter(parameters)
        text = re.sub(r"\?", lambda _: repr(next(values)), sql)
        return self._query(re.sub(r"\b(FROM|JOIN) (\w+)", rf"\1 {self._database}.\2", text), "ArrowTable")

    def close(self) -> None:
        self._query(f"DROP DATABASE {self._database}")

    def _load(self, name: str, key: str, source: pa.Table) -> None:
        columns = ", ".join(
            f"{field.name} {_nullable(TYPES[field.name]) if source[field.name].null_count else TYPES[field.name]}"
            for field in source.schema
        )
        self._query(f"CREATE TABLE {self._database}.{name} ({columns}) ENGINE = MergeTree ORDER BY {key}")
        # chDB finds the Arrow table by the name of this variable.
        self._query(f"INSERT INTO {self._database}.{name} SELECT * FROM Python(source)")
        self._query(f"OPTIMIZE TABLE {self._database}.{name} FINAL")


def _nullable(type_name: str) -> str:
    """Return the nullable form of a type.

    >>> _nullable("Int64"), _nullable("LowCardinality(String)")
    ('Nullable(Int64)', 'LowCardinality(Nullable(String))')
    """
    inner = re.fullmatch(r"LowCardinality\((.*)\)", type_name)
    return f"LowCardinality(Nullable({inner[1]}))" if inner else f"Nullable({type_name})"
