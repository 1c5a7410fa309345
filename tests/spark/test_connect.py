"""Clients of Spark Connect, against a real server. Server and client are processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid

pytest.importorskip("grpc", reason="Spark Connect needs the packages of pyspark[connect]")
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
FOLDER = Path(__file__).parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(remuda.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    command = [sys.executable, str(FOLDER / "connect_server.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = next((line.strip() for line in process.stdout if line.startswith("sc://")), "")
        assert address, "the server has said where it is"
        yield address
        process.stdin.close()


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[Grid]:
    """The writer is in this process; neither server nor client has its grid."""
    with remuda.open(tmp_path / "shop.remuda") as opened:
        opened.sql("CREATE TABLE customers (id BIGINT, name VARCHAR, city VARCHAR, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_city ON customers (city) TYPE HASH")
        opened.sql("INSERT INTO customers SELECT i, 'n' || i, 'c' || (i % 5) FROM generate_series(1, 10) AS s(i)")
        yield opened


@pytest.mark.parametrize("registers", [True, False], ids=["registered", "found by Spark"])
def test_a_client_reads_writes_and_looks_up(server: str, grid: Grid, registers: bool) -> None:
    """Without `register`, the server finds the format by the package `pyspark_remuda`."""
    client = [sys.executable, str(FOLDER / "connect_client.py"), server, str(grid.store.path)]
    ended = subprocess.run(
        [*client, "registers" if registers else "finds"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    answers = json.loads(ended.stdout.splitlines()[-1])
    assert answers["rows"] == 10
    assert answers["lookup"] == [[1, 7, "n7"], [2, 100, "new"], [3, None, None], [4, 555, None]]
    assert answers["index"] == [1, 6, 100]
    assert (answers["view"], answers["table"]) == (11, 11)
    assert answers.get("function", [[1, "n7"], [2, "new"]]) == [[1, "n7"], [2, "new"]]
    for message, expected in zip(
        answers["errors"],
        ["customers has no column nothing", "unknown table: custmers", "a Spark Connect session cannot run"],
        strict=True,
    ):
        assert expected in message
    assert grid.sql("SELECT name FROM customers WHERE id = 100").fetchall() == [("new",)]
