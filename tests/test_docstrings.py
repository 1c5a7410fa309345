"""Every public name has a docstring, and docstrings of functions begin with a verb."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
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


NO_VERB = re.compile(
    "a|above|after|all|also|an|any|as|at|before|below|between|both|by|each|every|for|from|has|here|how|if|in|is|it|its|"
    "like|many|no|none|not|nothing|of|on|one|only|some|such|that|the|there|this|those|to|two|up|what|when|where|whether|"
    "which|who|whose|with"
)
"""Words with which a docstring begins that names a thing or a case, and not what the function does."""


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """A rule says `before → after` instead, a property names its value, `__init__` its parameters."""
    wrong: list[str] = []
    for path in sorted(Path(remuda.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _says_what_it_does(node):
                first, _, _ = (ast.get_docstring(node) or "Do nothing.").partition("\n")
                word = first.split()[0].rstrip(",.:").casefold()
                if "→" not in first and (not word.isalpha() or NO_VERB.fullmatch(word)):
                    wrong.append(f"{path.name}:{node.lineno}: {first}")
    assert not wrong


def _says_what_it_does(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return node.name != "__init__" and not any("property" in each for each in decorators)
