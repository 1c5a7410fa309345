"""CREATE, DROP, SHOW, SET and their kin: one small function each, read token by token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot.tokens import Token, TokenType

from remuda.catalog.definitions import ColumnDefinition, IndexType
from remuda.errors import bad_definition, column_twice, nearest, not_supported, parsing_error, unknown_object
from remuda.sql.parse.parse_query import begins_select, parse_query
from remuda.sql.parse.query_definition_parser import (
    parse_copy,
    parse_create_map_as,
    parse_create_or_replace_view,
    parse_create_view,
    parse_drop_view,
)
from remuda.sql.parse.statements import (
    Analyze,
    Check,
    Checkpoint,
    CreateIndex,
    CreateMap,
    CreateMapAs,
    Describe,
    DropIndex,
    DropMap,
    Name,
    Optimize,
    Restore,
    SetOption,
    Show,
    Statement,
    TableOptions,
    Truncate,
    Vacuum,
)
from remuda.sql.parse.table_options import parse_table_options
from remuda.sql.parse.tokens import span_of
from remuda.sql.parse.type_names import parse_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.errors import Span
    from remuda.sql.parse.cursor import Cursor

_GENERATED = ("GENERATED", "AUTO_INCREMENT", "AUTOINCREMENT", "IDENTITY")
_CONSTRAINTS = ("DEFAULT", "UNIQUE", "CHECK", "REFERENCES", "COLLATE", "CONSTRAINT", *_GENERATED)
_BEGIN_CONSTRAINTS = frozenset({"PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "FOREIGN", "REFERENCES", "DEFAULT"})
SHOWN = (
    "TABLES",
    "VIEWS",
    "INDEXES",
    "PARTITIONS",
    "MEMBERS",
    "PLANS",
    "SETTINGS",
    "FUNCTIONS",
    "KEYWORDS",
    "VERSIONS",
)


def parse_create_or_replace_table(cursor: Cursor) -> CreateMap | CreateMapAs:
    """Parse `CREATE OR REPLACE TABLE ...`, which drops a table of that name."""
    if cursor.at("IF"):
        raise cursor.unsupported("what exists is replaced")
    return replace(parse_create_table(cursor), or_replace=True)


def parse_create_table(cursor: Cursor) -> CreateMap | CreateMapAs:
    """Parse CREATE TABLE.

    `CREATE TABLE name (columns, PRIMARY KEY (k, ...)) [PARTITION BY (k, ...)] [REPLICATED]
    [WITH (option = value, ...)] [AS query]`"""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a table")
    columns, key = _column_list(cursor) if cursor.at("(") or cursor.current is None else ((), ())
    partitioned_by: tuple[Name, ...] = ()
    replicated = False
    options = TableOptions()
    while cursor.current is not None:
        if cursor.at("AS"):
            if columns:
                raise parsing_error("the columns of CREATE TABLE AS are those of its query", span=cursor.span)
            return parse_create_map_as(
                cursor,
                name,
                key,
                partitioned_by,
                replicated=replicated,
                if_not_exists=if_not_exists,
                options=options,
            )
        if cursor.accept("PARTITION", "BY") or cursor.accept("PARTITIONED", "BY"):
            partitioned_by = cursor.names()
        elif cursor.accept("REPLICATED"):
            replicated = True
        elif cursor.accept("WITH"):
            options = parse_table_options(cursor)
        else:
            raise cursor.unexpected("PARTITION BY, REPLICATED, WITH or AS" if columns or key else "(")
    if not columns:
        raise bad_definition("a table needs a column", span=name.span)
    return CreateMap(name, columns, key, partitioned_by, replicated, if_not_exists, options=options)


def parse_create_mapping(cursor: Cursor) -> CreateMap:
    """Parse `CREATE MAPPING name (__key ...) TYPE IMap [OPTIONS (...)]`, the data-grid spelling; its key is `__key`."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a mapping")
    columns, key = _column_list(cursor)
    cursor.expect("TYPE")
    kind = cursor.name("IMap")
    if kind.text.casefold() != "imap":
        raise not_supported(f"the mapping type {kind.text} is not supported: only IMap is", span=kind.span)
    if cursor.accept("OPTIONS"):
        _mapping_options(cursor)
    if not key:
        key = tuple(Name(column.name, name.span) for column in columns if column.name.casefold() == "__key")
    return CreateMap(name, columns, key, (), replicated=False, if_not_exists=if_not_exists)


def _column_list(cursor: Cursor) -> tuple[tuple[ColumnDefinition, ...], tuple[Name, ...]]:
    cursor.expect("(")
    columns: list[ColumnDefinition] = []
    key: tuple[Name, ...] = ()
    while True:
        _skip_constraint_name(cursor)
        span = cursor.span
        if cursor.accept("PRIMARY", "KEY"):
            if key:
                raise bad_definition("there is a PRIMARY KEY already", span=span)
            key = cursor.names()
        elif cursor.at("LIKE"):
            hint = "Copy it without its rows: CREATE TABLE name (PRIMARY KEY (...)) AS SELECT * FROM other WHERE FALSE."
            raise not_supported("LIKE is not supported in CREATE TABLE", span=span, suggestion=hint)
        elif any(cursor.at(word, "(") for word in ("UNIQUE", "CHECK")) or cursor.at("FOREIGN", "KEY"):
            raise cursor.unsupported("a table has a PRIMARY KEY and no other constraint")
        else:
            column, is_key = _column(cursor)
            if any(column.name.casefold() == other.name.casefold() for other in columns):
                raise column_twice(f"the column {column.name} is there twice", span=span)
            if is_key and key:
                raise bad_definition("there is a PRIMARY KEY already", span=span)
            columns.append(column)
            key = (Name(column.name, span),) if is_key else key
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns), key


def _column(cursor: Cursor) -> tuple[ColumnDefinition, bool]:
    name = cursor.name("the name of a column")
    type_, length = parse_type(cursor)
    nullable, is_key = True, False
    while True:
        _skip_constraint_name(cursor)
        if cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("PRIMARY", "KEY"):
            is_key = True
        elif any(cursor.at(word) for word in _CONSTRAINTS):
            is_generated = any(cursor.at(word) for word in _GENERATED)
            key = "leave out the PRIMARY KEY for a generated one"
            raise cursor.unsupported(key if is_generated else "a column may be NOT NULL, and the PRIMARY KEY is unique")
        elif not cursor.accept("NULL"):
            return ColumnDefinition(name.text, type_, nullable, length=length), is_key


def _skip_constraint_name(cursor: Cursor) -> None:
    """Skip `CONSTRAINT name` before a constraint: nothing refers to the name. A column may be called constraint."""
    following = cursor.tokens[cursor.position + 2 : cursor.position + 3]
    is_one = bool(following) and following[0].text.upper().split()[0] in _BEGIN_CONSTRAINTS
    if is_one and cursor.accept("CONSTRAINT"):
        cursor.name("the name of a constraint")


_MAPPING_OPTIONS = ("keyFormat", "valueFormat")
"""How a data grid serializes keys and values. Here the types of the columns say that: any format is right."""


def _mapping_options(cursor: Cursor) -> None:
    """Read `('name' = 'value', ...)`."""
    cursor.expect("(")
    while True:
        span = cursor.span
        option = cursor.string("an option in single quotes")
        if option.casefold() not in {known.casefold() for known in _MAPPING_OPTIONS}:
            hint = nearest(option, _MAPPING_OPTIONS) or f"The options are {' and '.join(_MAPPING_OPTIONS)}."
            raise unknown_object(f"unknown option of a mapping: {option}", span=span, suggestion=hint)
        cursor.expect("=")
        cursor.string("a value in single quotes")
        if not cursor.accept(","):
            break
    cursor.expect(")")


def parse_create_index(cursor: Cursor) -> CreateIndex:
    """Parse `CREATE INDEX name ON map (c [ASC | DESC], ...) [TYPE SORTED | HASH]`; SORTED is the default.

    PostgreSQL's `ON map USING HASH (c)` is understood as well; BTREE is SORTED.
    """
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.name("the name of an index")
    cursor.expect("ON")
    map_name = cursor.name("the name of a table")
    type_ = _index_type(cursor) if cursor.accept("USING") else IndexType.SORTED
    columns, direction = _index_columns(cursor)
    if cursor.accept("TYPE") or cursor.accept("USING"):
        type_ = _index_type(cursor)
    if cursor.at("WHERE"):
        raise cursor.unsupported("an index has all rows of its table")
    if direction is not None and not type_.serves.order:
        raise not_supported(f"a {type_.value} index has no order", span=direction)
    return CreateIndex(name, map_name, columns, type_, if_not_exists)


_COMPUTED = "Keep the value in a column of its own, and index that."

_INDEX_TYPES = {**IndexType.__members__, "BTREE": IndexType.SORTED, "ART": IndexType.SORTED}
"""The types of indexes, and what other systems call them."""


def _index_type(cursor: Cursor) -> IndexType:
    span, names = cursor.span, list(IndexType.__members__)
    written = cursor.take(" or ".join(names)).text.upper()
    if written not in _INDEX_TYPES:
        raise unknown_object(
            f"unknown index type: {written}", span=span, suggestion=f"Index types are {' and '.join(names)}."
        )
    return _INDEX_TYPES[written]


def _index_columns(cursor: Cursor) -> tuple[tuple[Name, ...], Span | None]:
    """Read the columns, and where a direction is written first.

    An index is read from both ends: `(a DESC)` is `(a)`.
    """
    cursor.expect("(")
    columns: list[Name] = []
    directions: list[bool] = []
    first: Span | None = None
    while not columns or cursor.accept(","):
        columns.append(cursor.name("a column"))
        span = cursor.span
        descending = cursor.accept("DESC")
        written = descending or cursor.accept("ASC")
        if cursor.at("NULLS"):
            nulls = cursor.span
            cursor.expect("NULLS")
            is_first = cursor.accept("FIRST")
            if not is_first:
                cursor.expect("LAST")
            if is_first is descending:
                message = "NULL is the lowest value in an index: first ascending, last descending"
                raise not_supported(message, span=nulls)
        if cursor.at("("):
            raise not_supported("an index is of columns, not of expressions", span=cursor.span, suggestion=_COMPUTED)
        directions.append(descending)
        first = first or (span if written else None)
        if descending is not directions[0]:
            message = "the columns of an index have one direction: it is read from both ends, for ASC and for DESC"
            raise not_supported(message, span=span if written else columns[-1].span)
    cursor.expect(")")
    return tuple(columns), first


def parse_drop_table(cursor: Cursor) -> DropMap:
    if_exists = cursor.accept("IF", "EXISTS")
    return DropMap(cursor.name("the name of a table"), if_exists)


def parse_drop_index(cursor: Cursor) -> DropIndex:
    """Parse `DROP INDEX name [ON map]`."""
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.name("the name of an index")
    if cursor.accept("ON"):
        cursor.name("the name of a table")
    return DropIndex(name, if_exists)


def parse_truncate(cursor: Cursor) -> Truncate:
    cursor.accept("TABLE")
    return Truncate(cursor.name("the name of a table"))


def parse_show(cursor: Cursor) -> Show | Describe:
    """Parse `SHOW TABLES`, ..., and `SHOW COLUMNS FROM map`."""
    if cursor.accept("COLUMNS", "FROM") or cursor.accept("COLUMNS", "IN"):
        return describe_table(cursor)
    span = cursor.span
    what = cursor.take(", ".join(SHOWN)).text.upper()
    if what not in SHOWN:
        raise unknown_object(
            f"SHOW {what} is not known", span=span, suggestion=nearest(what, SHOWN) or f"SHOW takes {', '.join(SHOWN)}."
        )
    is_named = what == "VERSIONS" and cursor.current is not None
    return Show(what, cursor.name("the name of a table") if is_named else None)


def parse_describe(cursor: Cursor) -> Describe:
    """Parse `DESCRIBE [TABLE] map` and `DESCRIBE query`."""
    if begins_select(cursor) and not cursor.at("TABLE"):
        first, cursor.position = cursor.position, len(cursor.tokens)
        return Describe(parse_query(cursor.tokens[first:], cursor.text))
    cursor.accept("TABLE")
    return describe_table(cursor)


def describe_table(cursor: Cursor) -> Describe:
    """Return the query `TABLE name`, whose columns DESCRIBE lists."""
    first = cursor.position
    name = cursor.name("the name of a table")
    word = Token(TokenType.TABLE, "TABLE", start=name.span.start, end=name.span.end - 1)
    return Describe(parse_query([word, *cursor.tokens[first : cursor.position]], cursor.text))


def parse_set(cursor: Cursor) -> SetOption:
    """Parse `SET option = value` and `SET option TO value`."""
    option = cursor.name("the name of an option")
    if not cursor.accept("="):
        cursor.expect("TO")
    span = cursor.span
    negative = cursor.accept("-")
    token = cursor.take("a value")
    return SetOption(option.text.casefold(), ("-" if negative else "") + token.text, span, option.span)


def parse_analyze(cursor: Cursor) -> Analyze:
    """Parse `ANALYZE [map]`."""
    return Analyze(None if cursor.current is None else cursor.name("the name of a table"))


def parse_check(cursor: Cursor) -> Check:
    """Parse `CHECK TABLE [map]`."""
    return Check(None if cursor.current is None else cursor.name("the name of a table"))


def parse_restore(cursor: Cursor) -> Restore:
    """Parse `RESTORE TABLE name TO VERSION n`."""
    name = cursor.name("the name of a table")
    cursor.expect("TO", "VERSION")
    span = cursor.span
    return Restore(name, cursor.integer(), span)


def parse_optimize(cursor: Cursor) -> Optimize:
    """Parse `OPTIMIZE name`."""
    return Optimize(cursor.name("the name of a table"))


def parse_vacuum(cursor: Cursor) -> Vacuum:
    """Parse `VACUUM [name]`."""
    return Vacuum(None if cursor.current is None else cursor.name("the name of a table"))


def parse_checkpoint(_: Cursor) -> Checkpoint:
    return Checkpoint()


def refuse_transaction(cursor: Cursor) -> Statement:
    raise not_supported(
        "there are no transactions of several statements: each is all or nothing by itself",
        span=span_of(cursor.tokens[0]),
    )


def refuse_merge(cursor: Cursor) -> Statement:
    word = cursor.tokens[0]
    raise not_supported(
        f"{word.text.upper()} is not supported",
        span=span_of(word),
        suggestion="INSERT ... ON CONFLICT, SINK INTO and UPDATE ... FROM do the same.",
    )


def refuse_alter(cursor: Cursor) -> Statement:
    raise not_supported(
        "ALTER is not supported: a table keeps its name and its columns",
        span=span_of(cursor.tokens[0]),
        suggestion="Copy it: CREATE TABLE other (PRIMARY KEY (...)) AS SELECT ... FROM it.",
    )


DEFINITIONS: tuple[tuple[tuple[str, ...], Callable[[Cursor], Statement]], ...] = (
    (("CREATE", "TABLE"), parse_create_table),
    (("CREATE", "OR", "REPLACE", "TABLE"), parse_create_or_replace_table),
    (("CREATE", "MAPPING"), parse_create_mapping),
    (("CREATE", "INDEX"), parse_create_index),
    (("CREATE", "VIEW"), parse_create_view),
    (("CREATE", "OR", "REPLACE", "VIEW"), parse_create_or_replace_view),
    (("DROP", "TABLE"), parse_drop_table),
    (("DROP", "MAPPING"), parse_drop_table),
    (("DROP", "INDEX"), parse_drop_index),
    (("DROP", "VIEW"), parse_drop_view),
    (("TRUNCATE",), parse_truncate),
    (("ANALYZE",), parse_analyze),
    (("COPY",), parse_copy),
    (("SHOW",), parse_show),
    (("SET",), parse_set),
    (("CHECK", "TABLE"), parse_check),
    (("CHECKPOINT",), parse_checkpoint),
    (("RESTORE", "TABLE"), parse_restore),
    (("OPTIMIZE",), parse_optimize),
    (("VACUUM",), parse_vacuum),
    (("DESCRIBE",), parse_describe),
    (("DESC",), parse_describe),
    (("ALTER",), refuse_alter),
    (("MERGE",), refuse_merge),
    (("UPSERT",), refuse_merge),
    (("BEGIN",), refuse_transaction),
    (("START", "TRANSACTION"), refuse_transaction),
    (("COMMIT",), refuse_transaction),
    (("ROLLBACK",), refuse_transaction),
    (("SAVEPOINT",), refuse_transaction),
)
