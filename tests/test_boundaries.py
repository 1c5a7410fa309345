"""What only few places may do, read off the syntax trees: generate code, map files, open the files of a store.

The direction of imports is checked by the contracts in `pyproject.toml`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "remuda"


@pytest.fixture(scope="module")
def callers() -> dict[str, set[str]]:
    """The files that call a function, by its name as it is written: `eval`, `os.open`."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name)):
                    found[name].add(str(path.relative_to(SOURCE)))
                case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                    found[f"{module}.{name}"].add(str(path.relative_to(SOURCE)))
    return found


def test_code_is_generated_in_one_place(callers: dict[str, set[str]]) -> None:
    """Where functions are generated, and what for, is decision 0035: a further caller belongs in its table."""
    generating = ("eval", "exec", "compile", "builtins.eval", "builtins.exec", "builtins.compile", "FunctionType")
    assert set.union(*(callers[name] for name in generating)) == {"generated_code.py"}
    assert callers["generate"] == {
        "dataclass.py",
        "grid/shortcuts/shortcut_parts.py",
        "storage/lookup/generated_readers.py",
        "types/python_columns.py",
    }


def test_files_are_mapped_in_one_place(callers: dict[str, set[str]]) -> None:
    """By Python's own `mmap` or Arrow's each mapping would keep a descriptor."""
    assert callers["mmap.mmap"] | callers["np.memmap"] | callers["pa.memory_map"] | callers["_mmap"] == {
        "spark/query/batch_file.py",  # what tasks of one query leave for one another, outside the store
        "spark/query/block_file.py",  # the same, of a shuffle
        "storage/folder/store_files.py",
        "storage/load/load_runs.py",  # the runs of a load: one file without a name, mapped once at a time
    }


def test_files_of_a_store_are_opened_in_one_place(callers: dict[str, set[str]]) -> None:
    """Relative to a handle of their folder and without following links."""
    assert callers["os.open"] | callers["open"] == {
        "cli/shell/history.py",  # the user's history: no file of a store, and no link is followed either
        "storage/remote/file_cache.py",  # locks of the cache
        "storage/remote/sparse_file.py",  # blocks in the cache, which is this process's own
        "storage/folder/process_folder.py",  # locks of temporary folders
        "storage/folder/store_files.py",
        "storage/wal/log_file.py",  # a folder, to sync the names in it
    }
