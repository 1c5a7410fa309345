"""What all tests share: the options, the Spark session, the profiles of the property tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Examples start engines, so they take milliseconds, and a loaded machine makes any deadline a coin toss.
settings.register_profile("fast", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30)
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=500)
settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the present plans into the golden files, and DuckDB's answers into the .slt files",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`pytest -m "not spark"` then leaves out every test that would start a Java, without anyone marking it.

    Where several processes share the tests (`make test`), one of them has all that need Spark, and each file is one's.
    """
    for item in items:
        uses_spark = "spark" in getattr(item, "fixturenames", ())
        if uses_spark:
            item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.xdist_group("spark" if uses_spark else str(item.path)))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local Spark for the whole run: starting one takes longer than all the tests that use it."""
    import remuda.spark

    session = remuda.spark.session(master="local[2]")
    yield session
    session.stop()
