"""`%load_ext remuda` in a real IPython: connections, statements, parameters, frames, pictures and errors."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda.errors import RemudaError

pytest.importorskip("IPython")

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell that leaves no history behind."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config({"HistoryManager": {"enabled": False}})
    made = InteractiveShell(config=config)
    yield made
    made.run_line_magic("unload_ext", "remuda")


@pytest.fixture
def run(shell: InteractiveShell) -> Callable[[str], Any]:
    """Run a cell; return its value, or raise what it has raised."""

    def run_cell(cell: str) -> Any:
        done = shell.run_cell(cell, silent=False)
        done.raise_error()
        return done.result

    run_cell("%load_ext remuda")
    return run_cell


@pytest.fixture
def orders(run: Callable[[str], Any]) -> None:
    run(
        "%%sql\n"
        "CREATE TABLE orders (id BIGINT, day DATE, note VARCHAR, PRIMARY KEY (id));\n"
        "INSERT INTO orders VALUES (1, DATE '2024-01-01', 'a;b'), (2, DATE '2024-02-29', '-- :no');"
    )


def rows(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in result]


def test_importing_remuda_imports_no_ipython() -> None:
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda; remuda.open(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"IPython", "traitlets", "remuda.notebook"} & set(loaded)


def test_a_line_gives_a_result(run: Any, orders: None) -> None:
    result = run("%sql SELECT id, note FROM orders ORDER BY id")
    assert isinstance(result, remuda.Result)
    assert rows(result) == [(1, "a;b"), (2, "-- :no")]


def test_a_cell_runs_its_statements_and_gives_the_last(run: Any, orders: None) -> None:
    statements = [
        "-- first;",
        "SELECT 1;",
        "UPDATE orders SET note = 'x;y' WHERE id = 1;",
        "",
        "SELECT note FROM orders",
    ]
    assert rows(run("\n".join(["%%sql", *statements, "WHERE id = 1;"]))) == [("x;y",)]
    assert run("%sql DELETE FROM orders WHERE id = 1").update_count == 1


def test_a_value_is_bound_and_never_becomes_text(run: Any, shell: InteractiveShell, orders: None) -> None:
    shell.user_ns |= {"wanted": 2, "day": dt.date(2024, 2, 29), "text": "x' OR '1' = '1"}
    assert rows(run("%sql SELECT id FROM orders WHERE id = :wanted AND day = :day")) == [(2,)]
    assert rows(run("%sql SELECT id FROM orders WHERE note = :text")) == []
    assert rows(run("%sql SELECT '{wanted} $wanted :wanted' AS v")) == [("{wanted} $wanted :wanted",)]
    assert rows(run("%%sql\nSELECT id::VARCHAR FROM orders WHERE id = :wanted; -- :nothing")) == [("2",)]


def test_parameters_named_like_options_are_variables(run: Any, shell: InteractiveShell, orders: None) -> None:
    shell.user_ns |= {"timeout": 1, "format": 2, "analyze": 3}
    assert rows(run("%sql SELECT id FROM orders WHERE id = :timeout")) == [(1,)]
    assert "?0 :format = 2" in run("%sql EXPLAIN SELECT id FROM orders WHERE id = :format")


def test_numpy_values_are_values(run: Any, shell: InteractiveShell, orders: None) -> None:
    numpy = pytest.importorskip("numpy")
    shell.user_ns["wanted"] = numpy.int64(2)
    assert rows(run("%sql SELECT id FROM orders WHERE id = :wanted")) == [(2,)]


def test_frames(run: Any, shell: InteractiveShell, orders: None) -> None:
    assert run("%sql --pandas SELECT id FROM orders ORDER BY id")["id"].tolist() == [1, 2]
    assert run("%sql --polars SELECT id FROM orders ORDER BY id")["id"].to_list() == [1, 2]
    assert run("%sql --arrow SELECT id FROM orders ORDER BY id").column("id").to_pylist() == [1, 2]


def test_a_result_goes_into_a_variable(run: Any, shell: InteractiveShell, orders: None) -> None:
    assert run("%%sql found <<\nSELECT id FROM orders WHERE id = 1") is None
    assert rows(shell.user_ns["found"]) == [(1,)]
    assert run("%sql --polars frame << SELECT id FROM orders ORDER BY id") is None
    assert shell.user_ns["frame"]["id"].to_list() == [1, 2]
    assert run("table = %sql --arrow SELECT id FROM orders WHERE id = 2") is None
    assert shell.user_ns["table"].num_rows == 1


def test_explain_is_a_picture(run: Any, shell: InteractiveShell, orders: None) -> None:
    shell.user_ns["wanted"] = 2
    explained = run("%sql EXPLAIN ANALYZE SELECT note FROM orders WHERE id = :wanted")
    shown, _ = shell.display_formatter.format(explained)
    assert shown["text/html"].startswith("<div")
    assert "<svg" in shown["text/html"]
    assert "KeyLookup" in shown["text/html"]
    assert shown["text/plain"] == str(explained)
    shown, _ = shell.display_formatter.format(run("%sql EXPLAIN MEMO SELECT note FROM orders WHERE id > 1"))
    assert shown["text/html"].startswith("<pre>")
    shown, _ = shell.display_formatter.format(run("%sql EXPLAIN (FORMAT JSON) SELECT note FROM orders"))
    assert shown["text/html"].startswith("<pre>{")


UNKNOWN = """[1008 PARSING] unknown column: nte, at line 1, column 8
  SELECT nte FROM orders
         ^^^
  Did you mean "note"?
"""
MISSING = """[2000 DATA_EXCEPTION] there is no Python variable called missing, at line 3, column 10
    SELECT :missing
           ^^^^^^^^
"""
UNCLOSED = """[1008 PARSING] ' is never closed, at line 1, column 8
  SELECT 'open
         ^^^^^
"""


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%sql SELECT nte FROM orders", UNKNOWN),
        ("%%sql\nSELECT 1;\n\n  SELECT :missing", MISSING),
        ("%sql SELECT 'open", UNCLOSED),
        ("%remuda no_such_folder", "there is neither a folder nor a grid called no_such_folder"),
    ],
)
def test_an_error_is_shown_with_its_caret_and_without_a_traceback(
    run: Any, orders: None, cell: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with pytest.raises(RemudaError):
        run(cell)
    shown = capsys.readouterr().out
    assert message in shown
    assert "Traceback" not in shown
    assert "---" not in shown
    assert ".py" not in shown


@pytest.mark.parametrize(
    "cell", ["%sql --csv SELECT 1", "%sql --pandas --polars SELECT 1", "%sql", "%%sql\n -- only\n"]
)
def test_wrong_use_says_how(run: Any, shell: InteractiveShell, cell: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    done = shell.run_cell(cell)
    assert isinstance(done.error_in_exec, UsageError)
    assert "Traceback" not in capsys.readouterr().out


def test_a_folder_is_made_only_when_told(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "shop.remuda"
    with pytest.raises(RemudaError, match="--create"):
        run(f"%remuda {folder}")
    assert not folder.exists()
    run(f"%remuda --create {folder}")
    run("%sql CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
    run("%sql INSERT INTO t VALUES (1)")
    run("%remuda --members 2")
    with pytest.raises(RemudaError, match="unknown table"):
        run("%sql SELECT * FROM t")
    run(f"%remuda --read-only {folder}")
    assert rows(run("%sql SELECT * FROM t")) == [(1,)]
    with pytest.raises(RemudaError, match="read"):
        run("%sql INSERT INTO t VALUES (2)")
    assert str(folder) in repr(run("%remuda"))


def test_a_grid_of_the_user_is_used_and_not_closed(run: Any, shell: InteractiveShell) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE mine (id BIGINT, PRIMARY KEY (id))")
        shell.user_ns["shop"] = grid
        assert run("%remuda shop") is grid
        run("%sql INSERT INTO mine VALUES (7)")
        run("%remuda --members 1")
        assert rows(grid.sql("SELECT id FROM mine")) == [(7,)]
        with grid.session() as session:
            shell.user_ns["mine"] = session
            run("%remuda mine")
            run("%sql SET timeout = 1234")
            assert session.settings.timeout == 1234


def test_a_failed_connection_leaves_the_old_one(run: Any, orders: None) -> None:
    with pytest.raises(RemudaError):
        run("%remuda no_such_folder")
    assert len(rows(run("%sql SELECT * FROM orders"))) == 2


def test_unloading_closes_the_grid(run: Any, shell: InteractiveShell, tmp_path: Path) -> None:
    folder = tmp_path / "shop.remuda"
    run(f"%remuda --create {folder}")
    run("%unload_ext remuda")
    remuda.open(folder).close()  # the folder is free


def test_an_error_of_the_rows_fails_the_cell(run: Any, orders: None) -> None:
    with pytest.raises(RemudaError, match="division by zero"):
        run("%sql SELECT 1 / (id - id) FROM orders")
