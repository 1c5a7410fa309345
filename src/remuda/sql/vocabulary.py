"""The words of the language, for completion and highlighting: keywords, and functions with their kinds."""

from __future__ import annotations

from remuda.plan.aggregates import AGGREGATES
from remuda.sql.bind.functions.aggregate_arguments import AGGREGATE_NAMES, AGGREGATE_NODES, AGGREGATE_TITLES
from remuda.sql.bind.functions.functions import NAMES, TABLE_FUNCTIONS
from remuda.sql.bind.functions.window_calls import WINDOW_FUNCTIONS
from remuda.sql.parse.definition_parser import DEFINITIONS, SHOWN
from remuda.sql.parse.parse_query import QUERIES
from remuda.sql.parse.type_names import TYPE_NAMES

# fmt: off
_CLAUSES = frozenset((
    "ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "COLUMNS", "CONFLICT", "CONSTRAINT", "CROSS",
    "CUBE", "CURRENT", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "DELIMITER", "DISTINCT", "DO", "ELSE",
    "END", "ESCAPE", "EXCEPT", "EXISTS", "EXPLAIN", "EXTRACT", "FALSE", "FETCH", "FILTER", "FIRST", "FOLLOWING",
    "FORMAT", "FRAGMENTS", "FROM", "FULL", "GROUP", "GROUPING", "HASH", "HAVING", "HEADER", "IF", "ILIKE", "IN",
    "INNER", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LAST", "LATERAL", "LEFT", "LIKE", "LIMIT",
    "LOGICAL", "MEMO", "MODE", "NATURAL", "NOT", "NOTHING", "NULL", "NULLS", "OFFSET", "ON", "ONLY", "ORDER", "OUTER",
    "OVER", "PARTITION", "PRECEDING", "PRECISION", "PRIMARY", "QUALIFY", "RANGE", "RECURSIVE", "REPLACE",
    "REPLICATED", "RIGHT", "ROLLUP", "ROW", "ROWS", "SETS", "SIMILAR", "SORTED", "STEPS", "THEN", "TO", "TRUE",
    "TRY_CAST", "TYPE", "UNBOUNDED", "UNION", "USING", "WHEN", "WHERE", "WINDOW", "WITHIN", "ZONE",
))
# fmt: on
_REFUSED = frozenset({"ALTER", "MERGE", "UPSERT", "BEGIN", "START", "TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT"})
"""Statements that the parser knows only to say what to write instead."""

KEYWORDS = tuple(
    sorted(
        (
            _CLAUSES
            | {word for words, _ in DEFINITIONS for word in words}
            | {word for name in (*TYPE_NAMES, "DECIMAL", "NUMERIC") for word in name.split()}
            | {*QUERIES, *SHOWN}
        )
        - _REFUSED
    )
)
"""Words of clauses, statements and types, in upper case. One that is not in use elsewhere may also be a name."""


def functions() -> dict[str, str]:
    """Return every function that a query may call, with its kind: scalar, aggregate, window or table."""
    aggregates = {*AGGREGATES, *AGGREGATE_NAMES, *AGGREGATE_NODES.values(), *map(str.lower, AGGREGATE_TITLES.values())}
    kinds = dict.fromkeys([*NAMES, "cast", "extract", "if", "now", "try_cast"], "scalar")
    kinds |= dict.fromkeys(TABLE_FUNCTIONS, "table")
    kinds |= dict.fromkeys(WINDOW_FUNCTIONS, "window")
    kinds |= dict.fromkeys(aggregates, "aggregate")
    return dict(sorted(kinds.items()))
