"""Sorts beyond `memory_limit`: the same rows in the same order as without it, and no file is left."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec.spill.spill_folder import SpillFolder

ROWS = 30_000
SORTS = {
    "text": "SELECT * FROM m ORDER BY t, id",
    "text descending, NULL first": "SELECT * FROM m ORDER BY t DESC NULLS FIRST, id DESC",
    "floating point, NULL last": "SELECT * FROM m ORDER BY x NULLS LAST, id",
    "decimal": "SELECT * FROM m ORDER BY d DESC NULLS LAST, id",
    "few values": "SELECT * FROM m ORDER BY id % 3, id",
    "computed text": "SELECT id, t || id AS long FROM m ORDER BY long NULLS FIRST, id",
}


def rows() -> pa.Table:
    numbers = [number * 7919 % ROWS for number in range(ROWS)]
    special = {0: None, 1: math.nan, 2: -0.0, 3: 0.0, 4: math.inf, 5: -math.inf}
    return pa.table(
        {
            "id": numbers,
            "t": [None if number % 11 == 0 else f"text {number % 977}" for number in numbers],
            "x": pa.array([special.get(number % 50, number / 7) for number in numbers], pa.float64()),
            "d": pa.array(
                [None if number % 13 == 0 else Decimal(number % 500 - 250) for number in numbers], pa.decimal128(30, 2)
            ),
        }
    )


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, t VARCHAR, x DOUBLE, d DECIMAL(30, 2), PRIMARY KEY (id))")
        opened.load("m", rows())
        yield opened


@pytest.fixture
def limited(grid: Any, tmp_path: Path) -> Iterator[Any]:
    with grid.session() as session:
        session.sql(f"SET spill_folder = '{tmp_path}'")
        session.sql("SET memory_limit = '200kB'")
        yield session


def told(answer: Any) -> list[str]:
    """As text: NaN equals itself, and -0.0 is not 0.0."""
    return [repr(tuple(row)) for row in answer]


@pytest.mark.parametrize("sort", SORTS)
def test_order_is_that_of_memory_and_of_duckdb(grid: Any, limited: Any, sort: str) -> None:
    spilled = told(limited.sql(SORTS[sort]))
    assert spilled == told(grid.sql(SORTS[sort]))
    with duckdb.connect() as connection:
        connection.register("m", rows())
        query = SORTS[sort] if "NULLS" in SORTS[sort] else SORTS[sort].replace(" t, id", " t NULLS FIRST, id")
        assert [int(re.match(r"\((\d+)", row)[1]) for row in spilled] == [
            row[0] for row in connection.sql(query).fetchall()
        ]


def test_explain_analyze_says_what_was_spilled(limited: Any) -> None:
    def plan() -> str:
        return "\n".join(str(row[0]) for row in limited.sql(f"EXPLAIN ANALYZE {SORTS['text']}"))

    found = re.search(r"spilled: (\d+) runs, ([\d,]+) bytes", plan())
    assert found is not None
    assert int(found[1]) > 1
    limited.sql("SET memory_limit = '1GB'")
    assert "spilled" not in plan()


def test_files_have_no_names_and_end_with_the_statement(limited: Any, tmp_path: Path) -> None:
    result = limited.sql(SORTS["text"])
    assert result.fetchone() is not None
    assert open_files(tmp_path) > 0
    assert list(tmp_path.iterdir()) == []
    result.close()
    assert open_files(tmp_path) == 0


def open_files(folder: Path) -> int:
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            count += str(link.readlink()).startswith(f"{folder}/")
        except OSError:  # closed meanwhile
            continue
    return count


def test_timeout_ends_a_sort_that_spills(limited: Any, tmp_path: Path) -> None:
    limited.sql("SET timeout = 0.01")
    with pytest.raises(SqlError) as caught:
        limited.sql(SORTS["computed text"]).fetchall()
    assert caught.value.code is ErrorCode.TIMEOUT
    assert list(tmp_path.iterdir()) == []


def test_a_closed_folder_makes_no_file_and_its_files_are_closed(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    file = folder.new_file()
    batch = pa.RecordBatch.from_pydict({"0": [1, None, 3]})
    file.write(batch)
    file.write(batch.slice(1))
    assert list(file.batches()) == [batch, batch.slice(1)]
    folder.close()
    for use in (folder.new_file, lambda: file.write(batch), lambda: list(file.batches())):
        with pytest.raises(SqlError, match="cancelled"):
            use()


CHILD = """
import resource, sys, pyarrow as pa, remuda
grid = remuda.open()
grid.load("m", pa.table({"id": range(60000), "n": [i * 7919 % 60000 for i in range(60000)]}), key="id")
grid.sql("SET memory_limit = '200kB'")
grid.sql(f"SET spill_folder = '{sys.argv[1]}'")
"""
FULL = """
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    grid.sql("SELECT * FROM m ORDER BY n").fetchall()
except remuda.SqlError as error:
    print(error.sqlstate, error.message)
"""
KILLED = """
import os, signal
result = grid.sql("SELECT * FROM m ORDER BY n")
result.fetchone()
links = [os.path.realpath(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")]
print(any(link.startswith(sys.argv[1]) for link in links), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def run_child(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CHILD + code, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return done.stdout


def test_a_full_disk_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    answer = run_child(FULL, tmp_path)
    assert answer.startswith(f"53100 no space is left in {tmp_path} for the rows"), answer
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    assert run_child(KILLED, tmp_path).strip() == "True"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(grid: Any, tmp_path: Path) -> None:
    with grid.session() as session, pytest.raises(SqlError, match="spill_folder must be a folder that exists"):
        session.sql(f"SET spill_folder = '{tmp_path / 'absent'}'")
