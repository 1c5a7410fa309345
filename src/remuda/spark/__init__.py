"""Spark as the distributed half of the engine: sessions, tasks on executor slots, bulk loading, a data source.

Only this package imports pyspark, and only inside functions: `import remuda` needs neither pyspark nor a Java. It knows
storage, plans and operators; it must not know the grid, which decides when Spark is used.
"""

from typing import TYPE_CHECKING

from remuda.spark.driver.java import find_java
from remuda.spark.driver.spark_session import session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql import SparkSession as SparkSession

__all__ = ["export", "find_java", "lookup", "register", "session", "table", "write"]


def register(spark: "SparkSession") -> None:
    """Make `spark.read.format("remuda")`, `df.write`, `df.writeStream` and the SQL function `remuda_lookup` work."""
    from remuda.spark.driver.pyspark_version import refuse_old_pyspark

    refuse_old_pyspark()
    from remuda.spark.frames.lookup_function import register_lookup
    from remuda.spark.source.data_source import register

    register(spark)
    register_lookup(spark)


def lookup(
    df: "DataFrame",
    path: "str | PathLike[str]",
    map: str,
    *,
    on: "str | Iterable[str] | Mapping[str, str]",
    columns: "Iterable[str] | Mapping[str, str] | None" = None,
    how: str = "left",
    index: str | None = None,
    cache: "str | PathLike[str] | None" = None,
) -> "DataFrame":
    """Look up each row of a data frame in a map, inside the executors, and return the frame with columns of the map.

    `on` names the columns of the frame that have the key: one, a list, or a dictionary from columns of the frame to
    columns of the map. With `index`, the name of an index, its columns take the place of the key, and a row comes as
    often as the index has rows for it. `columns` are those to add, or a dictionary from these to new names; without it
    all are added but the key. A row without a match has NULLs, and is left out where `how` is "inner". All tasks of an
    execution read one version of the map, which is the newest in each execution: in each micro-batch of a stream.
    `cache` is the folder on each machine for what is fetched of a remote store.
    """
    from remuda.spark.frames.lookup_frame import lookup

    return lookup(df, _options(path, map, cache), on=on, columns=columns, how=how, index=index)


def table(
    spark: "SparkSession",
    path: "str | PathLike[str]",
    map: str,
    *,
    columns: "Iterable[str] | None" = None,
    version: int | None = None,
    tasks: int | None = None,
    cache: "str | PathLike[str] | None" = None,
) -> "DataFrame":
    """Return a map as a data frame of some of its columns, whose size Spark knows: it broadcasts a small one.

    `columns` are those to read, without it all. Each query reads the newest version, or always that of the number
    `version`, as SHOW VERSIONS lists them. `tasks` is how many tasks read it,
    by default as many as the session runs at once. `cache` is as in `lookup`.
    """
    from remuda.spark.frames.map_frame import table

    return table(spark, _options(path, map, cache), columns, version, tasks)


def write(
    df: "DataFrame",
    path: "str | PathLike[str]",
    map: str,
    *,
    mode: str = "append",
    key: "str | Sequence[str] | None" = None,
    indexes: "str | Sequence[str] | None" = None,
    json: "str | Sequence[str] | None" = None,
    partitions: int | None = None,
    operation: str | None = None,
    changes: str | None = None,
    orderBy: str | None = None,  # noqa: N803
    condition: str | None = None,
    batchId: "tuple[str, int] | str | None" = None,  # noqa: N803
    missing: str | None = None,
    cache: "str | PathLike[str] | None" = None,
) -> None:
    """Write a data frame into a map in one commit. The words are those of the options of `df.write`.

    All rows of a partition, and so of a key, come to one task: the segments of different tasks have no keys in common,
    and each covers a range of partitions, as those of `grid.load` do. `mode` may also be `replace`, Spark's overwrite.
    """
    from remuda.spark.driver.pyspark_version import refuse_old_pyspark

    refuse_old_pyspark()
    from remuda.spark.source.write import write_frame

    request = {"key": key, "indexes": indexes, "json": json, "partitions": partitions, "missing": missing}
    told = {"operation": operation, "changes": changes, "orderBy": orderBy, "condition": condition}
    write_frame(df, {"path": str(path), "map": map, "cache": cache, **request, **told}, mode, batchId)


def export(
    path: "str | PathLike[str]",
    map: str,
    target: str,
    *,
    spark: "SparkSession",
    format: str = "parquet",
    mode: str = "errorifexists",
    columns: "Iterable[str] | None" = None,
    version: int | None = None,
    options: "Mapping[str, str] | None" = None,
    cache: "str | PathLike[str] | None" = None,
) -> None:
    """Write a map by Spark's own writer for `parquet`, `delta` or `iceberg`, as it is now or was in a version.

    `target` is a path, or for Iceberg also the name of a table. `mode` is that of Spark's writer, `options` are its
    options. All tasks read one version. What changes after a version is read by the option `changes`. `cache` is as in
    `lookup`.
    """
    from remuda.spark.frames.export import export

    export(spark, _options(path, map, cache), target, format, mode, columns, version, options or {})


def _options(path: "str | PathLike[str]", map: str, cache: "str | PathLike[str] | None") -> dict[str, str]:
    """Return the options of the data source by which a map is found."""
    return {"path": str(path), "map": map, **({} if cache is None else {"cache": str(cache)})}
