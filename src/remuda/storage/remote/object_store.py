"""Creates objects only if they are absent, through `obstore`: `pyarrow.fs` has no conditional put.

The object store is made of the options that a file system of `pyarrow.fs` pickles with, so users describe a store once.
"""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pf

from remuda.errors import StorageError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_TIMEOUT = "30s"
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
"""Of single requests; how commits are retried is the concern of `roots`."""
_CREATING = frozenset({"s3", "gcs", "abfs", "local"})
"""Types of file systems of `pyarrow.fs` with a counterpart that creates objects only if they are absent."""


def can_create(filesystem: Any) -> bool:
    """Tell whether objects can be created only if they are absent where this file system stores them."""
    return _base_of(filesystem, "")[0].type_name in _CREATING


def open_object_store(filesystem: Any, path: str, name: str) -> ObjectStore:
    """Open the folder `path` of a file system as an object store; `name` is how errors call it."""
    if find_spec("obstore") is None:
        raise StorageError(
            "writing to an object store takes the package obstore, which makes commits conditional: "
            'pip install "remudadb[s3]"',
            name,
            sqlstate="0A000",
        )
    from obstore.exceptions import BaseError

    base, full = _base_of(filesystem, path)
    try:
        return _open(base, full, name)
    except (BaseError, ValueError) as error:
        raise StorageError(f"the object store cannot be opened: {str(error).splitlines()[0]}", name) from error


def first_page(store: ObjectStore, folder: str, name: str) -> list[str] | None:
    """List the first names below a folder, in one request; None where a listing is in no order."""
    from obstore.exceptions import BaseError
    from obstore.store import LocalStore

    if isinstance(store, LocalStore):
        return None
    try:
        return [each["path"] for each in next(iter(store.list(folder)), ())]
    except (BaseError, OSError) as error:
        raise StorageError(f"{folder} cannot be listed: {str(error).splitlines()[0]}", name) from error


def _open(filesystem: Any, path: str, name: str) -> ObjectStore:
    from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

    if filesystem.type_name == "local":
        return LocalStore(prefix=path, mkdir=True)
    options = filesystem.__reduce__()[1][0]
    container, _, prefix = path.partition("/")
    client: Any = {"timeout": _TIMEOUT, "allow_http": True}
    common: Any = {"prefix": prefix or None, "client_options": client, "retry_config": _RETRIES}
    match filesystem.type_name:
        case "s3":
            return S3Store(container, **common, **_s3_settings(options, name))
        case "gcs":
            return GCSStore(container, **common, **_gcs_settings(options))
        case _:
            return AzureStore(container, **common, **_azure_settings(options))


def _s3_settings(options: dict[str, Any], name: str) -> dict[str, Any]:
    if options["role_arn"]:
        raise StorageError(
            "a role to assume is not taken over from the file system: give its keys", name, sqlstate="0A000"
        )
    settings = {
        "region": options["region"],
        "access_key_id": options["access_key"],
        "secret_access_key": options["secret_key"],
        "session_token": options["session_token"],
        "endpoint": _with_scheme(options["endpoint_override"], options["scheme"]),
        "skip_signature": options["anonymous"],
        "virtual_hosted_style_request": options["force_virtual_addressing"],
    }
    given = {name: value for name, value in settings.items() if value}
    if "access_key_id" not in given and not options["anonymous"] and find_spec("boto3") is not None:
        # Profiles and single sign-on, which pyarrow knows and obstore does not.
        from obstore.auth.boto3 import Boto3CredentialProvider

        given["credential_provider"] = Boto3CredentialProvider()
    return given


def _gcs_settings(options: dict[str, Any]) -> dict[str, Any]:
    settings = {"skip_signature": options["anonymous"]}
    if options["access_token"]:
        credential = {"token": options["access_token"], "expires_at": options["credential_token_expiration"]}
        return {"credential_provider": lambda: credential}
    return {name: value for name, value in settings.items() if value}


def _azure_settings(options: dict[str, Any]) -> dict[str, Any]:
    names = ("account_name", "account_key", "client_id", "client_secret", "tenant_id", "sas_token")
    return {name: options[name] for name in names if options[name]}


def _with_scheme(endpoint: str, scheme: str) -> str:
    return endpoint if not endpoint or "://" in endpoint else f"{scheme or 'https'}://{endpoint}"


def _base_of(filesystem: Any, path: str) -> tuple[Any, str]:
    """Return the file system below all sub-trees, and the path there."""
    while isinstance(filesystem, pf.SubTreeFileSystem):
        path = f"{filesystem.base_path.rstrip('/')}/{path}"
        filesystem = filesystem.base_fs
    return filesystem, path
