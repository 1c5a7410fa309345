"""A remote folder as other processes are told of it, a Spark task for one: they fetch what they read of a snapshot.

What is fetched goes through the cache of the machine that fetches. A process keeps one mirror for each cache; names of
segments are never given twice, so stores can share it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.fs as pf

from remuda.dataclass import dataclass
from remuda.errors import StorageError
from remuda.storage.remote.file_cache import CACHE_BYTES, FileCache, cache_folder
from remuda.storage.remote.remote_files import RemoteFiles
from remuda.storage.remote.remote_folder import RemoteFolder
from remuda.storage.remote.remote_segments import RemoteSegments
from remuda.storage.remote.retention import RETENTION_SECONDS

if TYPE_CHECKING:
    from remuda.storage.folder.process_folder import ProcessFolder


@dataclass(frozen=True, slots=True)
class RemoteLocation:
    """Plain data that pickles. `cache` is None where each machine has its own idea of it: see `cache_folder`.

    `sole_writer` is the user's promise that no other process writes the store: then its file system need not be able
    to create a file only if it is absent. `retention` is how many seconds old roots and their files are kept.
    """

    files: RemoteFiles
    cache: str | None
    cache_bytes: int
    sole_writer: bool = False
    retention: float = RETENTION_SECONDS

    def open_cache(self) -> FileCache:
        return FileCache(cache_folder(self.cache), self.cache_bytes)

    def segments(self) -> RemoteSegments:
        """Return what opens the segments of a snapshot in a process that is told of it."""
        mirror = _mirror(cache_folder(self.cache), self.cache_bytes)
        return RemoteSegments(self.files, self.open_cache(), mirror)


@cache
def _mirror(folder: Path, cache_bytes: int) -> ProcessFolder:
    return FileCache(folder, cache_bytes).new_mirror()


# Where a store is, as the user writes it: a URI that `pyarrow.fs` knows, or a path in a file system that is given.
#
# s3://bucket/shop.remuda?region=eu-west-1 credentials as S3's own tools find them
# s3://bucket/shop.remuda?scheme=http&endpoint_override=127.0.0.1:9000 hdfs://namenode:8020/shop.remuda
# gs://bucket/shop.remuda file:///data/shop.remuda


def open_address(
    address: str,
    filesystem: Any = None,
    cache: str | Path | None = None,
    cache_bytes: int | None = None,
    *,
    sole_writer: bool = False,
) -> Path | RemoteFolder:
    """Open a local folder as its path, any other address as a remote folder."""
    if filesystem is None:
        try:
            filesystem, path = pf.FileSystem.from_uri(address)
        except (OSError, ValueError) as error:
            # pa.ArrowInvalid is a ValueError. Its message repeats the URI, and the secrets in it.
            is_secret = isinstance(error, pa.ArrowInvalid)
            reason = "" if is_secret else f": {str(error).splitlines()[0][:300]}"
            raise StorageError(
                f"the address of the store cannot be reached{reason}", _shown(address), sqlstate="08001"
            ) from (None if is_secret else error)
    else:
        path = address.partition("://")[2] or address
    if isinstance(filesystem, pf.LocalFileSystem):
        return Path(path)
    limit = CACHE_BYTES if cache_bytes is None else cache_bytes
    files = RemoteFiles(filesystem, path.rstrip("/"), _shown(address))
    held = None if cache is None else str(cache_folder(cache))
    return RemoteFolder(RemoteLocation(files, held, limit, sole_writer))


def _shown(address: str) -> str:
    """Without user, password and options, which may be secrets.

    >>> _shown("s3://KEY:SECRET@bucket/shop.remuda?region=eu-west-1")
    's3://bucket/shop.remuda'
    """
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
