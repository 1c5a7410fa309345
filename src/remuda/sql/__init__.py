"""From SQL text to a bound logical plan; the only user of sqlglot.

sqlglot's tokenizer and its parser of queries are used; statements that define things are parsed here, and all
binding (names, types, parameters, places of errors) is ours. Nothing unsupported gets past the binder: it is refused
with its place in the text. This package knows the catalog and the logical nodes, and nothing of how queries run.
"""

from remuda.sql.bind.bind import BoundQuery, bind
from remuda.sql.bind.condition import bind_condition
from remuda.sql.parse.parse import parse
from remuda.sql.parse.split_statements import ScriptStatement, split_script
from remuda.sql.parse.statements import (
    Analyze,
    Check,
    Checkpoint,
    CopyFrom,
    CopyTo,
    CreateIndex,
    CreateMap,
    CreateMapAs,
    CreateView,
    CsvOptions,
    Describe,
    DropIndex,
    DropMap,
    DropView,
    Explain,
    ExplainFormat,
    ExplainMode,
    Optimize,
    Query,
    Restore,
    SetOption,
    Show,
    Statement,
    Truncate,
    Vacuum,
)

__all__ = [
    "Analyze",
    "BoundQuery",
    "Check",
    "Checkpoint",
    "CopyFrom",
    "CopyTo",
    "CreateIndex",
    "CreateMap",
    "CreateMapAs",
    "CreateView",
    "CsvOptions",
    "Describe",
    "DropIndex",
    "DropMap",
    "DropView",
    "Explain",
    "ExplainFormat",
    "ExplainMode",
    "Optimize",
    "Query",
    "Restore",
    "ScriptStatement",
    "SetOption",
    "Show",
    "Statement",
    "Truncate",
    "Vacuum",
    "bind",
    "bind_condition",
    "parse",
    "split_script",
]
