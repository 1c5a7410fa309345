"""A process that writes until it is killed, and says on standard output what has been acknowledged.

    python -m tests.storage.crash_writer <folder> <number of the first statement> <bytes of a partition group>

What statement n does follows from n alone (`effect_of`), so whoever reads the numbers knows what must be there.
Statements are at random of few rows or of many, which commit segments. Checkpoints, OPTIMIZE and index changes, which
change no row, come in between at random.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Literal

import pyarrow as pa

from remuda.catalog import IndexType
from remuda.storage import Durability, MapStore, Store
from remuda.storage.load import map_load, segment_cut
from remuda.storage.load.statement_load import StatementLoad, delete_rows
from tests.storage.maps import index_on, orders_map, table_of

ROWS = 4
SHARED = 5
"""Keys -1 to -5 are written again and again, all others once."""

Row = tuple[int, str, float]
Kind = Literal["insert", "put", "delete", "load", "upsert"]
KINDS: tuple[Kind, ...] = ("insert", "insert", "insert", "put", "put", "delete", "delete", "load", "upsert")


def statement_rows(number: int, count: int = ROWS) -> list[Row]:
    return [(number * 10 + place, f"statement {number}", float(number)) for place in range(count)]


def effect_of(number: int) -> tuple[Kind, list[Row], list[int]]:
    """The kind of the statement, the rows it writes, the keys it deletes."""
    choose = random.Random(number)
    kind: Kind = choose.choice(KINDS)
    if kind == "delete":
        return kind, [], [row[0] for row in statement_rows(choose.randint(max(1, number - 9), number))]
    if kind in {"put", "upsert"}:
        shared = choose.sample(range(1, SHARED + 1), choose.randint(1, SHARED))
        return kind, [(-key, f"statement {number}", float(number)) for key in shared], []
    return kind, statement_rows(number, choose.choice((1, 1, ROWS, 9))), []


def apply_effect(model: dict[int, Row], number: int) -> dict[int, Row]:
    """What the statement makes of a map with these rows."""
    _, rows, keys = effect_of(number)
    return {key: row for key, row in model.items() if key not in keys} | {row[0]: row for row in rows}


def run(orders: MapStore, number: int, *, many: bool) -> None:
    """Run the statement; with `many` as one of many rows, which commits segments and deletion vectors."""
    match effect_of(number):
        case "insert" | "put" as kind, rows, _ if many:
            with orders.writing():
                load = StatementLoad(orders, "append" if kind == "insert" else "upsert")
                load.add(table_of(orders.definition, rows).columns)
                load.commit()
        case "delete", _, keys if many:
            with orders.writing():
                delete_rows(orders, [pa.array(keys, pa.int64())])
        case "insert", rows, _:
            orders.insert(rows)
        case "put", rows, _:
            orders.put(rows)
        case "delete", _, keys:
            orders.delete(keys)
        case "load", rows, _:
            orders.load(table_of(orders.definition, rows))
        case "upsert", rows, _:
            orders.load(table_of(orders.definition, rows), "upsert")


def main(folder: str, first: str, group_bytes: str) -> None:
    choose = random.Random()
    segment_cut.GROUP_BYTES = int(group_bytes)
    map_load.SMALL_LOAD = 0
    store = Store.open(Path(folder), durability=Durability.FSYNC)
    if not store.catalog.maps:
        store.create_map(orders_map())
    (definition,) = store.catalog.maps.values()
    orders = store.map(definition)
    number = int(first)
    while True:
        run(orders, number, many=choose.random() < 0.3)
        print(number, flush=True)
        number += 1
        if choose.random() < 0.05:
            store.checkpoint()
        if choose.random() < 0.05:
            orders.optimize()
        if choose.random() < 0.05:
            indexes = orders.definition.indexes
            if len(indexes) < 4:
                store.create_index(orders.definition, index_on("amount", type_=choose.choice(list(IndexType))))
            else:
                store.drop_index(orders.definition, choose.choice(indexes))


if __name__ == "__main__":
    main(*sys.argv[1:])
