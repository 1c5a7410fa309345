"""Pins of a remote store: which root the tasks of one Spark execution read.

    pins/<name>     the number of the root, in an object that is created only if it is absent

The first task that finds no pin creates it with the newest root; the others follow it. A pin keeps no file: the root
stays for its retention after the next one took its place. The object stays longer than an execution waits for its next
task, so that a late task fails rather than reads another root than the tasks before it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.execution_pin import ENDED_SECONDS, FOLDER
from remuda.storage.remote.object_store import can_create, open_object_store

if TYPE_CHECKING:
    from remuda.storage.remote.remote_files import RemoteFiles
    from remuda.storage.remote.roots import Roots


@dataclass(frozen=True, slots=True)
class RemotePin:
    """A root, by its number. It has the face of `ExecutionPin`, and no lock: it is kept by its age alone."""

    name: str
    root: int

    def lock(self) -> None:
        """Do nothing: the root stays for its retention."""

    def unlock(self) -> None:
        """Do nothing, as `lock`."""


class RemotePins:
    """Finds and creates the pins of one store."""

    def __init__(self, files: RemoteFiles, roots: Roots, *, sole_writer: bool) -> None:
        self._files = files
        self._roots = roots
        self._can_pin = not sole_writer and can_create(files.filesystem) and find_spec("obstore") is not None

    def pin(self, name: str) -> RemotePin | None:
        """Return the pin of an execution, made now if this is its first task.

        None where the file system cannot create a file only if it is absent, where this process may not write, and in
        an old store without roots.
        """
        if not self._can_pin:
            return None
        return self._find(name) or self._create(name)

    def _find(self, name: str) -> RemotePin | None:
        raw = self._files.read(f"{FOLDER}/{name}")
        if raw is None:
            return None
        if not raw.isdigit():
            raise damage_error("the pin of a Spark execution is not as it was written", f"{self._files.name}/{FOLDER}")
        return RemotePin(name, int(raw))

    def _create(self, name: str) -> RemotePin | None:
        from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError

        newest = self._roots.newest()
        if newest is None:
            return None
        try:
            store = open_object_store(self._files.filesystem, self._files.path, self._files.name)
            store.put(f"{FOLDER}/{name}", str(newest).encode(), mode="create", use_multipart=False)
        except AlreadyExistsError:  # another task was faster, or the answer to the first try of this put was lost
            return self._find(name)
        except PermissionDeniedError:
            return None
        except (BaseError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise StorageError(f"the version of a query cannot be pinned: {reason}", self._files.name) from error
        return RemotePin(name, newest)


def ended_pins(files: RemoteFiles, now: float) -> list[str]:
    """List the pins that no execution can need any more; `now` is by the clock of the server."""
    return [name for name, date in files.dates(FOLDER).items() if now - date > ENDED_SECONDS]
