"""The examples of docs/python.md, and that every public name of the Python face has a docstring."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest

import remuda

PAGE = Path(__file__).parents[1] / "docs" / "python.md"


def test_the_examples_of_the_page() -> None:
    failed, attempted = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, attempted > 10) == (0, True)


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
