"""A process that opens a folder for writing and is killed, by itself, while it takes over a delivery.

    python -m tests.storage.inbox_writer <folder> <moment>

It says on standard output when the folder is open.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from remuda.storage import MapStore, Store
from remuda.storage.folder import inbox
from tests.storage.folders import only_map

MOMENTS = ("before it is applied", "after it is applied", "after it is answered")
LATE_ROW = (-1, "written after the delivery was applied", 1.0)


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _choose(moment: str, orders: MapStore) -> None:
    def write_and_die(**_: Any) -> Any:
        orders.put([LATE_ROW])
        _die()

    if moment == MOMENTS[0]:
        MapStore.commit_segments = _die  # type: ignore[method-assign]
    elif moment == MOMENTS[1]:
        inbox.Answer = write_and_die  # type: ignore[assignment, misc]
    else:
        unlink = Path.unlink
        Path.unlink = lambda path, **options: (  # type: ignore[method-assign]
            _die() if path.suffix == inbox.CLAIMED else unlink(path, **options)
        )


if __name__ == "__main__":
    store = Store.open(Path(sys.argv[1]))
    _choose(sys.argv[2], only_map(store))
    print("open", flush=True)
    time.sleep(600)
