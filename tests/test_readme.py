"""The examples of the README run as they are written."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = Path(__file__).parent.parent / "README.md"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def _orders(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": [f"C{id_ % 7}" for id_ in ids],
            "status": ["NEW"] * count,
            "amount": [float(id_) for id_ in ids],
            "created": pa.array([dt.datetime(2024, 1, 1)] * count, pa.timestamp("us")),
        }
    )


def test_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(_orders(100, 50), "more-orders.parquet")
    (tmp_path / "orders").mkdir()
    pq.write_table(_orders(1000, 500), "orders/part.parquet")
    embedded, with_spark, other_faces = _blocks("python")
    names: dict[str, Any] = {}
    exec(embedded, names)
    printed = capsys.readouterr().out
    assert "1 19.5 19.5" in printed
    (plan,) = re.findall(r"```\n(Root .*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert plan in printed
    assert len(names["orders"]) == 52
    names["grid"].close()
    # The tests share one session, which was started elsewhere: its master and its working directory are its own.
    exec(with_spark.replace("local[*]", "local[2]").replace('"orders/"', f'"{tmp_path}/orders/"'), names)
    grid = names["grid"]
    assert len(grid.map("orders")) == 552
    assert dict(grid.sql("SELECT status, COUNT(*) FROM orders GROUP BY status"))["NEW"] == 551
    capsys.readouterr()
    # The session's tasks work in another folder, and there is no object store here.
    here = other_faces.replace('"path", "shop.remuda"', f'"path", "{tmp_path}/shop.remuda"')
    exec(here.replace("s3://bucket/", f"file://{tmp_path}/"), names)
    assert "NEW" in capsys.readouterr().out
    archive = names["archive"]
    assert len(archive.map("orders")) == 552
    archive.close()
    grid.close()
