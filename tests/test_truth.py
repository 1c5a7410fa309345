"""Objects that have a length say whether they are true: `known or new` must not replace one because it is empty."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
COLLECTIONS = {"GuardedArray", "GuardedValues", "Map", "SavedSummaries", "Values", "_IndexFiles", "_Sequence"}
"""Classes that are empty, and so false, as every collection of Python is."""


def _defined(node: ast.ClassDef) -> set[str]:
    named = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    assigned = {
        target.id
        for each in node.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return named | assigned


def test_a_class_with_a_length_says_whether_it_is_true() -> None:
    classes = [
        node
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert len(classes) > 300
    with_length = [node for node in classes if "__len__" in _defined(node)]
    assert [
        node.name for node in with_length if "__bool__" not in _defined(node) and node.name not in COLLECTIONS
    ] == []
