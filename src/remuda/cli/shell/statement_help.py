r"""The syntax of the statements, for `\h`. Each has an example that tests run."""

from __future__ import annotations

from remuda.dataclass import dataclass
from remuda.errors import RemudaError, nearest


@dataclass(frozen=True, slots=True)
class Syntax:
    name: str
    form: str
    example: str


SYNTAX = (
    Syntax(
        "SELECT",
        """[WITH [RECURSIVE] name AS (query), ...]
SELECT [DISTINCT [ON (e, ...)]] e [AS name], ...
  [FROM relation [JOIN relation ON condition | USING (column, ...)] ...]
  [WHERE condition] [GROUP BY e, ... | ALL] [HAVING condition] [WINDOW name AS (...)] [QUALIFY condition]
  [UNION | INTERSECT | EXCEPT [ALL] query]
  [ORDER BY e [ASC | DESC] [NULLS FIRST | LAST], ...] [LIMIT n] [OFFSET n]""",
        "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer ORDER BY total DESC LIMIT 3",
    ),
    Syntax(
        "CREATE TABLE",
        """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name
  (column type [NOT NULL], ..., PRIMARY KEY (column, ...)) [PARTITION BY (column, ...)] [REPLICATED]
  [WITH (partitions = n, retention = '1 day', compression = 'zstd' | 'lz4' | 'none')]
CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [(PRIMARY KEY (column, ...))] AS query""",
        "CREATE TABLE paid (id BIGINT, day DATE, PRIMARY KEY (id))",
    ),
    Syntax(
        "CREATE INDEX",
        "CREATE INDEX [IF NOT EXISTS] name ON map (column, ...) [TYPE SORTED | HASH]",
        "CREATE INDEX orders_customer ON orders (customer) TYPE HASH",
    ),
    Syntax(
        "CREATE VIEW",
        "CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(column, ...)] AS query",
        "CREATE VIEW large AS SELECT * FROM orders WHERE amount > 100",
    ),
    Syntax("DROP", "DROP TABLE | INDEX | VIEW [IF EXISTS] name", "DROP TABLE IF EXISTS old"),
    Syntax(
        "INSERT",
        """INSERT INTO map [(column, ...)] VALUES (e, ...), ... | query
  [ON CONFLICT [(key)] DO NOTHING | DO UPDATE SET column = e, ...]""",
        "INSERT INTO orders VALUES (2, 'C2', 7.5) ON CONFLICT DO NOTHING",
    ),
    Syntax(
        "SINK", "SINK INTO map [(column, ...)] VALUES (e, ...), ... | query", "SINK INTO orders VALUES (2, 'C2', 8)"
    ),
    Syntax(
        "UPDATE",
        "UPDATE map SET column = e, ... [FROM relation, ...] [WHERE condition]",
        "UPDATE orders SET amount = amount + 1 WHERE id = 2",
    ),
    Syntax("DELETE", "DELETE FROM map [WHERE condition]", "DELETE FROM orders WHERE id = 2"),
    Syntax("TRUNCATE", "TRUNCATE [TABLE] map", "TRUNCATE orders"),
    Syntax(
        "COPY",
        """COPY map FROM 'path'
  [(FORMAT f, MODE append | replace | upsert, HEADER true | false, DELIMITER ';', NULL 'text')]
COPY map | (query) TO 'path' [(FORMAT f, HEADER true | false, DELIMITER ';')]""",
        "COPY (SELECT * FROM orders) TO 'orders.parquet'",
    ),
    Syntax(
        "EXPLAIN",
        """EXPLAIN [ANALYZE] [FRAGMENTS | STEPS | LOGICAL | MEMO] query
EXPLAIN (FORMAT TEXT | JSON | SVG | HTML, ANALYZE, ...) query""",
        "EXPLAIN SELECT * FROM orders WHERE id = 1",
    ),
    Syntax("DESCRIBE", "DESCRIBE map | view | query", "DESCRIBE orders"),
    Syntax(
        "SHOW",
        """SHOW TABLES | VIEWS | INDEXES | PARTITIONS | MEMBERS | PLANS | SETTINGS | FUNCTIONS | KEYWORDS
SHOW VERSIONS [map]
SHOW COLUMNS FROM map""",
        "SHOW SETTINGS",
    ),
    Syntax("SET", "SET option = value", "SET timeout = 30"),
    Syntax("ANALYZE", "ANALYZE [map]", "ANALYZE orders"),
    Syntax("CHECK TABLE", "CHECK TABLE [map]", "CHECK TABLE orders"),
    Syntax("CHECKPOINT", "CHECKPOINT", "CHECKPOINT"),
    Syntax("RESTORE TABLE", "RESTORE TABLE map TO VERSION number", "RESTORE TABLE orders TO VERSION 2"),
    Syntax("OPTIMIZE", "OPTIMIZE map", "OPTIMIZE orders"),
    Syntax("VACUUM", "VACUUM [map]", "VACUUM orders"),
)


def statement_help(name: str) -> str:
    """Return the syntax and an example of the statements of that name, or all their names."""
    wanted = " ".join(name.upper().split())
    if not wanted:
        names = "\n".join(f"  {syntax.name}" for syntax in SYNTAX)
        return f"\\h STATEMENT shows the syntax of one of these:\n{names}"
    found = [syntax for syntax in SYNTAX if f"{syntax.name} ".startswith(f"{wanted} ")]
    if not found:
        hint = nearest(wanted, [syntax.name for syntax in SYNTAX])
        raise RemudaError(
            f"{name} is not a statement. " + (f'Did you mean "{hint}"?' if hint else "\\h lists them."),
            sqlstate="22023",
        )
    return "\n\n".join(f"{syntax.form}\n\nFor example: {syntax.example};" for syntax in found)
