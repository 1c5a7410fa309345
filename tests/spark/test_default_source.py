"""The format `remuda` in sessions that have not registered it: Spark finds it by the package `pyspark_remuda`."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda
import remuda.spark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A new session, which Spark makes the active one of this thread as soon as it is used."""
    yield spark.newSession()
    spark.createDataFrame([], "nothing INT")


def test_a_new_session_reads_and_writes_without_registering(session: SparkSession, tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop.remuda") as grid:
        path = str(grid.store.path)
        grid.sql("CREATE TABLE t (k BIGINT, v VARCHAR, PRIMARY KEY (k))")
        frame = session.createDataFrame([(1, "a"), (2, "b")], "k BIGINT, v STRING")
        frame.write.format("remuda").options(path=path, map="t").mode("append").save()
        session.sql(f"CREATE TEMPORARY VIEW found_by_spark USING remuda OPTIONS (path '{path}', map 't')")
        assert session.sql("SELECT v FROM found_by_spark WHERE k = 2").collect() == [("b",)]
        failures: list[BaseException] = []

        def write() -> None:
            try:
                more = session.createDataFrame([(3, "c")], "k BIGINT, v STRING")
                more.write.format("remuda").options(path=path, map="t").mode("append").save()
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert failures == []
        assert grid.sql("SELECT COUNT(*) FROM t").fetchall() == [(3,)]
        remuda.spark.register(session)
        assert session.read.format("remuda").options(path=path, map="t").load().count() == 3


def test_without_the_data_sources_of_pyspark_the_package_stays_silent() -> None:
    """Spark 3.5 and 4.0 must find the data sources of others."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(remuda.__file__).parents[1])!r})\n"
        "sys.modules['pyspark.sql.datasource'] = None\n"
        "import pyspark_remuda\n"
        "print(hasattr(pyspark_remuda, 'DefaultSource'))"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["False"]
