"""What all tests share: the options, the Spark session, the profiles of the property tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Examples start engines, so they take milliseconds, and a loaded machine makes any deadline a coin toss.
settings.register_profile(
    "thorough",
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
    ],
    max_examples=500,
)
# Always the same examples: a run of them fails for what was changed. Others are looked for with the profile above.
settings.register_profile("fast", settings.get_profile("thorough"), derandomize=True, database=None, max_examples=30)
settings.load_profile("fast")

SHARED = pytest.StashKey["SparkSession | None"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the present plans into the golden files, and DuckDB's answers into the .slt files",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`pytest -m "not spark"` then leaves out every test that would start a Java, without anyone marking it.

    Where several processes share the tests (`make test`), one of them has all that need Spark, and each file is one's.
    A test that asks for the fixture while it runs is marked where it is written.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("xdist_group") is None:
            on_spark = item.get_closest_marker("spark") is not None
            item.add_marker(pytest.mark.xdist_group("spark" if on_spark else str(item.path)))


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """One local Spark for the whole run: starting one takes longer than all the tests that use it."""
    import remuda.spark

    session = remuda.spark.session(master="local[2]")
    pytestconfig.stash[SHARED] = session
    yield session
    pytestconfig.stash[SHARED] = None
    session.stop()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Blame the test that stops the session of all, not those that need it later."""
    shared = item.config.stash.get(SHARED, None)
    if shared is not None and shared.sparkContext._jsc is None:
        item.config.stash[SHARED] = None
        pytest.fail("the Spark session that all tests share was stopped")
