"""The examples of docs/spark.md, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_examples_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's processes have another working directory than this one: the folder is named in full."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, Any] = {}
    try:
        for block in blocks:
            exec(block.replace("shop.remuda", str(tmp_path / "shop.remuda")), names)
    finally:
        if "grid" in names:
            names["grid"].close()
    assert names["spark"] is spark
