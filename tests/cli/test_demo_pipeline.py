"""The pipeline that `remuda demo` shows, on a small number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import remuda
from remuda.cli.demo_pipeline import run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_pipeline_loads_looks_up_and_tells_what_has_changed(spark: SparkSession, tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop.remuda", spark=spark) as grid:
        loaded, looked_up, changed = run_pipeline(spark, grid, tmp_path, 1000)
        assert loaded.rows == 1000
        assert looked_up.rows > 0
        assert (changed.rows, changed.how) == (30, "10 insert, 10 update_postimage, 0 delete")
        assert grid.sql("SELECT COUNT(*) FROM customers").fetchone() == (1010,)
