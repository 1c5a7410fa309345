"""Files in folders that are named after values: `day=2024-01-31/part-0.parquet`, as Spark and Hive have them.

Reading takes the values out of the names, writing puts them there.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa

from remuda.errors import text_error
from remuda.grid.files.text_values import WrongValueError, typed_column
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.catalog import ColumnDefinition
    from remuda.grid.files.file_writers import FileWriter

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
MOST_OPEN = 128
"""Files that are open at once. The one that was written to longest ago is closed before another is opened."""


def values_in_path(root: Path, file: Path, columns: Sequence[ColumnDefinition]) -> dict[str, pa.Scalar]:
    """Return the columns whose values are the names of the folders between `root` and the file."""
    found: dict[str, pa.Scalar] = {}
    for part in file.relative_to(root).parts[:-1]:
        name, equals, text = part.partition("=")
        if not equals:
            continue
        value = pa.array([None if text == HIVE_NULL else unquote(text)], pa.string())
        column = next((each for each in columns if each.name.casefold() == unquote(name).casefold()), None)
        try:
            found[unquote(name)] = (value if column is None else typed_column(column, value))[0]
        except WrongValueError as error:
            raise text_error(f"{file}: {error.message}") from error
    return found


class PartitionedFiles:
    """Writes each row to the folder of its values in some columns, which the files leave out."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        texts: Sequence[Callable[[pa.Array], pa.Array]],
        open_file: Callable[[Path], FileWriter],
        ending: str,
    ) -> None:
        """`texts` write the values of the columns, in order, as folders name them."""
        self._folder = folder
        self._names = list(names)
        self._texts = texts
        self._open_file = open_file
        self._ending = ending
        self._open: OrderedDict[Path, FileWriter] = OrderedDict()
        self._opened: dict[Path, int] = {}
        folder.mkdir()

    def write(self, batch: pa.RecordBatch) -> None:
        """Split a batch by the values of the partitioning columns and write the parts."""
        columns = [batch.column(batch.schema.get_field_index(name)) for name in self._names]
        folders = [
            self._folder_names(name, text(array))
            for name, text, array in zip(self._names, self._texts, columns, strict=True)
        ]
        rest = batch.drop_columns(self._names)
        paths = folders[0] if len(folders) == 1 else pc.binary_join_element_wise(*folders, "/")
        encoded = paths.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(encoded.dictionary)), side="right")
        start = 0
        for path, end in zip(encoded.dictionary.to_pylist(), ends.tolist(), strict=True):
            part = rest.take(pa.array(order[start:end]))
            self._writer(self._folder / path).write(part)
            start = end

    def close(self) -> None:
        """Complete all files."""
        while self._open:
            self._open.popitem()[1].close()

    def _folder_names(self, name: str, texts: pa.Array) -> pa.Array:
        encoded = texts.dictionary_encode()
        names = [f"{quote(name, safe='')}={_quoted(text)}" for text in encoded.dictionary.to_pylist()]
        names.append(f"{quote(name, safe='')}={HIVE_NULL}")
        codes = encoded.indices.fill_null(len(names) - 1)
        return pa.array(names, pa.string()).take(codes)

    def _writer(self, folder: Path) -> FileWriter:
        found = self._open.get(folder)
        if found is not None:
            self._open.move_to_end(folder)
            return found
        if len(self._open) >= MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        number = self._opened.get(folder, 0)
        self._opened[folder] = number + 1
        folder.mkdir(parents=True, exist_ok=True)
        found = self._open[folder] = self._open_file(folder / f"part-{number}{self._ending}")
        return found


def _quoted(text: str) -> str:
    """Write a value as a part of a path. The text that stands for NULL is escaped where it is a value."""
    return text.replace("_", "%5F") if text == HIVE_NULL else quote(text, safe="")
