"""Let a package export names of modules that are imported when a name is first asked for.

A package that imports everything it exports makes a new process import all of it with its first name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package for names and the modules below it that define them.

    >>> lazy_names("collections", {"Sequence": "abc"})("Sequence")
    <class 'collections.abc.Sequence'>
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
