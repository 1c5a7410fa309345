"""The first half of a load: rows are brought in order of partitions and written where the second half runs.

Spark's own shuffle sorts rows one by one, writes them, reads them and turns them into Arrow: three times the work of
ordering Arrow batches with numpy into a file that the next tasks map. It needs a folder that all executors see, and the
store is in one.

A file has one batch, the rows of a *sorted run*, so that the rows of neighbouring partitions are one slice of it, and
behind it where each partition begins. So the driver learns no more of a run than how many rows it has about where.
Strings become codes before they are moved, here and in the second half, which only has to bring some dictionaries
together.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import RemudaError, SqlError, option_error
from remuda.spark.query.batch_file import BatchFile, BatchFileWriter, ByteRange
from remuda.storage.load.conforming import conform
from remuda.storage.load.segment_cut import row_sizes
from remuda.storage.segment.row_memory import rows_of
from remuda.storage.segment.segment_builder import DICTIONARY_SHARE, mostly_distinct, partition_ids
from remuda.types import Kind
from remuda.types.arrow_arrays import flat, is_dictionary
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from remuda.catalog import MapDefinition

ANSWER_SCHEMA = "answer binary"
HELD_ROWS = 1_000_000
"""Rows that a task holds before it writes them."""
HELD_BYTES = 256 << 20
"""Or so much of them: an Arrow array of strings ends at 2 GiB."""


BUCKETS = 256
"""Ranges of partitions whose rows the driver is told of, at most."""

CLOCKS = frozenset({Kind.TIMESTAMP, Kind.DATE})
"""What a moment becomes by the clock of a zone."""
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?(?::?00)?")


@dataclass(frozen=True, slots=True)
class RunFile:
    """The file of one sorted run: where its rows are, and where each partition begins among them. Without partitions
    yet, rows are in no order."""

    path: str
    byte_range: ByteRange
    rows: int
    offsets: ByteRange | None = None

    def slice_of(self, first: int, end: int) -> tuple[int, int]:
        """Return where the rows of the partitions [first, end) begin in the batch, and how many there are."""
        if self.offsets is None:
            return 0, self.rows
        offsets = np.frombuffer(BatchFile(self.path).raw(self.offsets), np.uint32)
        return int(offsets[first]), int(offsets[end] - offsets[first])

    def read(self, first: int, end: int) -> pa.RecordBatch:
        """Return the rows of the partitions [first, end), not copied."""
        start, rows = self.slice_of(first, end)
        return BatchFile(self.path).read(self.byte_range).slice(start, rows)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """One sorted run, and how many rows and bytes it has in each bucket of partitions."""

    file: RunFile
    counts: np.ndarray
    sizes: np.ndarray

    @property
    def rows(self) -> int:
        return self.file.rows


def bucket_ends(partitions: int) -> np.ndarray:
    """Return before which partition each bucket ends.

    >>> bucket_ends(3).tolist()
    [1, 2, 3]
    """
    count = min(partitions, BUCKETS)
    return np.arange(1, count + 1) * partitions // count


def in_buckets(of_partitions: np.ndarray) -> np.ndarray:
    """Add up what each partition has to what each bucket has."""
    ends = np.concatenate([[0], bucket_ends(len(of_partitions))])
    sums: np.ndarray = np.diff(np.concatenate([[0], np.cumsum(of_partitions)])[ends]).astype(np.int64)
    return sums


def write_lots(
    folder: str,
    definition: MapDefinition,
    names: Mapping[str, str],
    batches: Iterator[pa.RecordBatch],
    *,
    keyless: bool,
) -> Iterator[WrittenRows]:
    """Runs in a task. `names` says for each column of the batches which of the map's it fills.

    Where keys are yet to be generated rows have no partitions either. A file's name ends with the number of its rows,
    which progress bars read.
    """
    for table in _tables(names, batches):
        yield _write_unordered(folder, table) if keyless else _write_ordered(folder, definition, table)


def write_lots_in_arrow(
    folder: str, definition: MapDefinition, batches: Iterator[pa.RecordBatch], *, keyless: bool
) -> Iterator[pa.RecordBatch]:
    """Write the rows that come from Spark; yield, one row for each file, what `written_rows` reads back."""
    names = {travelling_name(definition, column.name): column.name for column in definition.columns}
    try:
        for written in write_lots(folder, definition, names, batches, keyless=keyless):
            yield _answer(written)
    except RemudaError as error:
        yield _answer(error)


def written_rows(raw: bytes) -> WrittenRows:
    """Return the written rows; raise the error that a task met."""
    answer = pickle.loads(raw)
    if isinstance(answer, RemudaError):
        raise answer
    assert isinstance(answer, WrittenRows)
    return answer


def fitting(definition: MapDefinition, table: pa.Table) -> pa.Table:
    """Return the columns of the map.

    The row number of an error counts within a task, which means nothing to the user.
    """
    try:
        columns = conform(definition, as_rows_of(definition, table))
    except SqlError as error:
        raise type(error)(error.code, re.sub(r", row \d+$", "", error.message), suggestion=error.suggestion) from error
    return pa.Table.from_arrays(columns, names=[column.name for column in definition.columns])


def as_rows_of(definition: MapDefinition, table: pa.Table) -> pa.Table:
    """Return rows as Spark hands them to Python in the form of rows that any load takes."""
    return _in_session_clock(definition, _with_variants_as_json(with_zones(table, arrow_zone)))


def _in_session_clock(definition: MapDefinition, table: pa.Table) -> pa.Table:
    """Return the table with moments that go into a TIMESTAMP as the clock shows them in the zone of the session.

    So does a cast of Spark. Its batches carry the zone; Arrow's own cast would take the clock of UTC.
    """
    for number, field in enumerate(table.schema):
        column = definition.find_column(field.name)
        if column is not None and column.type.kind in CLOCKS and is_zoned(field.type):
            table = table.set_column(number, field.name, _clock(table.column(number)))
    return table


def _clock(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.local_timestamp(moments)
    except pa.ArrowInvalid as error:
        raise option_error(
            f"the time zone of the session, {moments.type.tz}, is not known here",
            suggestion='Set "spark.sql.session.timeZone" to a region such as America/New_York, or to +05:30.',
        ) from error


def arrow_zone(name: str) -> str:
    """Return the name that Arrow has for a time zone of Spark, which takes some forms more.

    >>> [arrow_zone(name) for name in ("UTC+3", "GMT-03:30", "+5", "Z", "Asia/Kolkata")]
    ['+03:00', '-03:30', '+05:00', 'UTC', 'Asia/Kolkata']
    """
    if name in {"Z", "UT"}:
        return "UTC"
    found = _OFFSET.fullmatch(name)
    return name if found is None else f"{found[1]}{int(found[2]):02}:{found[3] or '00'}"


def with_zones(table: pa.Table, zone: Callable[[str], str]) -> pa.Table:
    """Return the same moments with other zones; `zone` gives that of each, within structs and lists too."""
    schema = pa.schema([field.with_type(_with_zones(field.type, zone)) for field in table.schema])
    return table if schema == table.schema else table.cast(schema)


def _with_zones(given: pa.DataType, zone: Callable[[str], str]) -> pa.DataType:
    """Return the type with other zones, in which all members of structs, elements and values may be NULL.

    Where a struct is NULL its members are too, also those that Spark declares NOT NULL: Arrow refuses to cast them to
    a type that says so.
    """
    if is_zoned(given):
        return pa.timestamp(given.unit, zone(given.tz))
    if pa.types.is_struct(given):
        return pa.struct([_nullable_with_zones(field, zone) for field in given.fields])
    if pa.types.is_list(given):
        return pa.list_(_nullable_with_zones(given.value_field, zone))
    if pa.types.is_map(given):
        return pa.map_(_with_zones(given.key_type, zone), _with_zones(given.item_type, zone), given.keys_sorted)
    return given


def _nullable_with_zones(field: pa.Field, zone: Callable[[str], str]) -> pa.Field:
    return field.with_type(_with_zones(field.type, zone)).with_nullable(True)


def _with_variants_as_json(table: pa.Table) -> pa.Table:
    """Return the table with values of Spark's VARIANT as JSON texts. Its batches carry them as two binaries."""
    try:
        from pyspark.sql.pandas.types import is_variant
        from pyspark.sql.types import VariantVal
    except ImportError:  # PySpark 3.5 has no such type
        return table
    for number, field in enumerate(table.schema):
        if pa.types.is_struct(field.type) and is_variant(field.type):
            texts = [
                None if each is None else VariantVal(each["value"], each["metadata"]).toJson()
                for each in table.column(number).to_pylist()
            ]
            table = table.set_column(number, field.name, pa.array(texts, pa.string()))
    return table


def is_zoned(given: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(given)) and given.tz is not None


def _tables(names: Mapping[str, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= HELD_ROWS or size >= HELD_BYTES:
            yield _named(held, names)
            held, rows, size = [], 0, 0
    if rows:
        yield _named(held, names)


def _named(batches: list[pa.RecordBatch], names: Mapping[str, str]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.rename_columns([names[name] for name in table.column_names])


def _write_unordered(folder: str, table: pa.Table) -> WrittenRows:
    (batch,) = table.combine_chunks().to_batches()
    with BatchFileWriter(_new_path(folder, batch.num_rows)) as file:
        byte_range = file.append(batch)
    run = RunFile(str(file.path), byte_range, batch.num_rows)
    return WrittenRows(run, np.array([batch.num_rows]), np.array([batch.nbytes]))


def _write_ordered(folder: str, definition: MapDefinition, table: pa.Table) -> WrittenRows:
    columns = [_as_codes(column) for column in fitting(definition, table).columns]
    partitions = partition_ids(definition, columns)
    order = pa.array(np.argsort(partitions, kind="stable").astype(np.uint32))
    arrays = [rows_of(column, order) for column in columns]
    ordered = pa.RecordBatch.from_arrays(arrays, names=[column.name for column in definition.columns])
    counts = np.bincount(partitions, minlength=definition.partitions)
    sizes = np.bincount(partitions, weights=row_sizes(columns), minlength=definition.partitions)
    with BatchFileWriter(_new_path(folder, ordered.num_rows)) as file:
        byte_range = file.append(ordered)
        offsets = file.append_raw(np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32))
    run = RunFile(str(file.path), byte_range, ordered.num_rows, offsets)
    return WrittenRows(run, in_buckets(counts).astype(np.uint32), in_buckets(sizes).astype(np.float32))


def _as_codes(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Encode a string column by a dictionary where values are repeated: codes are moved at a tenth of the cost.

    Chunks are joined first: each of them would be given a dictionary, and these had to be merged.

    Put together first: every chunk would be given a dictionary, and these had to be brought together.
    """
    if is_dictionary(column):
        codes = flat(column)
    elif pa.types.is_string(column.type) and not mostly_distinct(column):
        codes = flat(column).dictionary_encode()
    else:
        return column
    return codes if len(codes.dictionary) <= len(codes) * DICTIONARY_SHARE else codes.dictionary_decode()


def _new_path(folder: str, rows: int) -> Path:
    """Return a name that is new each time: a task may run twice, at the same time too."""
    return Path(folder) / f"{uuid4().hex}-{rows}.arrow"


def travelling_name(definition: MapDefinition, name: str) -> str:
    """Return the name of a column on its way through Spark, which cannot quote every name that SQL allows."""
    return f"column{definition.position(name)}"


def _answer(answer: WrittenRows | RemudaError) -> pa.RecordBatch:
    return pa.record_batch({"answer": pa.array([pickle.dumps(answer)], pa.binary())})
