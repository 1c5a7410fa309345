"""Where a store is, as the user writes it: a URI that `pyarrow.fs` knows, or a path in a file system that is given.

s3://bucket/shop.remuda?region=eu-west-1              credentials as S3's own tools find them
s3://bucket/shop.remuda?scheme=http&endpoint_override=127.0.0.1:9000
hdfs://namenode:8020/shop.remuda        gs://bucket/shop.remuda        file:///data/shop.remuda
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.fs as pf

from remuda.errors import StorageError
from remuda.storage.remote.file_cache import CACHE_BYTES, cache_folder
from remuda.storage.remote.remote_files import RemoteFiles
from remuda.storage.remote.remote_folder import RemoteFolder
from remuda.storage.remote.remote_place import RemotePlace


def open_address(
    address: str, filesystem: Any = None, cache: str | Path | None = None, cache_bytes: int | None = None
) -> Path | RemoteFolder:
    """A local folder as its path, any other as a remote folder."""
    if filesystem is None:
        try:
            filesystem, path = pf.FileSystem.from_uri(address)
        except (OSError, ValueError) as error:
            # pa.ArrowInvalid is a ValueError. Its message repeats the URI, and the secrets in it.
            raise StorageError("this is not the address of a file system that can be reached", _shown(address)) from (
                None if isinstance(error, pa.ArrowInvalid) else error
            )
    else:
        path = address.partition("://")[2] or address
    if isinstance(filesystem, pf.LocalFileSystem):
        return Path(path)
    limit = CACHE_BYTES if cache_bytes is None else cache_bytes
    files = RemoteFiles(filesystem, path.rstrip("/"), _shown(address))
    return RemoteFolder(RemotePlace(files, None if cache is None else str(cache_folder(cache)), limit))


def _shown(address: str) -> str:
    """Without user, password and options, which may be secrets.

    >>> _shown("s3://KEY:SECRET@bucket/shop.remuda?region=eu-west-1")
    's3://bucket/shop.remuda'
    """
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
