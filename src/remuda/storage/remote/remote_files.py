"""The files of a store on a file system of `pyarrow.fs`, by their names within the store."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from errno import ENOENT
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pf

from remuda.catalog import new_id
from remuda.dataclass import dataclass
from remuda.errors import StorageError, damage_error
from remuda.storage.folder.group_file import GroupRef, decode_group
from remuda.storage.remote.compressed_object import compressed_pieces
from remuda.storage.segment.array_file import verify_array_file
from remuda.storage.segment.segment_file import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.storage.folder.group_file import SegmentEntry
    from remuda.storage.segment.segment_file import SegmentInfo

TRANSFERS = 8
"""Files that are fetched or uploaded at the same time."""

_PIECE = 8 << 20
_ATOMIC_PUTS = frozenset({"s3", "gcs", "abfs"})
"""File systems on which a file appears when it is closed, whole, in the place of the one before: object stores.

Tried with S3 alone. On all others a file that is replaced is written beside the old one and moved.
"""


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """Plain data that pickles: the file system with its credentials.

    `name` is how errors call the store: without the secrets that its URI may hold.
    """

    filesystem: Any
    path: str
    name: str

    def read(self, name: str) -> bytes | None:
        """Read a small file; return None for an absent one."""
        try:
            with self.filesystem.open_input_stream(f"{self.path}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._failed("the store cannot be read", error) from error

    def fetch(self, name: str, destination: Path, known: SegmentEntry | SegmentInfo | GroupRef | None = None) -> None:
        """Fetch a file of a segment or a group, compared with its checksum.

        `known` is what names a group file, or is known of a file of rows.
        """
        self.copy(name, destination)
        if isinstance(known, GroupRef):
            decode_group(destination.read_bytes(), known, f"{self.name}/{name}")
            return
        if known is not None:
            whole = digest(destination) == (known.row_bytes, known.row_checksum)
        else:
            try:
                verify_array_file(destination)
                whole = True
            except StorageError:
                whole = False
        if not whole:
            raise damage_error("the file is not as it was written", f"{self.name}/{name}")

    def copy(self, name: str, destination: Path) -> None:
        try:
            with (
                self.filesystem.open_input_stream(f"{self.path}/{name}") as source,
                destination.open("wb") as target,
            ):
                while piece := source.read(_PIECE):
                    target.write(piece)
        except FileNotFoundError:
            raise FileNotFoundError(ENOENT, "missing", f"{self.name}/{name}") from None
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{name} cannot be fetched", error) from error

    def list(self, folder: str) -> set[str]:
        """List the names in a folder; return none for an absent one."""
        listing = pf.FileSelector(f"{self.path}/{folder}", allow_not_found=True)
        try:
            return {info.base_name for info in self.filesystem.get_file_info(listing)}
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{folder} cannot be listed", error) from error

    def dates(self, folder: str) -> dict[str, float]:
        """Return when each file below a folder was written, by the clock of the server; nothing if it is absent."""
        listing = pf.FileSelector(f"{self.path}/{folder}", recursive=True, allow_not_found=True)
        try:
            found = self.filesystem.get_file_info(listing)
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{folder} cannot be listed", error) from error
        return {
            info.path.removeprefix(f"{self.path}/"): info.mtime.timestamp()
            for info in found
            if info.type is pf.FileType.File and info.mtime is not None
        }

    def upload(self, path: Path, name: str, codec: str | None = None) -> None:
        """Upload a file; with a codec as a compressed object, which `RangeReader` reads."""
        try:
            self._make_folder(name)
            with path.open("rb") as source, self.filesystem.open_output_stream(f"{self.path}/{name}") as target:
                pieces = iter(lambda: source.read(_PIECE), b"") if codec is None else compressed_pieces(source, codec)
                for piece in pieces:
                    target.write(piece)
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{name} cannot be uploaded", error) from error

    def replace(self, name: str, raw: bytes) -> None:
        """Puts a small file in the place of the one before, in one step."""
        path = f"{self.path}/{name}"
        fresh = path if self._puts_are_atomic() else f"{path}.{new_id()}.new"
        try:
            self._make_folder(name)
            with self.filesystem.open_output_stream(fresh) as stream:
                stream.write(raw)
            if fresh != path:
                self.filesystem.move(fresh, path)
        except (OSError, pa.ArrowException) as error:
            raise self._failed(f"{name} cannot be written", error) from error

    def remove(self, names: Iterable[str]) -> None:
        """Remove files. What cannot be removed now stays: it costs space, nothing else."""
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._remove, names))

    def _remove(self, name: str) -> None:
        with suppress(OSError, pa.ArrowException):
            self.filesystem.delete_file(f"{self.path}/{name}")

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all its contents."""
        with suppress(OSError, pa.ArrowException):
            self.filesystem.delete_dir(f"{self.path}/{folder}")

    def remove_older(self, folder: str, seconds: float) -> None:
        """Remove files below a folder that have not been written for so long."""
        limit = time.time() - seconds
        with suppress(StorageError):
            self.remove(name for name, date in self.dates(folder).items() if date < limit)

    def _make_folder(self, name: str) -> None:
        if not self._puts_are_atomic():
            self.filesystem.create_dir(str(PurePosixPath(self.path, name).parent), recursive=True)

    def _puts_are_atomic(self) -> bool:
        filesystem = self.filesystem
        while isinstance(filesystem, pf.SubTreeFileSystem):
            filesystem = filesystem.base_fs
        return filesystem.type_name in _ATOMIC_PUTS

    def _failed(self, what: str, error: Exception) -> StorageError:
        return StorageError(f"{what}: {str(error).splitlines()[0]}", self.name)
