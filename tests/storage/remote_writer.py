"""A process that commits to a remote store, and says what was acknowledged.

It gets the address, its number, how many commits it makes, and a name of a cache. Each commit is of one kind: rows that
are appended to either of two maps, an upsert of keys that all writers write, statements with a checkpoint, the deletion
of rows that it has added itself. It prints `begin <JSON>` before and `done` after each one, so that the reader knows
what must be there, and what may be there if the process was killed in between. `FAULT=n` kills it in its n-th commit
after the upload of its files and before its root. `GROUP_BYTES=n` is the target size of partition groups.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from typing import Any

import pyarrow as pa

import remuda
from remuda.storage.load import segment_cut
from remuda.storage.remote.roots import Roots

SHARED = 50
"""Keys below are written by all writers."""
ROWS = 20


def _table(keys: list[int], value: int) -> pa.Table:
    return pa.table({"id": keys, "v": pa.array([value] * len(keys), pa.int64())})


def _change(grid: Any, kind: str, change: dict[str, Any]) -> None:
    rows: dict[str, dict[str, int]] = change["put"]
    if kind == "statements":
        for name, put in rows.items():
            for key, value in put.items():
                grid.sql(f"INSERT INTO {name} VALUES (?, ?)", int(key), value)
            for key in change["deleted"][name]:
                grid.sql(f"DELETE FROM {name} WHERE id = ?", key)
        grid.checkpoint()
        return
    for name, put in rows.items():
        keys = [int(key) for key in put]
        grid.load(name, _table(keys, next(iter(put.values()))), kind)


def _chosen(number: int, commit: int, own: list[int], random_: random.Random) -> tuple[str, dict[str, Any]]:
    """Choose a kind of commit, and the rows that it puts and deletes."""
    value = number * 1_000_000 + commit
    first = (number + 1) * 1_000_000 + commit * ROWS
    keys = list(range(first, first + ROWS))
    name = random_.choice(("t", "u"))
    match random_.choice(("append", "append", "upsert", "statements")):
        case "append":
            own.extend(keys if name == "t" else [])
            return "append", {"put": {name: dict.fromkeys(map(str, keys), value)}, "deleted": {}}
        case "upsert":
            shared = random_.sample(range(SHARED), 5)
            return "upsert", {"put": {"t": dict.fromkeys(map(str, shared), value)}, "deleted": {}}
        case _:
            deleted = [own.pop(random_.randrange(len(own))) for _ in range(min(3, len(own)))]
            own.extend(keys[:2])
            put = {"t": dict.fromkeys(map(str, keys[:2]), value), "u": dict.fromkeys(map(str, keys[:2]), value)}
            return "statements", {"put": put, "deleted": {"t": deleted, "u": []}}


def _kill_at(commit: int) -> None:
    """Kill this process in the n-th creation of a root."""
    create, seen = Roots.create, 0

    def create_or_die(self: Roots, root: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == commit:
            os.kill(os.getpid(), signal.SIGKILL)
        create(self, root)

    Roots.create = create_or_die


def main(address: str, number: int, commits: int, cache: str) -> None:
    segment_cut.GROUP_BYTES = int(os.environ.get("GROUP_BYTES", segment_cut.GROUP_BYTES))
    if "FAULT" in os.environ:
        _kill_at(int(os.environ["FAULT"]))
    random_, own = random.Random(number), []
    with remuda.open(address, durability="none", cache=cache) as grid:
        for commit in range(commits):
            kind, change = _chosen(number, commit, own, random_)
            print("begin", json.dumps(change), flush=True)
            _change(grid, kind, change)
            print("done", flush=True)
    print("closed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
