"""Every error that Remuda raises has a code and a SQLSTATE, read off the syntax trees of the source.

A raise is one of ours where it calls a condition of `remuda.errors`, an exception class of Remuda, or a function whose
return annotation is one. Every other raise is listed in `FOREIGN` with the reason why users may meet it, or never do.
"""

from __future__ import annotations

import ast
import pickle
from errno import EACCES, EDQUOT, EIO, ENOENT, ENOSPC
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

import remuda
from remuda import dbapi, errors
from remuda.errors import SQLSTATES, Condition, ErrorCode, RemudaError

Raised = TypeVar("Raised", bound=Exception)

SOURCE = Path(__file__).parents[1] / "src" / "remuda"
PAGE = Path(__file__).parents[1] / "docs" / "errors.md"

FOREIGN = {
    # Faults of the engine itself: a statement can not cause them.
    ("AssertionError", "bench/plots.py"),
    ("AssertionError", "exec/aggregate/aggregate_calls.py"),
    ("AssertionError", "exec/build.py"),
    ("AssertionError", "grid/statements/explain_statement.py"),
    ("AssertionError", "optimizer/estimates/group_properties.py"),
    ("AssertionError", "optimizer/optimize.py"),
    ("AssertionError", "presentation/durations.py"),
    ("AssertionError", "rules/decorrelate/push_domain.py"),
    ("AssertionError", "spark/query/shuffle_blocks.py"),
    ("AssertionError", "storage/index/hash_index.py"),
    ("AssertionError", "storage/wal/log_file.py"),
    ("AssertionError", "types/partition_hash.py"),
    # What Python's own protocols ask for.
    ("AttributeError", "__init__.py"),
    ("AttributeError", "types/arrow_compute.py"),
    ("AttributeError", "lazy_names.py"),
    ("AttributeError", "storage/segment/lazy_segment.py"),
    ("AttributeError", "storage/state/grouped_version.py"),
    ("ImportError", "__init__.py"),
    ("IndexError", "exec/batch.py"),
    ("KeyError", "grid/map.py"),
    ("KeyError", "grid/rows.py"),
    ("KeyError", "storage/segment/remote_segment.py"),
    ("KeyError", "storage/segment/summary/saved_summaries.py"),
    ("KeyError", "storage/map_statistics.py"),
    ("StopIteration", "dbapi.py"),
    ("StopIteration", "grid/result.py"),
    ("UsageError", "notebook.py"),
    ("argparse.ArgumentTypeError", "bench/arguments.py"),
    ("argparse.ArgumentTypeError", "cli/arguments.py"),
    ("dataclasses.FrozenInstanceError", "dataclass.py"),
    # Caught by the module that raises them, or by its only caller.
    ("CancelledError", "expr/cancellation.py"),
    ("FileNotFoundError", "storage/wal/log_file.py"),
    ("FileNotFoundError", "storage/commit/recovery.py"),
    ("FileNotFoundError", "storage/remote/remote_files.py"),
    ("FileNotFoundError", "storage/remote/retention.py"),
    ("FileNotFoundError", "storage/remote/remote_versions.py"),
    ("IndexError", "storage/segment/column_reader.py"),
    ("OSError", "storage/folder/store_files.py"),
    ("OSError", "storage/remote/compressed_object.py"),
    ("TypeError", "storage/segment/summary/saved_summaries.py"),
    ("TypeError", "types/stored_values.py"),
    ("ValueError", "cli/shell/options.py"),
    ("ValueError", "expr/expression_json.py"),
    ("ValueError", "expr/functions/moment_format.py"),
    ("ValueError", "grid/files/text_values.py"),
    ("ValueError", "grid/settings.py"),
    ("ValueError", "storage/folder/group_file.py"),
    ("ValueError", "storage/folder/store_files.py"),
    ("ValueError", "rules/extensions.py"),  # a programmer's, who adds a rule
    ("WrongValueError", "grid/files/text_values.py"),
    ("_NeedlessFlushError", "storage/state/map_flush.py"),
    ("_SourceError", "storage/folder/disk_errors.py"),
    ("_StoppedError", "storage/folder/verification.py"),
}

CHOSEN = {"as_told", "refused", "restated", "type(error)"}
"""Calls that make an error of ours of another one, or by a condition that was chosen before."""

MAY_BE_GENERIC = {"closed_error", "internal_error"}
"""The conditions with the code -1: a grid that is closed, and a fault of the engine."""


def subclasses(of: type[Raised]) -> set[type[Raised]]:
    return {of}.union(*(subclasses(each) for each in of.__subclasses__()))


@cache
def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def conditions() -> dict[str, Condition]:
    return {name: value for name, value in vars(errors).items() if isinstance(value, Condition)}


@cache
def makers() -> frozenset[str]:
    """The names that may follow `raise`: conditions, exception classes, and functions that return errors."""
    classes = {each.__name__ for each in subclasses(RemudaError) | subclasses(dbapi.Error)}
    for tree in trees().values():  # of modules that are not imported here
        classes |= {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and classes & {ast.unparse(base) for base in node.bases}
        }
    found = set(conditions()) | classes
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                returned = {each.id for each in ast.walk(node.returns) if isinstance(each, ast.Name)}
                found |= {node.name} if returned & (classes | {"Exception"}) else set()
    return frozenset(found)


def test_every_raise_is_an_error_of_ours() -> None:
    foreign = set()
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node.exc is not None:
                called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                name = ast.unparse(called)
                is_class = name.rpartition(".")[2].endswith(("Error", "StopIteration", "Exception"))
                if name.rpartition(".")[2] in makers() or not (isinstance(node.exc, ast.Call) or is_class):
                    continue  # a variable: what was caught is raised again
                foreign.add((name, path))
    assert {each for each in foreign if each[0].rpartition(".")[2] not in CHOSEN} == FOREIGN


def test_errors_without_a_condition_say_their_sqlstate() -> None:
    """`RemudaError` alone means nothing to a program; the code of a `SqlError` has a SQLSTATE of its own."""
    silent = [
        f"{path}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "RemudaError"
        and all(keyword.arg != "sqlstate" for keyword in node.keywords)
    ]
    assert silent == []


def test_the_code_without_meaning_is_rare() -> None:
    assert {name for name, each in conditions().items() if each.code is ErrorCode.GENERIC} == MAY_BE_GENERIC
    uses = {
        path for path, tree in trees().items() for node in ast.walk(tree) if ast.unparse(node) == "ErrorCode.GENERIC"
    }
    assert uses == {"errors.py", "storage/folder/inbox.py"}


def test_every_code_has_a_sqlstate() -> None:
    assert set(SQLSTATES) == set(ErrorCode)


def given_sqlstates() -> set[str]:
    """Every SQLSTATE that an error can have: of conditions, codes, classes, and of raise sites."""
    found = {each.sqlstate for each in conditions().values()} | set(SQLSTATES.values())
    found |= {each._sqlstate for each in subclasses(RemudaError)} | set(errors._SYSTEM_ERRORS.values())
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "sqlstate":
                found |= {str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant)} - {"None"}
    return found


def rows_of(title: str) -> list[list[str]]:
    """The cells of the table under a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_lists_every_code() -> None:
    assert {(int(row[0]), row[1]) for row in rows_of("Codes")} == {(int(code), code.name) for code in ErrorCode}


def test_the_page_lists_every_sqlstate() -> None:
    rows = rows_of("SQLSTATEs")
    assert [row[0] for row in rows] == sorted(given_sqlstates())
    assert all(cell for row in rows for cell in row)


def test_the_page_names_the_exception_of_pep_249() -> None:
    assert {row[0]: row[2] for row in rows_of("SQLSTATEs")} == {
        state: dbapi._BY_STATE_CLASS[state[:2]].__name__ for state in given_sqlstates()
    }


def test_every_class_of_errors_is_public() -> None:
    public = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, RemudaError)}
    internal = {errors.UntypedParametersError}  # raised and caught while a statement is bound
    for each in public - internal:
        assert getattr(remuda, each.__name__) is each
        assert each.__name__ in remuda.__all__


def test_the_example_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```")
    exec(blocks[1].removeprefix("python\n"), {})
    assert capsys.readouterr().out == blocks[3].removeprefix("\n")


def test_errors_of_the_operating_system_have_their_own_sqlstates() -> None:
    def caused(number: int) -> str:
        error = remuda.StorageError("the log cannot be written")
        error.__cause__ = OSError(number, "")
        return error.sqlstate

    assert [caused(number) for number in (ENOSPC, EDQUOT, ENOENT, EACCES, EIO)] == [
        "53100",
        "53100",
        "58P01",
        "42501",
        "58030",
    ]


def test_an_error_keeps_its_sqlstate_between_processes() -> None:
    for error in (errors.division_error("x"), errors.damage_error("x"), remuda.FolderInUseError("x")):
        assert pickle.loads(pickle.dumps(error)).sqlstate == error.sqlstate
