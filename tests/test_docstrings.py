"""Every public name of the Python face has a docstring."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import remuda


@pytest.mark.parametrize("kind", [remuda.Grid, remuda.Session, remuda.Map, remuda.Result, remuda.Row])
def test_every_public_name_has_a_docstring(kind: type[Any]) -> None:
    names = [name for name in vars(kind) if not name.startswith("_")]
    without = [
        name for name in names if _is_documented(kind, name) and not inspect.getdoc(inspect.getattr_static(kind, name))
    ]
    assert kind.__doc__
    assert not without


def _is_documented(kind: type[Any], name: str) -> bool:
    found = inspect.getattr_static(kind, name)
    return inspect.isfunction(found) or isinstance(found, property | classmethod | staticmethod)
