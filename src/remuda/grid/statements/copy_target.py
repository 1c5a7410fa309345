"""Where COPY writes: a file, or a folder of files by the values of some columns; never over another one unasked."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import (
    ambiguous_column,
    bad_argument,
    column_twice,
    nearest,
    nearest_column,
    option_error,
    output_error,
    unknown_column,
)
from remuda.grid.files.file_writers import WriteOptions
from remuda.grid.files.formats import (
    COMPRESSED_ENDINGS,
    FORMATS,
    compression_of,
    format_named,
    format_of,
    known_endings,
)
from remuda.grid.files.partitioned_files import PartitionedFiles
from remuda.sql import CopyFrom, CopyTo, CsvOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from remuda.grid.files.file_writers import FileWriter
    from remuda.grid.files.formats import FileFormat
    from remuda.sql.parse.statements import Name


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """A file or folder to write, in a format, with options."""

    path: Path
    format: FileFormat
    options: WriteOptions
    partition_by: tuple[Name, ...]
    overwrite: bool

    def open(self, part: Path, schema: pa.Schema, texts: Mapping[str, Callable[[pa.Array], pa.Array]]) -> FileWriter:
        """Open what is written first, and put in place when it is complete. `texts` write values as text."""
        if not self.partition_by:
            return self.format.write(part, schema, self.options)
        names = [_column_named(schema, name) for name in self.partition_by]
        if len(set(names)) < len(names):
            raise column_twice("a column is in PARTITION_BY twice", span=self.partition_by[-1].span)
        rest = _without(schema, names)
        if not len(rest):
            raise bad_argument("PARTITION_BY leaves no column for the files", span=self.partition_by[0].span)
        return PartitionedFiles(
            part,
            names,
            [texts[name] for name in names],
            lambda path: self.format.write(path, rest, self.options),
            "".join(self._endings()),
        )

    def put_in_place(self, part: Path) -> None:
        """Rename what was written. A file is replaced at once, a folder moves aside first."""
        refuse_present(self)
        if not self.path.is_dir():
            part.replace(self.path)
            return
        old = self.path.with_name(f"{self.path.name}.{token_hex(4)}.old")
        self.path.rename(old)
        part.rename(self.path)
        remove(old)

    def _endings(self) -> list[str]:
        compressed = self.format.is_text and self.options.compression not in {None, "none"}
        known = {name: ending for ending, name in COMPRESSED_ENDINGS.items()}
        return [self.format.endings[0], known[str(self.options.compression)] if compressed else ""]


def copy_target(statement: CopyTo) -> CopyTarget:
    """Check what a COPY says of the files that it writes."""
    path = Path(statement.path).expanduser()
    check_format(statement)
    found = format_of(path) if statement.format is None else format_named(statement.format)
    if found is None and statement.partition_by and statement.format is None:
        found = format_named("parquet")
    if found is None:
        raise option_error(f"the format of {path} is unknown: name it {known_endings()}, or give FORMAT")
    compression = statement.compression
    if compression is None and found.is_text and not statement.partition_by:
        compression = compression_of(path)
    if compression is not None and compression not in found.compressions:
        message = f"COMPRESSION of {found.name} must be one of {', '.join(found.compressions)}, not {compression}"
        raise bad_argument(message, span=statement.spans.get("COMPRESSION", statement.span))
    options = WriteOptions(statement.csv or CsvOptions(), compression)
    target = CopyTarget(path, found, options, statement.partition_by, statement.overwrite)
    refuse_present(target)
    return target


def check_format(statement: CopyFrom | CopyTo) -> None:
    """Raise where FORMAT names none, or an option of CSV stands beside another format."""
    name = statement.format
    kind = format_of(Path(statement.path)) if name is None else format_named(name)
    if name is not None and kind is None:
        names = [each.name for each in FORMATS]
        message = f"FORMAT must be {', '.join(names[:-1])} or {names[-1]}, not {name}"
        raise bad_argument(message, span=statement.spans["FORMAT"], suggestion=nearest(name, names))
    if statement.csv is not None and (kind is None or kind.name != "csv"):
        given = next(option for option in ("HEADER", "DELIMITER", "NULL") if option in statement.spans)
        raise bad_argument(f"{given} is an option of CSV files", span=statement.spans[given])


def refuse_present(target: CopyTarget) -> None:
    """Raise where something is there that must not be replaced.

    A folder is replaced only by a folder, and only where it has nothing but files of the same format: OVERWRITE of a
    wrong path must not remove a home directory.
    """
    path = target.path
    if not path.exists() and not path.is_symlink():
        return
    if path.is_dir() and not target.partition_by:
        raise output_error(f"{path} cannot be written: it is a folder")
    if not target.overwrite:
        raise output_error(f"{path} is there already", suggestion="Add (OVERWRITE) to replace it.")
    if not target.partition_by:
        return
    if not path.is_dir():
        raise output_error(f"{path} cannot be written: it is a file")
    for file in path.rglob("*"):
        if file.is_file() and format_of(file) is not target.format:
            raise output_error(f"{path} cannot be replaced: it has other files than {target.format.name}, {file}")


def _column_named(schema: pa.Schema, name: Name) -> str:
    found = [each for each in schema.names if each.casefold() == name.text.casefold()]
    if len(found) != 1:
        if found:
            raise ambiguous_column(f"two columns are called {name.text}", span=name.span)
        raise unknown_column(
            f"unknown column: {name.text}", span=name.span, suggestion=nearest_column(name.text, schema.names)
        )
    return str(found[0])


def _without(schema: pa.Schema, names: list[str]) -> pa.Schema:
    """Return the schema without some columns."""
    for name in names:
        schema = schema.remove(schema.get_field_index(name))
    return schema


def remove(path: Path) -> None:
    """Remove a file or a folder of files, if it is there."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
