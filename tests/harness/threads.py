"""Work done by several threads at once, whose mistakes the test sees."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


def run_together(*works: Callable[[], None]) -> None:
    """Each in a thread of its own; when all have ended, the first error of any is raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (raised below, in the test's own thread)
            errors.append(error)

    threads = [Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
