"""The statements, parsed: what definitions and settings say, and queries as sqlglot's tree, still unbound."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from remuda.catalog.definitions import ColumnDefinition, IndexType
    from remuda.errors import Span
    from remuda.sql.parse.tokens import ParameterNames


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, perhaps with its schema, and its place."""

    text: str
    span: Span
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What stands behind `WITH`; None where nothing is said."""

    partitions: int | None = None
    retention: int | None = None
    """Seconds."""
    compression: str | None = None


@dataclass(frozen=True, slots=True)
class CreateMap:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    key: tuple[Name, ...]
    partitioned_by: tuple[Name, ...]
    replicated: bool
    if_not_exists: bool
    or_replace: bool = False
    options: TableOptions = TableOptions()


@dataclass(frozen=True, slots=True)
class CreateMapAs:
    """`CREATE TABLE name [(PRIMARY KEY (k, ...))] AS query`: the map has the query's columns and rows."""

    name: Name
    key: tuple[Name, ...]
    partitioned_by: tuple[Name, ...]
    replicated: bool
    query: Query
    text: str
    """The query alone, at its place in the text."""
    if_not_exists: bool
    or_replace: bool = False
    options: TableOptions = TableOptions()


@dataclass(frozen=True, slots=True)
class CreateView:
    name: Name
    columns: tuple[Name, ...]
    query: Query
    text: str
    """The text of the query alone."""
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropView:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class DropMap:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateIndex:
    name: Name
    map: Name
    columns: tuple[Name, ...]
    type: IndexType
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropIndex:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    name: Name


@dataclass(frozen=True, slots=True)
class Check:
    """Every file of one map, or of all, is read and compared with its checksums."""

    name: Name | None


@dataclass(frozen=True, slots=True)
class Analyze:
    """Statistics of one map, or of all, are made anew."""

    name: Name | None


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How a CSV file is written: whether its first line has names, what separates values, which text is NULL."""

    header: bool = True
    delimiter: str = ","
    null: str | None = None
    """Absent: an empty value that is not quoted."""


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """`COPY map FROM 'path'`; without FORMAT the name of the file says what it is.

    `spans` has the place of each option's value. Which formats there are, and which options each takes, is known where
    files are read and written, not here.
    """

    name: Name
    path: str
    span: Span
    format: str | None
    mode: str
    csv: CsvOptions | None = None
    spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CopyTo:
    """`COPY (query) TO 'path'`, `COPY map TO 'path'`"""

    query: Query
    text: str
    """The query alone, at its place in the text."""
    path: str
    span: Span
    format: str | None
    csv: CsvOptions | None = None
    compression: str | None = None
    partition_by: tuple[Name, ...] = ()
    overwrite: bool = False
    spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    pass


@dataclass(frozen=True, slots=True)
class Show:
    """`SHOW TABLES`, `VIEWS`, `INDEXES` and the others of `SHOWN` in `definition_parser.py`.

    VERSIONS may name a map.
    """

    what: str
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """`RESTORE TABLE name TO VERSION n`"""

    name: Name
    version: int
    span: Span


@dataclass(frozen=True, slots=True)
class Optimize:
    """`OPTIMIZE name`: the segments of each partition group become one."""

    name: Name


@dataclass(frozen=True, slots=True)
class Vacuum:
    """`VACUUM [name]`: what no version and no reader needs is removed."""

    name: Name | None


@dataclass(frozen=True, slots=True)
class SetOption:
    option: str
    value: str
    span: Span
    """The place of the value."""
    option_span: Span


class ExplainMode(Enum):
    """What EXPLAIN shows: the plan as a tree or cut into its fragments, or how it came about."""

    PLAN = "PLAN"
    FRAGMENTS = "FRAGMENTS"
    STEPS = "STEPS"
    LOGICAL = "LOGICAL"
    MEMO = "MEMO"

    @property
    def is_plan(self) -> bool:
        """Whether it is the plan, which can be run and drawn."""
        return self in {ExplainMode.PLAN, ExplainMode.FRAGMENTS}


class ExplainFormat(Enum):
    """How EXPLAIN shows it; HTML and SVG are pictures, which only a plan has."""

    TEXT = "TEXT"
    JSON = "JSON"
    HTML = "HTML"
    SVG = "SVG"

    @property
    def is_picture(self) -> bool:
        return self in {ExplainFormat.HTML, ExplainFormat.SVG}


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, INSERT, SINK, UPDATE or DELETE: `tree` is sqlglot's, `upsert` tells SINK from INSERT."""

    tree: exp.Expression = field(compare=False)
    span: Span
    """The place of its first word: where an error is shown that has no better one."""
    parameters: ParameterNames = field(compare=False)
    upsert: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    """`analyze` runs the query and shows what each operator did."""

    query: Query
    mode: ExplainMode = ExplainMode.PLAN
    analyze: bool = False
    format: ExplainFormat = ExplainFormat.TEXT


@dataclass(frozen=True, slots=True)
class Describe:
    """`DESCRIBE name`, `SHOW COLUMNS FROM name`, `DESCRIBE query`: the columns of its rows. A name is a query, too."""

    query: Query


Statement = (
    CreateMap
    | CreateMapAs
    | DropMap
    | CreateIndex
    | DropIndex
    | CreateView
    | DropView
    | Truncate
    | Analyze
    | Check
    | CopyFrom
    | CopyTo
    | Checkpoint
    | Show
    | Restore
    | Optimize
    | Vacuum
    | SetOption
    | Query
    | Explain
    | Describe
)
