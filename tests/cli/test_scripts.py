"""`remuda -c`, `-f`, pipes and `remuda sql`: answers, errors with file and line, exit status, creation of folders."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import remuda
from remuda.cli import main

Captured = pytest.CaptureFixture[str]


def run(*arguments: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "remuda", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, cwd=cwd)


def test_sql_command_keeps_its_data_in_the_folder(tmp_path: Path, capsys: Captured) -> None:
    folder = str(tmp_path / "shop.remuda")
    create = "CREATE TABLE t (k BIGINT, v DOUBLE, PRIMARY KEY (k)); INSERT INTO t VALUES (1, 2.5)"
    assert main(["sql", "-d", folder, "--create", "-c", create]) == 0
    capsys.readouterr()
    assert main(["sql", "-d", folder, "--format", "json", "-c", "SELECT * FROM t"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"k": 1, "v": 2.5}]
    assert main(["sql", folder, "--format", "csv", "-c", "SELECT * FROM t;"]) == 0
    assert capsys.readouterr().out == "k,v\n1,2.5\n"
    assert main([folder, "--format", "markdown", "-c", "SELECT * FROM t;"]) == 0
    assert capsys.readouterr().out == "| k | v |\n| ---: | ---: |\n| 1 | 2.5 |\n"


def test_sql_command_reads_standard_input_and_stops_at_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT * FROM missing;\nCREATE TABLE t (k BIGINT, PRIMARY KEY (k));"))
    assert main(["sql"]) == 1
    printed = capsys.readouterr()
    assert "<stdin>:1: [1010 OBJECT_NOT_FOUND]" in printed.err
    assert printed.out == ""


def test_a_script_is_piped_in(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one;\n\\x on\nSELECT 2 AS two"))
    assert main([]) == 0
    assert capsys.readouterr().out.count("(1 row)") == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT nothing;\nSELECT 2 AS two;"))
    assert main([]) == 1
    shown = capsys.readouterr()
    assert "unknown column: nothing" in shown.err
    assert shown.out == ""


def test_statements_and_scripts_run_in_the_order_given(tmp_path: Path, capsys: Captured) -> None:
    script = tmp_path / "script.sql"
    script.write_text("INSERT INTO t VALUES (7);\n\\pset format csv")
    create = "CREATE TABLE t (k BIGINT, PRIMARY KEY (k))"
    assert main(["-c", create, "-f", str(script), "-c", "SELECT k FROM t", "-c", "\\q", "-c", "SELECT 9"]) == 0
    assert capsys.readouterr().out == "done\n1 row changed\nformat is csv.\nk\n7\n"


def test_errors_of_a_script_have_file_and_line(tmp_path: Path, capsys: Captured) -> None:
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1 AS one;\n\n/* two\nlines */\nSELECT 2,\n  nothing;\n\\nosuch\nSELECT 3 AS three;\n")
    assert main(["-f", str(script)]) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[:3] == [
        f"{script}:6: [1008 PARSING] unknown column: nothing, at line 6, column 3",
        "    nothing;",
        "    ^^^^^^^",
    ]
    assert "three" not in printed.out
    assert main(["-f", str(script), "--continue"]) == 1
    printed = capsys.readouterr()
    assert f"{script}:7: \\nosuch is not a command" in printed.err
    assert "three" in printed.out
    assert main(["-f", str(tmp_path / "none.sql")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_an_error_without_a_place_has_the_line_of_its_statement(tmp_path: Path, capsys: Captured) -> None:
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;\n-- a comment\n\\i nothing.sql\n")
    assert main(["-f", str(script)]) == 1
    assert capsys.readouterr().err.startswith(f"{script}:3: nothing.sql cannot be read")


def test_a_folder_is_not_created_unasked(tmp_path: Path) -> None:
    for arguments in (
        ["shop.remuda", "-c", "SELECT 1"],
        ["sql", "-d", "shop.remuda", "-c", "SELECT 1"],
        ["shop.remuda"],
    ):
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr == "shop.remuda does not exist. Add --create to create it, or check the path\n"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    done = run("full", "-c", "SELECT 1", cwd=tmp_path)
    assert done.stderr == "full is a folder without maps. Add --create to create it, or check the path\n"
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "notes.txt"]
    assert run("shop.remuda", "--create", "-c", "CREATE TABLE t (k BIGINT)", cwd=tmp_path).returncode == 0
    assert run("shop.remuda", "-c", "SELECT COUNT(*) FROM t", cwd=tmp_path).returncode == 0


def test_read_only(tmp_path: Path, capsys: Captured) -> None:
    folder = str(tmp_path / "shop.remuda")
    assert main([folder, "--read-only", "-c", "SELECT 1"]) == 1
    assert "--read-only needs a folder that has some" in capsys.readouterr().err
    assert main(["--read-only", "-c", "SELECT 1"]) == 1
    with remuda.open(folder) as writer:
        writer.sql("CREATE TABLE t (k BIGINT, PRIMARY KEY (k))")
        writer.sql("INSERT INTO t VALUES (1)")
        capsys.readouterr()
        assert main([folder, "--read-only", "--format", "csv", "-c", "SELECT k FROM t"]) == 0
        assert capsys.readouterr().out == "k\n1\n"
        assert main([folder, "--read-only", "-c", "INSERT INTO t VALUES (2)"]) == 1
        assert "open for reading only" in capsys.readouterr().err
        assert main([folder, "-c", "SELECT 1"]) == 1, "two writers are one too many"


def test_paths_that_mean_nothing(tmp_path: Path, capsys: Captured) -> None:
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;")
    for paths, said in (
        ([str(script)], "run it with: remuda -f"),
        (["a.remuda", "b.remuda"], "one folder is opened at a time"),
        (["none.parquet"], "there is no such file: none.parquet"),
        (["none-*.parquet"], "no file matches none-*.parquet"),
        (["none.parquet", "a.remuda"], "open one of them"),
    ):
        assert main([*paths, "-c", "SELECT 1"]) == 1
        assert said in capsys.readouterr().err


def test_a_pipe_gets_values_as_they_are() -> None:
    done = run("--format", "csv", "-c", "SELECT chr(27) || '[2J' AS x")
    assert done.stdout == "x\n\x1b[2J\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m remuda --format csv -c 'SELECT * FROM range(1000000) AS r(i)' | head -2"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "i\n0\n"
    assert done.stderr == ""


def test_nothing_of_the_line_editor_is_imported_for_a_statement() -> None:
    code = (
        "import sys; from remuda.cli import main; main(['-c', 'SELECT 1']); print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for module in ("prompt_toolkit", "pygments", "readline", "asyncio", "remuda.cli.shell.interactive"):
        assert f"'{module}'" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "own", "expected"),
    [("", None, "4"), ("", "26", "26"), ("['-c', 'SELECT 1']", None, "None")],
    ids=["command", "set by the user", "called by a program"],
)
def test_numpy_spins_no_threads_in_the_process_of_the_command(
    arguments: str, own: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would take a sixth of its processor time; a program that calls `main` keeps its own environment."""
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    if own is not None:
        monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", own)
    code = (
        "import os, sys; from remuda.cli import main\n"
        f"assert 'numpy' not in sys.modules; main({arguments})\n"
        "assert 'numpy' in sys.modules; print(os.environ.get('OPENBLAS_THREAD_TIMEOUT'), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, "-c", "SELECT 1"], capture_output=True, text=True, check=True)
    assert done.stderr == f"{expected}\n"
