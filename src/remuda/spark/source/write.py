"""`remuda.spark.write`: `df.write.format("remuda")` with the rows of each partition brought to one task first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import RemudaError, option_error
from remuda.spark.driver.tasks import as_sql_error, refuse_stopped, slot_count
from remuda.spark.load.change_job import by_partition, row_fields
from remuda.spark.load.matching import match_columns
from remuda.spark.source.data_source import register
from remuda.spark.source.source_write import MODES
from remuda.spark.source.write_target import find_or_define
from remuda.storage.load.change_format import change_format
from remuda.storage.state.applied_batches import BatchId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def write_frame(df: DataFrame, given: Mapping[str, Any], mode: str, batch_id: Any) -> None:
    """Write a data frame with these options of the data source; None is one that is not given."""
    if mode not in (*MODES, "replace"):
        raise option_error(f"mode must be one of {', '.join(MODES)}, replace, not {mode!r}")
    batch = BatchId.checked(batch_id)
    session = df.sparkSession
    refuse_stopped(session)
    register(session)
    options = {name: _text(name, value) for name, value in given.items() if value is not None}
    if batch is not None:
        options["batchId"] = f"{batch.stream}/{batch.number}"
    writer = _by_partition(df, options, mode).write.format("remuda").options(**options)
    try:
        if mode == "replace":
            writer.mode("overwrite").save()
        else:
            writer.option("mode", mode).mode("append").save()
    except RemudaError:
        raise
    except Exception as failure:  # noqa: BLE001  (Spark's own words are a note, not a stack above ours)
        raise as_sql_error(failure) from None


def _text(option: str, given: Any) -> str:
    """Return a value as an option of Spark has it; names stand between commas."""
    if option not in {"key", "indexes", "json"} or isinstance(given, str):
        return str(given)
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise option_error(f"{option} is a text or a list of texts, not {given!r}")
    return ", ".join(given)


def _by_partition(df: DataFrame, options: Mapping[str, str], mode: str) -> DataFrame:
    form = change_format(mode, *(options.get(name) for name in ("operation", "orderBy", "changes", "condition")))
    _, definition, cuts = find_or_define(options, df.schema, form)
    match_columns(definition, row_fields(form, None if cuts is None else definition, df.schema), generates_keys=True)
    return by_partition(df, form, definition, slot_count(df.sparkSession), cuts or ())
