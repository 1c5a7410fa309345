"""The Spark data source: `spark.read.format("remuda")`, `df.write.format("remuda")`, `df.writeStream`.

    spark.read.format("remuda").option("path", "shop.remuda").option("map", "orders").load()
    spark.read.format("remuda").option("path", "shop.remuda").option("query", "SELECT ...").load()
    spark.readStream.format("remuda").options(path="shop.remuda", map="orders", changes="delta").load()
    df.write.format("remuda").option("path", "shop.remuda").option("map", "orders").mode("append").save()

Options: `path`, a folder that all executors see or an address such as `s3://bucket/shop.remuda`; `map` or `query`; for
reading `columns` (Spark does not say which it needs) and `tasks`, `version` or `timestamp` for a map as it was, and
`changes` and `since`, the version that was read before, for what has changed (`change_read`); for appending `mode` =
append or upsert, `orderBy`, the column whose greatest value wins where an upsert has a key more than once, and
`missing` = null, which writes NULL into columns that the data lacks. With `key` a map that is absent is created
(`write_target`). Spark's mode overwrite replaces all rows of the map in one commit. Files of a remote folder are cached
on the disk of each machine that reads them, in the folder `cache`. Any number of jobs may write a store on S3, Google
Cloud Storage or Azure at the same time; on HDFS only one may, and `soleWriter` = true says that there is no other.

Writing many rows costs the JVM less where the session's `spark.sql.execution.arrow.maxBytesPerBatch` is 2147483647:
with any other limit Spark adds up the sizes of all columns after every row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSource

from remuda.errors import not_supported, option_error
from remuda.spark.driver.connect import is_connect
from remuda.spark.driver.spark_session import make_importable
from remuda.spark.driver.tasks import refuse_stopped, slot_count
from remuda.spark.source.change_read import ChangeReader, feed_columns, reads_changes
from remuda.spark.source.change_stream import ChangeStream
from remuda.spark.source.pinned_read import is_sole_writer, open_reader
from remuda.spark.source.planned_map import find_map, past_moment
from remuda.spark.source.source_read import (
    MapReader,
    QueryReader,
    default_tasks,
    query_columns,
    task_count,
)
from remuda.spark.source.source_write import MODES, MapStreamWriter, MapWriter, find_target
from remuda.storage.state.applied_batches import BatchId

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from remuda.storage import LoadMode

_OPTIONS = frozenset(
    {
        *("path", "map", "query", "columns", "tasks", "cache"),
        *("mode", "missing", "orderby", "key", "indexes", "partitions", "json", "solewriter"),
        *("operation", "changes", "condition", "batchid", "since", "version", "timestamp"),
    }
)
_OF_READS = ("columns", "version", "timestamp", "since")
"""Options that a write does not take: rows would go elsewhere than they say."""
_OF_STREAMS = frozenset({"checkpointlocation", "queryname"})
"""What Spark hands on of a stream."""

_OF_MAPS = ("columns", "changes", "since")
"""Options that say something of the map that is read."""

_TABLE_OPTIONS = {"provider", "location"}
"""What Spark adds for CREATE TABLE. For a table that is there, it gives no option at all."""


class RemudaSource(DataSource):
    tasks = default_tasks()

    @classmethod
    def name(cls) -> str:
        return "remuda"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        if not options or options.keys() >= _TABLE_OPTIONS:
            raise not_supported(
                "a table USING remuda is not kept in Spark's catalog, since Spark hands none of its options on",
                suggestion="Use CREATE TEMPORARY VIEW v USING remuda OPTIONS (path '...', map '...').",
            )
        if any(name.casefold() == "pushfilters" for name in options):
            raise option_error(
                "filters are not pushed down: Spark keeps them with the data frame, and would apply them to other "
                "queries over it",
                suggestion='Put the condition into the frame: .option("query", "SELECT ... WHERE ...").',
            )
        if any(name.casefold() == "mergeschema" for name in options):
            raise not_supported(
                "mergeSchema: a table keeps its columns",
                suggestion='Leave new columns out, or create another map for them: option("key", "...").',
            )
        unknown = [name for name in options if name.casefold() not in _OPTIONS | _OF_STREAMS]
        if unknown:
            known = (
                "path, map, query, columns, tasks, mode, missing, orderBy, key, indexes, partitions, json, operation, "
                "changes, condition, batchId, since, version, timestamp, cache"
            )
            raise option_error(f"unknown option: {unknown[0]}; the options are {known}")
        is_sole_writer(options)
        if not options.get("path"):
            raise option_error('say where the maps are: .option("path", ...)')
        if bool(options.get("map")) == bool(options.get("query")):
            raise option_error('say what to read: .option("map", ...) or .option("query", "SELECT ...")')
        of_map = [name for name in _OF_MAPS if name in options and "query" in options]
        if of_map:
            raise option_error(f"{of_map[0]} belongs to the option map: a query says itself what it reads")

    def schema(self) -> str:
        if "query" in self.options:
            columns: Any = query_columns(self.options)
        else:
            store = open_reader(self.options)
            try:
                definition = find_map(store, self.options["map"], past_moment(self.options))
                columns = feed_columns(definition, self.options)
            finally:
                store.close()
        return ", ".join(
            "`" + column.name.replace("`", "``") + f"` {column.type.spark}{'' if column.nullable else ' NOT NULL'}"
            for column in columns
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        if past_moment(self.options) is not None and ("query" in self.options or "changes" in self.options):
            raise option_error(
                "version and timestamp belong to the option map alone",
                suggestion='Write "FROM t FOR VERSION AS OF 7" in a query, and since = 7 to read the changes after it.',
            )
        if "query" in self.options:
            query = QueryReader(self.options, self.tasks)
            query.refuse_other(schema)
            return query
        if reads_changes(self.options):
            return ChangeReader(self.options, task_count(self.options, self.tasks))
        if "since" in self.options:
            raise option_error('since belongs to the changes of a map: .option("changes", "delta")')
        reader = MapReader(self.options, self.tasks)
        reader.refuse_other(schema)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> MapWriter:
        if overwrite and "mode" in self.options:
            raise option_error(
                f'the mode "overwrite" replaces all rows, and the option mode = {self.options["mode"]} does not: '
                "leave one of them out"
            )
        mode = "replace" if overwrite else self._mode("append")
        batch = BatchId.checked(self.options.get("batchId"))
        return MapWriter(find_target(self._for_writing(), schema, mode, batch))

    def streamReader(self, schema: StructType) -> ChangeStream:
        if "map" not in self.options:
            raise option_error('a stream reads the versions of a map: .option("map", ...)')
        return ChangeStream(self.options, task_count(self.options, self.tasks))

    def streamWriter(self, schema: StructType, overwrite: bool) -> MapStreamWriter:
        if overwrite:
            raise option_error(
                'a stream into a map has the output mode "append" (its rows replace those with their keys)'
            )
        mode = self._mode("upsert")
        if mode == "append":
            raise option_error("a stream replaces rows with equal keys: a batch that Spark repeats must do no harm")
        target = find_target(self._for_writing(), schema, mode).created()
        target = replace(target, stream=self.options.get("batchId"))
        if target.generates_keys:
            raise option_error(
                f"{target.definition.name} has no PRIMARY KEY: a batch that Spark repeats after a failure would be "
                "added twice. Write the stream into a map with a key, or each batch by foreachBatch"
            )
        return MapStreamWriter(target)

    def _for_writing(self) -> MutableMapping[str, str]:
        if "map" not in self.options:
            raise option_error('say which map to write: .option("map", ...)')
        reading = next((name for name in _OF_READS if name in self.options), None)
        if reading is not None:
            raise option_error(f"{reading} says what is read, and this is a write: leave it out")
        return self.options

    def _mode(self, default: LoadMode) -> LoadMode:
        mode = self.options.get("mode", default)
        if mode not in MODES:
            raise option_error(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        return cast("LoadMode", mode)


def register(spark: SparkSession) -> None:
    """Make the format `remuda` known to a session, whose settings stay as they are, and to writes of this thread."""
    if is_connect(spark):  # its server imports this class, and has no threads of ours
        spark.dataSource.register(RemudaSource)
        return
    refuse_stopped(spark)
    make_importable(spark.sparkContext)

    class Registered(RemudaSource):
        """Made here so that it travels to Spark's Python processes by value, with what it knows of the session."""

        tasks = slot_count(spark)

    spark.dataSource.register(Registered)
    # Spark looks for the format of a write in the session of the thread, which other threads than the first have none
    # of until they make a data frame.
    spark.createDataFrame([], "nothing INT")
