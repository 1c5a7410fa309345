"""Name the extra of the distribution that brings an optional package which is missing."""

from __future__ import annotations

from importlib.util import find_spec

from remuda.errors import RemudaError


def require_extra(package: str, extra: str) -> None:
    """Raise an error with the command that installs the package, unless it can be imported."""
    if find_spec(package) is None:
        raise RemudaError(f"{package} is not installed. Run: pip install 'remudadb[{extra}]'", sqlstate="0A000")
