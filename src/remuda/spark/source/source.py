"""The Spark data source: `spark.read.format("remuda")`, `df.write.format("remuda")`, `df.writeStream`.

    spark.read.format("remuda").option("path", "shop.remuda").option("map", "orders").load()
    spark.read.format("remuda").option("path", "shop.remuda").option("query", "SELECT ...").load()
    df.write.format("remuda").option("path", "shop.remuda").option("map", "orders").mode("append").save()

Options: `path`, a folder that all executors see or an address such as `s3://bucket/shop.remuda`; `map` or `query`; for
reading `columns` (Spark does not say which it needs), `tasks` and `pushFilters`; for appending `mode` = append or
upsert. Spark's mode overwrite replaces all rows of the map in one commit. Files of a remote folder are cached on the
disk of each machine that reads them, in the folder `cache`. Any number of jobs may write a store on S3, Google Cloud
Storage or Azure at the same time; on HDFS only one may, and `soleWriter` = true says that there is no other.

Writing many rows costs the JVM less where the session's `spark.sql.execution.arrow.maxBytesPerBatch` is 2147483647:
with any other limit Spark adds up the sizes of all columns after every row.

Spark keeps what a read was planned to with the data frame, not with the query: the filters that one query pushes down
are those of every later one without filters, and of all uses of the data frame within one query. So

    orders.where("id = 7").union(orders.where("id = 8"))

would find 8 twice. Filters are therefore pushed only where `pushFilters` = true says that the data frame is used once;
`query` is the other way to have a condition use partitions and indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSource

from remuda.errors import option_error
from remuda.spark.driver.session import make_importable
from remuda.spark.driver.tasks import slot_count
from remuda.spark.source.source_read import (
    FilteringMapReader,
    MapReader,
    QueryReader,
    default_tasks,
    find_map,
    is_true,
    open_reader,
    query_columns,
    read_columns,
)
from remuda.spark.source.source_write import MODES, MapStreamWriter, MapWriter, find_target

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from remuda.storage import LoadMode

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_OPTIONS = frozenset({"path", "map", "query", "columns", "tasks", "pushfilters", "mode", "cache", "checkpointlocation"})


class RemudaSource(DataSource):
    pushes_filters = False
    tasks = default_tasks()

    @classmethod
    def name(cls) -> str:
        return "remuda"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        unknown = [name for name in options if name.casefold() not in _OPTIONS]
        if unknown:
            known = "path, map, query, columns, tasks, pushFilters, mode, cache"
            raise option_error(f"unknown option: {unknown[0]}; the options are {known}")
        if not options.get("path"):
            raise option_error('say where the maps are: .option("path", ...)')
        if bool(options.get("map")) == bool(options.get("query")):
            raise option_error('say what to read: .option("map", ...) or .option("query", "SELECT ...")')

    def schema(self) -> str:
        if "query" in self.options:
            columns: Any = query_columns(self.options)
        else:
            store = open_reader(self.options)
            try:
                columns = read_columns(find_map(store, self.options["map"]), self.options.get("columns"))
            finally:
                store.close()
        return ", ".join(
            "`" + column.name.replace("`", "``") + f"` {column.type.spark}{'' if column.nullable else ' NOT NULL'}"
            for column in columns
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        if "query" in self.options:
            return QueryReader(self.options)
        pushes = self.pushes_filters and is_true(self.options, "pushFilters")
        return (FilteringMapReader if pushes else MapReader)(self.options, self.tasks)

    def writer(self, schema: StructType, overwrite: bool) -> MapWriter:
        return MapWriter(find_target(self._for_writing(), schema, "replace" if overwrite else self._mode("append")))

    def streamWriter(self, schema: StructType, overwrite: bool) -> MapStreamWriter:
        if overwrite:
            raise option_error(
                'a stream into a map has the output mode "append" (its rows replace those with their keys)'
            )
        if self._mode("upsert") != "upsert":
            raise option_error("a stream replaces rows with equal keys: a batch that Spark repeats must do no harm")
        target = find_target(self._for_writing(), schema, "upsert")
        if target.generates_keys:
            raise option_error(
                f"{target.definition.name} has no PRIMARY KEY: a batch that Spark repeats after a failure would be "
                "added twice. Write the stream into a map with a key, or each batch by foreachBatch"
            )
        return MapStreamWriter(target)

    def _for_writing(self) -> MutableMapping[str, str]:
        if "map" not in self.options:
            raise option_error('say which map to write: .option("map", ...)')
        return self.options

    def _mode(self, default: LoadMode) -> LoadMode:
        mode = self.options.get("mode", default)
        if mode not in MODES:
            raise option_error(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        return cast("LoadMode", mode)


def register(spark: SparkSession) -> None:
    """Makes the format `remuda` known to a session, and lets Spark push filters down to it."""
    make_importable(spark.sparkContext)
    spark.conf.set(_PUSHDOWN, "true")

    class Registered(RemudaSource):
        """Made here so that it travels to Spark's Python processes by value, with what it knows of the session."""

        pushes_filters = True
        tasks = slot_count(spark)

    spark.dataSource.register(Registered)
