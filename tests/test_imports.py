"""What `import remuda` brings with it: the embedded engine, and nothing that needs a Java or half a second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def test_import_loads_nothing_large() -> None:
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"pyarrow", "numpy", "sqlglot", "pyspark", "pandas"} & set(loaded)


def test_the_engine_loads_neither_pyspark_nor_pandas() -> None:
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda; remuda.open; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"pyspark", "py4j", "pandas", "polars", "duckdb"} & set(loaded)
    assert "remuda" in loaded


def test_asking_embedded_loads_no_spark() -> None:
    """pandas is another matter: pyarrow loads it by itself, where it is installed, when it makes its first array."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda\n"
        "grid = remuda.open()\n"
        "grid.sql('CREATE TABLE t (k BIGINT, PRIMARY KEY (k))')\n"
        "grid.sql('INSERT INTO t VALUES (1)')\n"
        "assert [tuple(row) for row in grid.sql('SELECT k FROM t')] == [(1,)]\n"
        "grid.close()\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"pyspark", "py4j"} & set(loaded)


def test_a_lookup_by_key_in_a_new_process_loads_no_sql(tmp_path: Path) -> None:
    """The parser takes more than a third of the time from a new process to a row, plans and operators a quarter."""
    path = tmp_path / "maps"
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda; grid = remuda.open({str(path)!r})\n"
    create = (
        code + "grid.sql('CREATE TABLE t (k BIGINT, v BIGINT, PRIMARY KEY (k))').close(); grid.map('t')[1] = {'v': 5}\n"
    )
    subprocess.run([sys.executable, "-c", create + "grid.close()"], check=True)
    ask = code + "assert grid.map('t').get(1).v == 5; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True).stdout.split()
    assert not {"sqlglot", "remuda.sql", "remuda.optimizer", "remuda.grid.files.inputs", "pandas"} & set(loaded)
    assert not {"remuda.exec.build", "remuda.plan.physical", "remuda.runtime.local"} & set(loaded)
    assert "pyarrow.compute" not in loaded


def test_a_first_query_loads_no_other_statements_and_no_kernels() -> None:
    """What COPY, EXPLAIN and SHOW need, and the functions of Arrow's kernels, take a tenth of its time together."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda\n"
        "assert [tuple(row) for row in remuda.open().sql('SELECT 1')] == [(1,)]; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {
        "remuda.grid.statements.dispatch",
        "remuda.grid.files.formats",
        "pyarrow.compute",
        "hashlib",
        "fractions",
    } & set(loaded)
    operators = {"remuda.exec.join.hash_join", "remuda.exec.aggregate.aggregate", "remuda.exec.window.window"}
    files = {"remuda.storage.folder.store_folder", "remuda.storage.wal.log", "remuda.storage.map_store"}
    assert not (operators | files) & set(loaded)


def test_a_lookup_of_many_keys_loads_no_pandas(tmp_path: Path) -> None:
    """pyarrow loads it with the first array that it makes of Python values or of numpy's: a quarter of a second."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import remuda; grid = remuda.open({str(tmp_path / 'g')!r})\n"
    )
    create = (
        "grid.sql('CREATE TABLE t (k BIGINT, v VARCHAR, PRIMARY KEY (k))')\n"
        "grid.sql('CREATE INDEX by_v ON t (v) TYPE HASH')\n"
        "grid.sql(\"INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, NULL)\"); grid.checkpoint(); grid.close()"
    )
    subprocess.run([sys.executable, "-c", code + create], check=True)
    ask = (
        "found = grid.map('t').lookup([2, 9, None], ['v'])\n"
        "assert found.column('v').to_pylist() == ['a', None, None], found\n"
        "assert grid.map('t').lookup(['a', 'b'], ['k'], index='by_v').column('k').to_pylist() == [1, 2]\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code + ask], check=True, capture_output=True, text=True).stdout
    assert "pandas" not in loaded.split()
