"""A process that writes until it is killed, and says on standard output what has been acknowledged.

    python -m tests.storage.crash_writer <folder> <seed>

Statement n puts the rows (n * 10 + 0..k) with n in every value, so a statement that is there in part can be recognised;
every fifth statement deletes the one five before it. Loads, checkpoints and indexes come in between.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from remuda.catalog import IndexKind
from remuda.storage import Durability, Store, map_store
from tests.storage.maps import index_on, orders_map, table_of

ROWS = 4


def statement_rows(number: int) -> list[tuple[int, str, float]]:
    return [(number * 10 + place, f"statement {number}", float(number)) for place in range(ROWS)]


def main(folder: str, seed: str) -> None:
    choose = random.Random(int(seed))
    map_store.SMALL_LOAD = 0
    store = Store.open(Path(folder), durability=Durability.FSYNC)
    if not store.catalog.maps:
        store.create_map(orders_map())
    (definition,) = store.catalog.maps.values()
    orders = store.map(definition)
    number = max((key for key in _statements(store)), default=0)
    while True:
        number += 1
        if number % 5 == 0:
            orders.delete([row[0] for row in statement_rows(number - 4)])
        elif choose.random() < 0.1:
            orders.load(table_of(definition, statement_rows(number)))
        else:
            orders.insert(statement_rows(number))
        print(number, flush=True)
        if choose.random() < 0.05:
            store.checkpoint()
        if choose.random() < 0.03 and len(orders.definition.indexes) < 5:
            store.create_index(orders.definition, index_on("amount", kind=choose.choice(list(IndexKind))))


def _statements(store: Store) -> set[int]:
    (definition,) = store.catalog.maps.values()
    snapshot = store.map(definition).snapshot()
    names = ["id"]
    return {
        key // 10
        for source in snapshot.sources
        for start, stop in source.ranges(None)
        for key in source.read(names, start, stop).column(0).to_pylist()
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
