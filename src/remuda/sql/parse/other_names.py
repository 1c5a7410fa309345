"""What people write who come from other systems, and what it is called here: suggestions, by what was written."""

from __future__ import annotations

import re

FUNCTIONS = {
    "age": "Subtract the moments: now() - ts.",
    "array_agg": "There are no arrays: string_agg(x, ',') makes a text.",
    "changes": "In Python: grid.sql(...).update_count.",
    "connection_id": "Remuda runs in this process: there are no connections.",
    "convert": "Use CAST(x AS type).",
    "curdate": "current_date",
    "curtime": "localtime",
    "database": "A grid is one database, with the schema public.",
    "date_format": "Use strftime(ts, '%Y-%m-%d').",
    "dateadd": "Use ts + INTERVAL '1' DAY.",
    "datetime": "Use CAST(x AS TIMESTAMP), or now().",
    "explode": "There are no arrays: keep the items in a table of their own.",
    "find_in_set": "Use x IN (...), or LIKE.",
    "from_unixtime": "to_timestamp",
    "generate_uuid": "uuid",
    "getdate": "now",
    "getutcdate": "now",
    "glob": "Use LIKE, SIMILAR TO or regexp_matches.",
    "isnull": "Use COALESCE(a, b), or a IS NULL.",
    "julianday": "julian",
    "last_insert_id": "Give the key yourself, or use INSERT ... without PRIMARY KEY for a generated one.",
    "last_insert_rowid": "Give the key yourself, or use INSERT ... without PRIMARY KEY for a generated one.",
    "list": "There are no arrays: string_agg(x, ',') makes a text.",
    "mid": "substr",
    "newid": "uuid",
    "nextval": "There are no sequences: give the key yourself, or leave out the PRIMARY KEY for a generated one.",
    "quote": "Give values as parameters: they need no quotes.",
    "rand": "random",
    "square": "Use power(x, 2).",
    "str_to_date": "strptime",
    "string_split": "Use split_part(text, separator, n).",
    "string_to_array": "Use split_part(text, separator, n).",
    "substring_index": "Use split_part(text, separator, n).",
    "sysdate": "now",
    "systimestamp": "now",
    "to_date": "Use CAST(x AS DATE), or strptime(x, '%d.%m.%Y').",
    "to_number": "Use CAST(x AS DECIMAL(18, 2)).",
    "total": "sum",
    "truncate": "trunc",
    "unix_timestamp": "epoch",
    "unnest": "There are no arrays: keep the items in a table of their own.",
    "user": "There are no users: the operating system protects the folder.",
    "version": "In Python: remuda.__version__.",
}

CLAUSES = {
    "ASOF JOIN": "Use LEFT JOIN LATERAL (SELECT ... WHERE ts <= other.ts ORDER BY ts DESC LIMIT 1) ON TRUE.",
    "COLLATE": "Texts are compared by their code points: compare lower(x) to ignore case.",
    "FOR UPDATE": "There is nothing to lock: each statement is all or nothing by itself.",
    "HISTORICAL DATA": "A version is named by FOR VERSION AS OF n, or by TIMESTAMP AS OF '2024-01-31'.",
    "INTO": "Use CREATE TABLE name (PRIMARY KEY (...)) AS SELECT ....",
    "RETURNING": "Read the rows by their keys after the statement.",
    "TABLESAMPLE": "Use WHERE random() < 0.1 for a tenth of the rows, or ORDER BY random() LIMIT n.",
}

_GENERATED = "Use BIGINT PRIMARY KEY and give the key, or leave out the key for a generated one."
TYPES = {
    "ARRAY": "There are no arrays: use JSON, or a table for the items.",
    "BIGSERIAL": _GENERATED,
    "BIT": "BOOLEAN",
    "CLOB": "VARCHAR",
    "DATETIME2": "TIMESTAMP",
    "DATETIMEOFFSET": "TIMESTAMP WITH TIME ZONE is the type of an instant.",
    "ENUM": "VARCHAR",
    "HUGEINT": "DECIMAL(38, 0) is the longest integer.",
    "IMAGE": "VARBINARY",
    "JSONB": "JSON",
    "LIST": "There are no lists: use JSON, or a table for the items.",
    "MAP": "JSON",
    "MEDIUMINT": "INTEGER",
    "MEDIUMTEXT": "VARCHAR",
    "LONGTEXT": "VARCHAR",
    "MONEY": "DECIMAL(18, 2) holds amounts of money.",
    "NTEXT": "VARCHAR",
    "NUMBER": "Use BIGINT, DECIMAL(p, s) or DOUBLE.",
    "SERIAL": _GENERATED,
    "SMALLDATETIME": "TIMESTAMP",
    "SMALLSERIAL": _GENERATED,
    "STRUCT": "JSON",
    "UBIGINT": "DECIMAL(20, 0) holds every unsigned integer of 64 bits.",
    "UNIQUEIDENTIFIER": "VARCHAR",
    "UUID": "VARCHAR",
    "VARCHAR2": "VARCHAR",
}

_ONE_SCHEMA = "A grid has the schema public. Another folder is another grid: remuda.open(path)."
_IN_PROCESS = "The operating system protects the folder: there are no users."
_UPSERT = "Use SINK INTO, or INSERT ... ON CONFLICT (key) DO UPDATE."
STATEMENTS = {
    "ATTACH": "Another folder is another grid: remuda.open(path).",
    "CALL": "There are no procedures: call a method of the grid in Python.",
    "CREATE DATABASE": _ONE_SCHEMA,
    "CREATE EXTENSION": "There are no extensions to install.",
    "CREATE FUNCTION": "There are no functions in SQL of your own: compute in Python, or create a view.",
    "CREATE MACRO": "There are no functions in SQL of your own: compute in Python, or create a view.",
    "CREATE MATERIALIZED": "Use CREATE TABLE name AS SELECT ..., or CREATE VIEW.",
    "CREATE PROCEDURE": "There are no procedures: call a function in Python.",
    "CREATE ROLE": _IN_PROCESS,
    "CREATE SCHEMA": _ONE_SCHEMA,
    "CREATE SEQUENCE": "Leave out the PRIMARY KEY for a generated key.",
    "CREATE TEMP": "Use WITH, or a second grid in memory: remuda.open().",
    "CREATE TEMPORARY": "Use WITH, or a second grid in memory: remuda.open().",
    "CREATE TRIGGER": "There are no triggers.",
    "CREATE TYPE": "Use VARCHAR or JSON.",
    "CREATE UNIQUE": "Only the PRIMARY KEY is unique. CREATE INDEX makes an index that is not.",
    "CREATE USER": _IN_PROCESS,
    "DEALLOCATE": "Plans are kept by their text: there is nothing to prepare or to deallocate.",
    "DECLARE": "There are no variables: give values as parameters.",
    "DETACH": "Close the grid: grid.close().",
    "DROP SCHEMA": _ONE_SCHEMA,
    "DROP DATABASE": "Close the grid and remove its folder.",
    "EXEC": "There are no procedures: call a function in Python.",
    "EXECUTE": "Plans are kept by their text: give values as parameters, grid.sql(text, value).",
    "EXPORT": "Use COPY table TO 'file.parquet' for each table.",
    "GRANT": _IN_PROCESS,
    "IMPORT": "Use COPY table FROM 'file.parquet' for each table.",
    "INSTALL": "There are no extensions to install.",
    "KILL": "Cancel a query by closing its result.",
    "LOAD": "Use COPY table FROM 'file.csv', or grid.load in Python.",
    "LOCK": "There is nothing to lock: each statement is all or nothing by itself.",
    "PIVOT": "Use an aggregate for each column: SUM(x) FILTER (WHERE y = 'a') AS a.",
    "PRAGMA": "Use SET option = value, DESCRIBE table, or SHOW TABLES.",
    "PREPARE": "Plans are kept by their text: give values as parameters, grid.sql(text, value).",
    "REFRESH": "Compute it anew: CREATE OR REPLACE TABLE name (PRIMARY KEY (...)) AS SELECT ....",
    "REINDEX": "Indexes are always up to date.",
    "RENAME": "A table keeps its name: CREATE TABLE other AS SELECT * FROM it.",
    "REPLACE": _UPSERT,
    "RESET": "Set the option to its default: SET option = value.",
    "REVOKE": _IN_PROCESS,
    "SUMMARIZE": "Use DESCRIBE table, or aggregates: SELECT COUNT(*), MIN(x), MAX(x), AVG(x) FROM it.",
    "USE": _ONE_SCHEMA,
    "\\": "Commands with a backslash belong to the shell: run `remuda`, or use SHOW TABLES and DESCRIBE table.",
    ".": "Commands with a dot belong to the shell: run `remuda`, or use SHOW TABLES and DESCRIBE table.",
}

FILE_HINT = (
    "Load the file first: grid.load(name, path, key=...) in Python creates the table, COPY ... FROM fills one; "
    "`remuda FILE` opens a shell on it."
)
_CATALOGS = re.compile(r"(pg_|sqlite_|duckdb_|sys|all_tables|user_tables|dba_)", re.IGNORECASE)
_FILE = re.compile(r"[/\\]|\.(parquet|csv|tsv|json|jsonl|ndjson|arrow|feather|ipc|xlsx?|db|gz|zst)$", re.IGNORECASE)


def table_hint(name: str, schema: str | None = None) -> str:
    """Return what to do about a table that is not there.

    >>> table_hint("pg_tables")
    'Use SHOW TABLES, or information_schema.tables and information_schema.columns.'
    """
    if _FILE.search(name) or (schema is not None and _FILE.search(f"{schema}.{name}")):
        return FILE_HINT
    if _CATALOGS.match(name) or (schema or "").casefold() in {"pg_catalog", "sys"}:
        return "Use SHOW TABLES, or information_schema.tables and information_schema.columns."
    return f"Create it with: CREATE TABLE {name} (..., PRIMARY KEY (...))"
