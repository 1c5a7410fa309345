"""Maps for other engines: written by Spark's own writers, from one version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import not_supported, option_error
from remuda.spark.frames.map_frame import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

FORMATS = ("parquet", "delta", "iceberg")
MODES = ("errorifexists", "overwrite", "append", "ignore")
_PACKAGES = {
    "delta": 'spark.jars.packages = "io.delta:delta-spark_..."',
    "iceberg": 'spark.jars.packages = "org.apache.iceberg:iceberg-spark-runtime-..."',
}
_UNKNOWN_FORMAT = "DATA_SOURCE_NOT_FOUND"


def export(
    session: SparkSession,
    source: Mapping[str, str],
    target: str,
    format: str,
    mode: str,
    columns: Iterable[str] | None,
    version: int | None,
    options: Mapping[str, str],
) -> None:
    """Write a map into files of another format: see `remuda.spark.export`."""
    if format not in FORMATS:
        raise option_error(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    if mode not in MODES:
        raise option_error(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    frame = table(session, source, columns, version, None)
    try:
        frame.write.format(format).mode(mode).options(**options).save(target)
    except Exception as error:
        if format in _PACKAGES and _UNKNOWN_FORMAT in str(error):
            raise not_supported(
                f"this Spark has no writer for {format}", suggestion=f"Start the session with {_PACKAGES[format]}."
            ) from error
        raise
