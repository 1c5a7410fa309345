"""The corpus: every `.slt` file, in every configuration of Remuda, and on DuckDB, the oracle.

The DuckDB run is what makes an expected result true: no block is merely what Remuda happened to say. So
`pytest tests/slt --rewrite` writes what DuckDB answers, never what Remuda does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.databases import CONFIGURATIONS, Configuration, DuckDatabase, RemudaDatabase
from tests.harness.slt import Record, parse, rewrite
from tests.harness.slt_run import answers, run

FILES = sorted(Path(__file__).parent.glob("*.slt"))
ON_SPARK = {"aggregate", "joins", "keys", "order", "parameters", "select", "subqueries", "temporal", "windows"}
"""What runs on Spark among the fast tests. A leaf runs there with the same operators and functions as here, so other
files, which are about functions and about what stands above the leaves, are left to the slow tests."""
BY_SHUFFLE = {"joins"}
"""The same where rows meet in tasks; the tests of that are in `tests/spark`."""


def _marks(file: Path, configuration: Configuration) -> list[pytest.MarkDecorator]:
    if not configuration.spark:
        return []
    fast = BY_SHUFFLE if configuration.shuffle else ON_SPARK
    return [pytest.mark.spark] if file.stem in fast else [pytest.mark.spark, pytest.mark.slow]


def _records(file: Path) -> tuple[Record, ...]:
    return parse(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_duckdb_agrees(file: Path, pytestconfig: pytest.Config) -> None:
    database = DuckDatabase()
    try:
        if pytestconfig.getoption("--rewrite"):
            text = rewrite(file.read_text(encoding="utf-8"), answers(_records(file), database))
            file.write_text(text, encoding="utf-8")
        else:
            run(_records(file), database, check_messages=False)
    finally:
        database.close()


@pytest.mark.parametrize(
    ("file", "configuration"),
    [
        pytest.param(file, configuration, id=f"{configuration.name}-{file.stem}", marks=_marks(file, configuration))
        for configuration in CONFIGURATIONS
        for file in FILES
    ],
)
def test_remuda(file: Path, configuration: Configuration, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    session = request.getfixturevalue("spark") if configuration.spark else None
    database = RemudaDatabase(configuration, tmp_path / "grid.remuda", session)
    try:
        run(_records(file), database)
    finally:
        database.close()
