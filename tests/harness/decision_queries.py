"""Random statements with parameters, over maps with indexes, that meet what is decided at execution.

Each text has values that select nothing, a row, a few rows, and nearly all of them, so that a plan which is kept for
the text meets both sides. Sums are exact in every order: doubles are quarters.

Map f has many rows and g few of them. Map p has a key of two columns, may be partitioned by one of them, and has the
types whose values are wide: DECIMAL(38), instants, the ends of BIGINT.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

FIRST_DAY = dt.date(2024, 1, 1)
FIRST_INSTANT = dt.datetime(1969, 12, 31, 22, tzinfo=dt.UTC)
MAPS = {
    "f": "id BIGINT, a INTEGER, b INTEGER, c VARCHAR, d DATE, e DECIMAL(9;2), h INTEGER, s VARCHAR, x DOUBLE",
    "g": "id INTEGER, v INTEGER, name VARCHAR, w BIGINT",
    "p": ("pa INTEGER, ps VARCHAR, pk BIGINT, pt TIMESTAMP, pz TIMESTAMP WITH TIME ZONE, pw DECIMAL(38;3), pn INTEGER"),
}
COLUMNS = {
    name: dict(column.replace(";", ", ").split(" ", 1) for column in columns.split(", "))
    for name, columns in MAPS.items()
}
"""The columns of each map, with their types."""
KEYS = {"f": ("id",), "g": ("id",), "p": ("pa", "ps")}
PARTITIONED = ("", "", " PARTITION BY (pa)", " PARTITION BY (ps)")
"""How the rows of map p may be divided."""
INDEXES = (
    "CREATE INDEX f_a ON f (a) TYPE SORTED",
    "CREATE INDEX f_h ON f (h) TYPE HASH",
    "CREATE INDEX f_cd ON f (c, d) TYPE SORTED",
    "CREATE INDEX f_e ON f (e) TYPE SORTED",
    "CREATE INDEX f_s ON f (s) TYPE SORTED",
    "CREATE INDEX f_x ON f (x) TYPE SORTED",
    "CREATE INDEX g_v ON g (v) TYPE SORTED",
    "CREATE INDEX g_name ON g (name) TYPE HASH",
    "CREATE INDEX p_k ON p (pk) TYPE HASH",
    "CREATE INDEX p_w ON p (pw) TYPE SORTED",
    "CREATE INDEX p_zn ON p (pz, pn) TYPE SORTED",
    "CREATE INDEX p_n ON p (pn) TYPE SORTED",
)
COPIES = 1_000_000
"""What the keys of rows are raised by when they are copied: a second copy is refused until the first one is gone."""
MOST_COPIED = 150
AGGREGATES = (
    "COUNT(*)",
    "COUNT(b)",
    "SUM(b)",
    "SUM(e)",
    "SUM(x)",
    "MIN(a)",
    "MAX(d)",
    "MIN(s)",
    "MAX(e)",
    "COUNT(DISTINCT h)",
    "COUNT(DISTINCT c)",
    "SUM(DISTINCT b)",
    "COUNT(*) FILTER (WHERE b > 2)",
    "MAX(id)",
    "BOOL_OR(b > 3)",
)


@dataclass(frozen=True, slots=True)
class Text:
    """A statement, how values for it are made, whether its rows have an order, and whether some values are refused."""

    sql: str
    values: tuple[Callable[[], Any], ...]
    ordered: bool = False
    may_fail: bool = False


class DecisionQueries:
    def __init__(self, random: Random, rows: int) -> None:
        self.random = random
        self.rows = rows
        self.next_id = 0
        self._values: list[Callable[[], Any]] = []

    # Rows

    def definitions(self) -> list[tuple[str, str]]:
        """Return statements, each with what only Remuda understands of it."""
        tables = [
            f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))}, PRIMARY KEY ({', '.join(KEYS[name])}))"
            for name, columns in COLUMNS.items()
        ]
        options = ["", self.random.choice(("", "", " REPLICATED")), self.random.choice(PARTITIONED)]
        indexes = self.random.sample(INDEXES, self.random.randint(5, len(INDEXES)))
        return [*zip(tables, options, strict=True), *((index, "") for index in indexes)]

    def fact(self) -> tuple[Any, ...]:
        number, random = self.next_id, self.random
        self.next_id += 1
        return (
            number,
            self._or_null(number % max(1, self.rows // 4)),
            self._or_null(random.randint(0, 5)),
            self._or_null(random.choice(("red", "green", "blue", "", "ü"))),
            self._or_null(FIRST_DAY + dt.timedelta(days=number // 3)),
            self._or_null(Decimal(random.randint(-500, 500)) / 4),
            self._or_null(random.randint(-2, max(1, self.rows // 10))),
            self._or_null(f"s{random.randint(0, self.rows):05}"),
            self._or_null(random.choice((random.randint(-40, 40) / 4, float("nan"), 0.0))),
        )

    def dimension(self, number: int) -> tuple[Any, ...]:
        random = self.random
        return (number, self._or_null(random.randint(0, 20)), self._or_null(f"n{number % 7}"), random.randint(0, 9))

    def wide(self, number: int) -> tuple[Any, ...]:
        return (
            number % 7 - 1,
            f"s{number // 7:03}" if number // 7 else "",
            self._or_null(self._value_of("pk")),
            self._or_null(self._value_of("pt")),
            self._or_null(self._value_of("pz")),
            self._or_null(self._value_of("pw")),
            self._or_null(self.random.randint(0, 5)),
        )

    def _or_null(self, value: Any) -> Any:
        return None if self.random.random() < 0.08 else value

    # Values of parameters: nothing, one, few, most

    def _value_of(self, column: str) -> Any:
        random, rows = self.random, self.rows
        share = random.choice((-0.1, 0.0, 0.02, 0.3, 0.9, 0.99, 1.1))
        if random.random() < 0.03:
            return None
        match column:
            case "id":
                return round(share * rows)
            case "a":
                return round(share * rows / 4)
            case "h":
                return round(share * rows / 10)
            case "b":
                return random.randint(-1, 6)
            case "c":
                return random.choice(("red", "green", "blue", "", "ü", "none"))
            case "d":
                return FIRST_DAY + dt.timedelta(days=round(share * rows / 3))
            case "e":
                return Decimal(round(1000 * share) - 500) / 4
            case "s":
                return f"s{max(0, round(share * rows)):05}"
            case "x":
                return random.choice((-10.0, -2.25, 0.0, 2.5, 10.0, float("nan")))
            case "v":
                return random.randint(-1, 21)
            case "name":
                return f"n{random.randint(0, 8)}"
            case "pa":
                return random.randint(-2, 7)
            case "ps":
                return random.choice(("", f"s{random.randint(0, max(1, rows // 28)):03}"))
            case "pk":
                return random.choice((-(2**63), 2**63 - 1, 0, 1, random.randint(0, max(1, rows))))
            case "pt":
                return FIRST_INSTANT.replace(tzinfo=None) + dt.timedelta(hours=random.randint(0, 40))
            case "pz":
                return FIRST_INSTANT + dt.timedelta(minutes=10 * random.randint(0, 40))
            case "pw":
                return random.choice((Decimal(10) ** 34, -(Decimal(10) ** 34), Decimal(random.randint(-20, 20)) / 8))
            case "prefix":
                return random.choice(("s0%", "s00%", "s", "s%", "%", ""))
            case _:
                return random.randint(0, 9)

    def _parameter(self, column: str) -> str:
        self._values.append(lambda: self._value_of(column))
        return "?"

    def _known(self, column: str) -> str:
        """A parameter that is never NULL."""
        self._values.append(
            lambda: next(value for value in iter(lambda: self._value_of(column), ()) if value is not None)
        )
        return "?"

    def _count(self) -> str:
        self._values.append(lambda: self.random.choice((0, 1, 2, 5, 17, 100, 5000)))
        return "?"

    def _operand(self, column: str) -> str:
        """Mostly a parameter; sometimes a literal, of which the plan itself knows how many rows it selects."""
        if self.random.random() < 0.8:
            return self._parameter(column)
        value = self._value_of(column)
        match value:
            case None:
                return "NULL"
            case str():
                return f"'{value}'"
            case dt.datetime():
                return f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value}'"
            case dt.date():
                return f"DATE '{value}'"
            case float():
                return f"CAST('{value}' AS DOUBLE)"
            case Decimal():
                return f"({value:f})"
            case _:
                return f"({value})"

    # Conditions

    def _comparison(self, table: str) -> str:
        if self.random.random() < 0.12:  # by an index for each branch, or by one scan
            return f"({' OR '.join(self._comparison(table) for _ in range(self.random.choice((2, 2, 3))))})"
        columns = {
            "f": ("id", "a", "a", "a", "b", "c", "d", "e", "h", "s", "x"),
            "g": ("id", "v", "v", "name"),
            "p": ("pa", "ps", "pk", "pt", "pz", "pw", "pn", "pn"),
        }
        column = self.random.choice(columns[table])
        name = f"{table}.{column}"
        if column in {"s", "ps"} and self.random.random() < 0.4:
            return f"{name} LIKE {self._operand('prefix')}"
        match self.random.choice(("compare", "compare", "compare", "between", "in", "null", "or", "range")):
            case "compare":
                return f"{name} {self.random.choice(('<', '<=', '>', '>=', '=', '<>'))} {self._operand(column)}"
            case "between":
                return f"{name} BETWEEN {self._operand(column)} AND {self._operand(column)}"
            case "in":
                # DuckDB 2.0 keeps a row by `id = 12 AND id IN (36, NULL)`, so that no value here is NULL.
                return f"{name} IN ({', '.join(self._known(column) for _ in range(3))})"
            case "null":
                return f"{name} IS {self.random.choice(('', 'NOT '))}NULL"
            case "or":
                return f"({name} < {self._operand(column)} OR {name} > {self._operand(column)})"
            case _:
                return f"{name} >= {self._operand(column)} AND {name} < {self._operand(column)}"

    def _where(self, *tables: str, word: str = "WHERE") -> str:
        parts = [self._comparison(self.random.choice(tables)) for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))]
        return f" {word} {' AND '.join(parts)}" if parts else ""

    # Queries

    def text(self) -> Text:
        self._values = []
        make = self.random.choice(
            (
                self._rows,
                self._rows,
                self._by_key,
                self._by_key,
                self._grouped,
                self._grouped,
                self._grouping_sets,
                self._grouping_sets,
                self._ordered,
                self._ordered,
                self._ordered,
                self._groups_in_order,
                self._distinct,
                self._joined,
                self._joined,
                self._joined_groups,
                self._looked_up,
                self._merged,
                self._nested,
                self._windowed,
                self._united,
                self._twice,
                self._extremes,
                self._by_whole_keys,
                self._by_whole_keys,
                self._wide_groups,
                self._wide_order,
                self._wide_windows,
                self._joined_wide,
                self._joined_wide,
                self._common_plan,
                self._correlated,
            )
        )
        sql, ordered = make()
        return Text(sql, tuple(self._values), ordered)

    def _keys(self, count: int = 2) -> list[str]:
        return self.random.sample(("a", "b", "c", "d", "h", "x", "a % 5", "b + 1", "s"), count)

    def _calls(self) -> str:
        return ", ".join(self.random.sample(AGGREGATES, self.random.randint(1, 4)))

    def _rows(self) -> tuple[str, bool]:
        columns = self.random.choice(
            ("*", "id, a", "s, x, e", "a + b, c", "c", "id, CASE WHEN b > 2 THEN a ELSE h END")
        )
        return f"SELECT {columns} FROM f{self._where('f')}", False

    def _by_key(self) -> tuple[str, bool]:
        columns = self.random.choice(("*", "a, b", "c || s", "e * 2"))
        keys = ", ".join(self._known("id") for _ in range(self.random.choice((1, 1, 3, 6))))
        return f"SELECT {columns} FROM f WHERE id IN ({keys}){self._where('f', word='AND')}", False

    def _grouped(self) -> tuple[str, bool]:
        keys = self._keys(self.random.choice((1, 1, 2, 3)))
        having = self.random.choice(("", "", " HAVING COUNT(*) > 2", " HAVING SUM(b) IS NOT NULL"))
        listed = ", ".join(keys)
        return f"SELECT {listed}, {self._calls()} FROM f{self._where('f')} GROUP BY {listed}{having}", False

    def _grouping_sets(self) -> tuple[str, bool]:
        one, two = self._keys()
        keys = self.random.choice(
            (f"ROLLUP ({one}, {two})", f"CUBE ({one}, {two})", f"GROUPING SETS (({one}), ({two}), ())")
        )
        if self.random.random() < 0.4:
            return f"SELECT {one}, {self._calls()} FROM f{self._where('f')} GROUP BY ROLLUP ({one})", False
        return f"SELECT {one}, {two}, {self._calls()} FROM f{self._where('f')} GROUP BY {keys}", False

    def _ordered(self) -> tuple[str, bool]:
        column = self.random.choice(("a", "c", "d", "e", "h", "s", "x", "b", "id"))
        direction = self.random.choice(("", " DESC", " NULLS LAST", " DESC NULLS FIRST"))
        second = self.random.choice(("", ", d DESC", ", b"))
        columns = self.random.choice(("id", "*", "a, e, id", f"{column}, id"))
        where = self._where("f")
        limit = self.random.choice((" LIMIT 3", " LIMIT #", " LIMIT # OFFSET #", ""))
        limit = "".join(self._count() if character == "#" else character for character in limit)
        return f"SELECT {columns} FROM f{where} ORDER BY {column}{direction}{second}, id{limit}", True

    def _groups_in_order(self) -> tuple[str, bool]:
        key = self.random.choice(("a", "c", "d", "e", "s", "h", "x"))
        direction = self.random.choice(("", " DESC"))
        calls, where = self._calls(), self._where("f")
        return (
            f"SELECT {key}, {calls} FROM f{where} GROUP BY {key} ORDER BY {key}{direction} LIMIT {self._count()}",
            True,
        )

    def _distinct(self) -> tuple[str, bool]:
        listed = ", ".join(self._keys(self.random.choice((1, 2))))
        return f"SELECT DISTINCT {listed} FROM f{self._where('f')}", False

    def _joined(self) -> tuple[str, bool]:
        kind = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        left, right = self.random.choice((("f", "g"), ("g", "f")))
        on = self.random.choice(("f.h = g.id", "f.h = g.id", "f.b = g.v", "f.id = g.id", "f.a = g.v AND f.b = g.w"))
        if self.random.random() < 0.3:
            on += f" AND {self._comparison(right)}"
        tables = (left,) if kind in {"SEMI JOIN", "ANTI JOIN"} else (left, right)
        columns = ", ".join(
            f"{table}.{column}" for table in tables for column in (("id", "a") if table == "f" else ("id", "v"))
        )
        if self.random.random() < 0.4:
            key = "f.c" if tables[0] == "f" else "g.name"
            return (
                f"SELECT {key}, COUNT(*) FROM {left} {kind} {right} ON {on}{self._where(*tables)} GROUP BY {key}",
                False,
            )
        return f"SELECT {columns} FROM {left} {kind} {right} ON {on}{self._where(*tables)}", False

    def _joined_groups(self) -> tuple[str, bool]:
        """One side's keys decide which groups of the other matter."""
        kind = self.random.choice(("JOIN", "LEFT JOIN"))
        key = self.random.choice(("h", "b", "a"))
        inner = self._where("f")
        groups = f"(SELECT {key} AS k, COUNT(*) AS n, SUM(b) AS t, MAX(s) AS m FROM f{inner} GROUP BY {key}) q"
        return f"SELECT g.id, q.n, q.t, q.m FROM g {kind} {groups} ON q.k = g.id{self._where('g')}", False

    def _looked_up(self) -> tuple[str, bool]:
        """Few rows on one side, which are looked up by key or by index on the other."""
        name, column = self.random.choice((("id", "id"), ("a", "v"), ("h", "id"), ("e", "v"), ("s", "name")))
        kind = self.random.choice(("JOIN", "LEFT JOIN"))
        return (
            f"SELECT g.id, f.id, f.c FROM g {kind} f ON f.{name} = g.{column}{self._where('f', word='AND')}"
            f" WHERE g.v = {self._operand('v')} OR g.id < {self._operand('v')}"
        ), False

    def _merged(self) -> tuple[str, bool]:
        """Two sides that can come in the order of the key, by indexes; often only the first rows are asked for."""
        kind = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        key, other, right = self.random.choice((("a", "a", "f"), ("x", "x", "f"), ("s", "s", "f"), ("a", "v", "g")))
        on = f"p.{key} = q.{other}" + (" AND p.b = q.b" if right == "f" and self.random.random() < 0.3 else "")
        source = f"FROM f AS p {kind} {right} AS q ON {on}"
        where = self.random.choice(("", f" WHERE p.b < {self._operand('b')}"))
        if self.random.random() < 0.3:
            columns = "p.id" if kind in {"SEMI JOIN", "ANTI JOIN"} else "p.id, q.id"
            return f"SELECT {columns} {source}{where}", False
        direction = self.random.choice(("", " DESC"))
        limit = self.random.choice(("", f" LIMIT {self._count()}"))
        return f"SELECT p.{key} {source}{where} ORDER BY p.{key}{direction}{limit}", True

    def _nested(self) -> tuple[str, bool]:
        negated = self.random.choice(("", "NOT "))
        inner, outer = self._where("g"), self._where("f", word="AND")
        matching = f"{inner or ' WHERE true'} AND g.id = f.h"
        forms = (
            f"SELECT id, c FROM f WHERE h {negated}IN (SELECT id FROM g{inner}){outer}",
            f"SELECT id, c FROM f WHERE {negated}EXISTS (SELECT 1 FROM g{matching}){outer}",
            f"SELECT id, (SELECT MAX(v) FROM g{inner}) FROM f WHERE true{outer}",
        )
        return self.random.choice(forms), False

    def _windowed(self) -> tuple[str, bool]:
        window = self.random.choice(
            (
                "ROW_NUMBER() OVER (PARTITION BY c ORDER BY a, id)",
                "SUM(b) OVER (PARTITION BY h ORDER BY id)",
                "COUNT(*) OVER (PARTITION BY a)",
                "RANK() OVER (ORDER BY e)",
                "MAX(e) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
                "LAG(b) OVER (PARTITION BY c ORDER BY id)",
                "SUM(e) OVER (ORDER BY d, id)",
            )
        )
        return f"SELECT id, {window} FROM f{self._where('f')}", False

    def _united(self) -> tuple[str, bool]:
        word = self.random.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
        return f"SELECT a, b FROM f{self._where('f')} {word} SELECT v, id FROM g{self._where('g')}", False

    def _twice(self) -> tuple[str, bool]:
        """The same filter in two scans that read different columns."""
        condition = self._comparison("f")
        self._values *= 2
        return (
            f"SELECT c, SUM(b) FROM f WHERE {condition} GROUP BY c"
            f" UNION ALL SELECT s, COUNT(a) FROM f WHERE {condition} GROUP BY s"
        ), False

    def _extremes(self) -> tuple[str, bool]:
        return f"SELECT {self._calls()} FROM f{self._where('f')}", False

    # Queries over map p

    def _by_whole_keys(self) -> tuple[str, bool]:
        """ORs and INs of keys of two columns, with other conditions, and with another OR of keys."""
        if self.random.random() < 0.3:
            keys = ", ".join(f"({self._known('pa')}, {self._known('ps')})" for _ in range(3))
            return f"SELECT * FROM p WHERE (pa, ps) IN ({keys}){self._where('p', word='AND')}", False
        parts = [self._keys_or(self.random.choice((1, 2, 3))) for _ in range(self.random.choice((1, 1, 2)))]
        return f"SELECT pn, pa, pw FROM p WHERE {' AND '.join(parts)}{self._where('p', word='AND')}", False

    def _keys_or(self, branches: int) -> str:
        return f"({' OR '.join(self._key_branch() for _ in range(branches))})"

    def _key_branch(self) -> str:
        text = f"pa = {self._parameter('pa')} AND ps = {self._parameter('ps')}"
        match self.random.randrange(5):
            case 0:
                return f"({text} AND pn < {self._parameter('pn')})"
            case 1:
                return f"(ps = {self._parameter('ps')} AND pa IN ({self._known('pa')}, {self._known('pa')}))"
            case _:
                return f"({text})"

    def _wide_column(self) -> str:
        return self.random.choice(("pk", "pt", "pz", "pw", "pn", "ps", "pa"))

    def _wide_groups(self) -> tuple[str, bool]:
        keys = ", ".join(dict.fromkeys(self._wide_column() for _ in range(self.random.choice((1, 2)))))
        calls = ", ".join(
            self.random.sample(
                ("COUNT(*)", "SUM(pk)", "MIN(pw)", "MAX(pz)", "MIN(pt)", "COUNT(DISTINCT pw)", "MAX(ps)", "SUM(pn)"), 3
            )
        )
        groups = self.random.choice((keys, f"ROLLUP ({keys})"))
        if self.random.random() < 0.2:
            return f"SELECT DISTINCT {keys} FROM p{self._where('p')}", False
        return f"SELECT {keys}, {calls} FROM p{self._where('p')} GROUP BY {groups}", False

    def _wide_order(self) -> tuple[str, bool]:
        where = self._where("p")
        order = f"{self._wide_column()}{self.random.choice(('', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST'))}"
        limit = f" LIMIT {self._count()}" if self.random.random() < 0.6 else ""
        return f"SELECT * FROM p{where} ORDER BY {order}, pa, ps{limit}", True

    def _wide_windows(self) -> tuple[str, bool]:
        call = self.random.choice(("ROW_NUMBER()", "LAG(pw)", "SUM(pk)", "MAX(pz)", "COUNT(pt)", "FIRST_VALUE(ps)"))
        window = f"PARTITION BY {self._wide_column()} ORDER BY {self._wide_column()}, pa, ps"
        return f"SELECT pa, ps, {call} OVER ({window}) FROM p{self._where('p')}", False

    def _joined_wide(self) -> tuple[str, bool]:
        """The key of p, its partitioning columns or an index of it, equated with columns of f."""
        kind = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        on = self.random.choice(
            ("f.h = p.pa AND f.s = p.ps", "f.b = p.pa AND f.c = p.ps", "f.b = p.pa", "f.id = p.pk", "f.e = p.pw")
        )
        left, right = self.random.choice((("f", "p"), ("p", "f")))
        columns = {"f": "f.id", "p": "p.pa, p.ps"}
        listed = columns[left] if kind in {"SEMI JOIN", "ANTI JOIN"} else f"{columns[left]}, {columns[right]}"
        tables = (left,) if kind in {"SEMI JOIN", "ANTI JOIN"} else (left, right)
        return f"SELECT {listed} FROM {left} {kind} {right} ON {on}{self._where(*tables)}", False

    def _common_plan(self) -> tuple[str, bool]:
        """A CTE that is read twice."""
        kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        key = self.random.choice(("h", "a", "c"))
        groups = f"SELECT {key} AS k, COUNT(*) AS n, MIN(id) AS l FROM f{self._where('f')} GROUP BY {key}"
        return f"WITH t AS ({groups}) SELECT one.k, one.n, two.k, two.l FROM t one {kind} t two ON one.l = two.n", False

    def _correlated(self) -> tuple[str, bool]:
        inner = self._where("g", word="AND")
        forms = (
            f"SELECT id, (SELECT COUNT(*) FROM g WHERE g.v = f.b{inner}) FROM f",
            f"SELECT id FROM f WHERE b >= ALL (SELECT v FROM g WHERE g.id = f.h{inner})",
            f"SELECT id, b IN (SELECT v FROM g WHERE g.w = f.b{inner}) FROM f",
            f"SELECT id FROM f WHERE b NOT IN (SELECT v FROM g WHERE g.v > 3{inner})",
        )
        return self.random.choice(forms), False

    # Changes

    def change(self) -> Text:
        self._values = []
        kinds = ("insert", "insert", "update", "update from", "delete", "conflict", "dimension", "rows", "rows", "rows")
        match self.random.choice(kinds):
            case "rows":
                return self._changed_by_query()
            case "insert":
                return self._inserted("f", [self.fact() for _ in range(self.random.choice((1, 2, 9)))], "")
            case "update":
                column = self.random.choice(("b", "a", "c", "e", "x"))
                sql = f"UPDATE f SET {column} = {self._parameter(column)}{self._where('f')}"
            case "update from":
                sql = f"UPDATE f SET b = g.v FROM g WHERE g.id = f.h{self._where('f', word='AND')}"
            case "delete":
                sql = f"DELETE FROM f{self._where('f') or ' WHERE b = 2'} AND f.id % 3 = 0"
            case "dimension":
                rows = [self.dimension(self.random.randint(0, max(2, self.rows // 8))) for _ in range(4)]
                return self._inserted("g", list({row[0]: row for row in rows}.values()), " ON CONFLICT DO NOTHING")
            case _:
                row = list(self.fact())
                row[0] = self.random.randint(0, max(0, self.next_id - 1))
                self.next_id -= 1
                return self._inserted("f", [tuple(row)], " ON CONFLICT (id) DO UPDATE SET b = excluded.b, a = f.a + 1")
        return Text(sql, tuple(self._values))

    def _changed_by_query(self) -> Text:
        """Write what a query over the same maps gives: many rows at once, or none."""
        where = self._where("f", word="AND")
        own = f"FROM f WHERE id < {min(self.next_id, MOST_COPIED)}{where}"
        shifted = f"id + 3, a, b, c, d, e, h, s, x {own}"
        copied = f"id + {COPIES}, a, b, c, d, e, h, s, x"
        refused, sql = self.random.choice(
            (
                (True, f"INSERT INTO f SELECT {copied} {own}"),
                (True, f"INSERT INTO f SELECT id % 50 + {COPIES}, a, 1, '', d, e, h, s, x {own}"),
                (False, f"SINK INTO f SELECT id, h, b, c, d, e, a, s, x {own}"),
                (False, f"INSERT INTO f SELECT {shifted} ON CONFLICT DO NOTHING"),
                (False, f"INSERT INTO f SELECT {shifted} ON CONFLICT (id) DO UPDATE SET b = excluded.b, c = 'met'"),
                (False, f"DELETE FROM f WHERE h IN (SELECT g.id FROM g WHERE g.w = 3) AND id % 2 = 0{where}"),
                (False, f"DELETE FROM f WHERE id >= {COPIES} AND NOT EXISTS (SELECT 1 FROM g WHERE g.id = f.b){where}"),
                (False, f"UPDATE f SET b = (SELECT MAX(g.v) FROM g WHERE g.id = f.h), c = s WHERE true{where}"),
                (False, f"UPDATE p SET pn = pn + 1, pz = NULL WHERE pa IN (SELECT f.b FROM f WHERE true{where})"),
                (False, f"DELETE FROM p WHERE ps IN (SELECT 's00' || f.b FROM f WHERE true{where})"),
                (True, f"INSERT INTO f SELECT id, a, b, c, d, e, h, s, x {own}"),
                (True, f"UPDATE f SET b = CAST(s AS INTEGER) WHERE true{where}"),
                (True, f"SINK INTO f SELECT CASE WHEN h > 0 THEN id END, a, b, c, d, e, h, s, x {own}"),
            )
        )
        return Text(sql, tuple(self._values), may_fail=refused)

    def _inserted(self, name: str, rows: list[tuple[Any, ...]], rest: str) -> Text:
        places = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
        values = [value for row in rows for value in row]
        return Text(f"INSERT INTO {name} VALUES {places}{rest}", tuple((lambda value=value: value) for value in values))
