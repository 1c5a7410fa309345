"""A process that writes until it is killed, and says on standard output what has been acknowledged.

    python -m tests.storage.crash_writer <folder> <number of the first statement> <bytes of a partition group>

What statement n does follows from n alone (`effect_of`), so whoever reads the numbers knows what must be there.
Statements are at random of few rows or of many, which commit segments. What changes no row comes in between at random:
checkpoints, OPTIMIZE, VACUUM, index changes, a batch of changes that was applied before, and a RESTORE of the newest
version.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Literal

import pyarrow as pa

from remuda.catalog import IndexType
from remuda.storage import Durability, MapStore, Store
from remuda.storage.folder import kept_versions
from remuda.storage.load import map_load, segment_cut
from remuda.storage.load.change_format import ChangeFormat
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.statement_load import StatementLoad, delete_rows
from remuda.storage.state.applied_batches import BatchId
from tests.storage.maps import index_on, orders_map, table_of

ROWS = 4
SHARED = 5
"""Keys -1 to -5 are written again and again, all others once."""

Row = tuple[int, str, float]
Kind = Literal["insert", "put", "delete", "load", "upsert", "apply", "replace", "truncate"]
OFTEN: tuple[Kind, ...] = ("insert", "insert", "insert", "put", "put", "delete", "delete", "load", "upsert", "apply")
SELDOM: tuple[Kind, ...] = ("replace", "truncate")


def statement_rows(number: int, count: int = ROWS) -> list[Row]:
    return [(number * 10 + place, f"statement {number}", float(number)) for place in range(count)]


def effect_of(number: int) -> tuple[Kind, list[Row], list[int]]:
    """The kind of the statement, the rows it writes, the keys it deletes."""
    choose = random.Random(number)
    kind: Kind = choose.choice(OFTEN if choose.random() < 0.95 else SELDOM)
    some_before = [row[0] for row in statement_rows(choose.randint(max(1, number - 9), number))]
    if kind == "truncate":
        return kind, [], []
    if kind == "delete":
        return kind, [], some_before
    if kind in {"put", "upsert", "apply"}:
        shared = choose.sample(range(1, SHARED + 1), choose.randint(1, SHARED))
        return (
            kind,
            [(-key, f"statement {number}", float(number)) for key in shared],
            (some_before if kind == "apply" else []),
        )
    return kind, statement_rows(number, choose.choice((1, 1, ROWS, 9))), []


def apply_effect(model: dict[int, Row], number: int) -> dict[int, Row]:
    """What the statement makes of a map with these rows."""
    kind, rows, keys = effect_of(number)
    if kind in SELDOM:
        model = {}
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
        case "upsert" | "replace" as mode, rows, _:
            orders.load(table_of(orders.definition, rows), mode)
        case "truncate", _, _:
            orders.truncate()
        case "apply", rows, keys:
            apply_batch(orders, number, rows, keys)


def apply_batch(orders: MapStore, number: int, rows: list[Row], keys: list[int]) -> None:
    """Apply changes as the batch of the statement: it changes nothing where a later one was applied, or the same."""
    gone = [(key, "gone", 0.0) for key in keys]
    words = pa.array(["u"] * len(rows) + ["d"] * len(gone))
    table = table_of(orders.definition, [*rows, *gone]).append_column("op", words)
    orders.load_changes([table], ChangeFormat("op"), ChangeRules(batch=BatchId("statements", number)))


def maintain(store: Store, orders: MapStore, choose: random.Random, applied: list[int]) -> None:
    """Do something that changes no row. `applied` has the statements of this process that were batches of changes."""
    match choose.choice(("checkpoint", "optimize", "index", "vacuum", "again", "restore")):
        case "checkpoint":
            store.checkpoint()
        case "optimize":
            orders.optimize()
        case "vacuum":
            store.vacuum()
        case "restore":
            store.checkpoint()
            store.restore_map(orders.definition, store.history.newest())
        case "again" if applied:
            number = choose.choice(applied)
            _, rows, keys = effect_of(number)
            apply_batch(orders, number, rows, keys)
        case _:
            indexes = orders.definition.indexes
            if len(indexes) < 4:
                store.create_index(orders.definition, index_on("amount", type_=choose.choice(list(IndexType))))
            else:
                store.drop_index(orders.definition, choose.choice(indexes))


def main(folder: str, first: str, group_bytes: str) -> None:
    choose = random.Random()
    segment_cut.GROUP_BYTES = int(group_bytes)
    map_load.SMALL_LOAD = 0
    kept_versions.MOST_VERSIONS = 5
    store = Store.open(Path(folder), durability=Durability.FSYNC)
    if not store.catalog.maps:
        store.create_map(orders_map())
    (definition,) = store.catalog.maps.values()
    orders = store.map(definition)
    number = int(first)
    applied: list[int] = []
    while True:
        run(orders, number, many=choose.random() < 0.3)
        print(number, flush=True)
        if effect_of(number)[0] == "apply":
            applied.append(number)
        number += 1
        if choose.random() < 0.25:
            maintain(store, orders, choose, applied)


if __name__ == "__main__":
    main(*sys.argv[1:])
