"""Random `ORDER BY … LIMIT … OFFSET` over indexed maps, with every shape of filter that an index leaves over.

Every order is total up to rows that are equal in all that is delivered, so that two engines can be compared row by row.
The maps are large enough that an ordered index with a stop beats a sort, and small enough for many queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

ROWS = 6_000
ORDERS = ("a", "x", "s", "a, id", "b, a, id", "id", "c, id")
"""Orders that an index of the map `t` has, each without its direction."""
INDEXES = (
    "CREATE INDEX t_a ON t (a, id) TYPE SORTED",
    "CREATE INDEX t_x ON t (x) TYPE SORTED",
    "CREATE INDEX t_s ON t (s) TYPE SORTED",
    "CREATE INDEX t_b ON t (b, a, id) TYPE SORTED",
    "CREATE INDEX t_id ON t (id) TYPE SORTED",
    "CREATE INDEX t_c ON t (c, id) TYPE SORTED",
    "CREATE INDEX t_d ON t (d) TYPE HASH",
    "CREATE INDEX u_k ON u (k) TYPE SORTED",
)


def definitions(random: Random) -> Iterator[str]:
    by = random.choice(("", " PARTITION BY (id)"))
    columns = "id BIGINT, a INTEGER, b INTEGER, c BIGINT, d INTEGER, s VARCHAR, x DOUBLE"
    yield f"CREATE TABLE t ({columns}, PRIMARY KEY (id)){by}"
    yield "CREATE TABLE u (id BIGINT, k INTEGER, name VARCHAR, PRIMARY KEY (id))"
    yield from random.sample(INDEXES, random.randint(5, len(INDEXES)))


def contents(random: Random) -> Iterator[tuple[str, str]]:
    """Each map with the query that makes its rows: duplicates, NULLs, values that come often and that come once."""
    seed = random.randint(1, 1_000)
    draw = f"(hash(i * 31 + {seed} + %d) %% 1000003)::BIGINT"
    one, two, three, four = (draw % salt for salt in range(4))
    yield (
        "t",
        (
            f"SELECT i AS id, CASE WHEN {one} % 19 = 0 THEN NULL ELSE ({one} % 3000)::INTEGER END AS a,"
            f" CASE WHEN {two} % 11 = 0 THEN NULL ELSE ({two} % 6)::INTEGER END AS b, {three} % 100000 AS c,"
            f" CASE WHEN {four} % 100 < 60 THEN 0 ELSE ({four} % 500)::INTEGER END AS d,"
            f" CASE WHEN {two} % 17 = 0 THEN NULL ELSE 's' || ({two} % 4000)::VARCHAR END AS s,"
            f" CASE WHEN {three} % 23 = 0 THEN NULL ELSE ({three} % 900) / 4.0 END AS x FROM range({ROWS}) AS r(i)"
        ),
    )
    yield (
        "u",
        f"SELECT i AS id, (i % 40)::INTEGER AS k, 'n' || (i % 7)::VARCHAR AS name FROM range({ROWS // 10}) AS r(i)",
    )


class FirstRowsQueries:
    def __init__(self, random: Random) -> None:
        self.random = random

    def query(self) -> tuple[str, list[int]]:
        """Return a query and the values of its parameters, which are numbers of rows."""
        values: list[int] = []
        make = self.random.choice((self._plain, self._plain, self._plain, self._joined, self._united, self._grouped))
        text = make()
        return f"{text}{self._limit(values)}", values

    def _limit(self, values: list[int]) -> str:
        random = self.random
        count, offset = random.choice((0, 1, 3, 10, 40, 1000, ROWS * 2)), random.choice((0, 1, 7, 300, ROWS))
        parts = []
        for word, number, chance in (("LIMIT", count, 0.9), ("OFFSET", offset, 0.4)):
            if random.random() < chance:
                known = random.random() < 0.6
                parts.append(f" {word} {number if known else '?'}")
                values.extend(() if known else (number,))
        return "".join(parts)

    def _order(self, alias: str) -> tuple[str, list[str]]:
        """Return ORDER BY, and the columns that make it total: rows that are equal in them may come either way."""
        columns = self.random.choice(ORDERS).split(", ")
        if self.random.random() < 0.2:
            columns = columns[: self.random.randint(1, len(columns))]
        direction = self.random.choice(("", " DESC"))
        nulls = self.random.choice(("", "", " NULLS LAST", " NULLS FIRST"))
        keys = [f"{alias}.{column}{direction}{nulls if not number else ''}" for number, column in enumerate(columns)]
        return f" ORDER BY {', '.join(keys)}", columns

    def _columns(self, alias: str, ordered: list[str]) -> str:
        """All columns where the order ends in the key, else only those of the order."""
        if "id" not in ordered:
            return ", ".join(f"{alias}.{column}" for column in ordered)
        return self.random.choice(
            (f"{alias}.*", f"{alias}.id, {alias}.s", f"{alias}.id, {alias}.a + {alias}.b, {alias}.x")
        )

    def _residual(self, alias: str) -> str:
        random = self.random
        number = random.choice((0, 1, 3, 40, 2999))
        shapes = (
            f"{alias}.s LIKE '%{random.choice(('1', '12', '399', 'nothing'))}%'",
            f"{alias}.s NOT LIKE 's1%'",
            f"{alias}.d = {random.choice((0, 7, 499, -1))}",
            f"{alias}.d IN ({number}, 0, 13)",
            f"{alias}.d BETWEEN 0 AND {number}",
            f"{alias}.c > {random.choice((0, 50_000, 99_990))}",
            f"{alias}.c % 100 = {number}",
            f"({alias}.d = 3 OR {alias}.b = 2)",
            f"({alias}.a < {number} OR {alias}.x > 200)",
            f"{alias}.b IS {random.choice(('', 'NOT '))}NULL",
            f"{alias}.a + {alias}.d > {number}",
            f"CASE WHEN {alias}.b > 2 THEN {alias}.d = 0 ELSE {alias}.x < 50 END",
            f"{alias}.b <> {number}",
            f"LENGTH({alias}.s) = {random.choice((3, 5))}",
            f"({alias}.d = 0) IS NOT TRUE",
            f"{alias}.x < {number}",
            f"10 / ({alias}.d + 1) >= {random.choice((0, 1, 10))}",
        )
        return random.choice(shapes)

    def _where(self, alias: str) -> str:
        parts = [self._residual(alias) for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _plain(self) -> str:
        order, columns = self._order("t")
        chosen = self._columns("t", columns)
        if self.random.random() < 0.25:
            inner = f"(SELECT * FROM t{self._where('t')}) AS q"
            return f"SELECT {chosen.replace('t.', 'q.')} FROM {inner}{self._where('q')}{order.replace('t.', 'q.')}"
        return f"SELECT {chosen} FROM t{self._where('t')}{order}"

    def _joined(self) -> str:
        """A join that keeps the order of `t`; each row of it has one match at most, or rows repeat as they are."""
        order, columns = self._order("t")
        chosen = self._columns("t", columns)
        on = self.random.choice(
            ("t.d = u.id", "t.d = u.id", "t.b = u.id AND t.d > u.k", "t.d = u.k", "t.b < u.k AND u.id < 3")
        )
        kind = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"))
        if "RIGHT" in kind:
            return f"SELECT {chosen} FROM u RIGHT JOIN t ON {on}{self._where('t')}{order}"
        more = ", u.name" if "id" in columns and kind in {"JOIN", "LEFT JOIN"} and on == "t.d = u.id" else ""
        second = " JOIN u AS v ON v.id = t.b" if self.random.random() < 0.3 else ""
        return f"SELECT {chosen}{more} FROM t {kind} u ON {on}{second}{self._where('t')}{order}"

    def _united(self) -> str:
        column, direction = self.random.choice(("a", "x", "id", "c")), self.random.choice(("", " DESC"))
        one, two = (f"SELECT {column} FROM t{self._where('t')}" for _ in range(2))
        where = self.random.choice(("", f" WHERE {column} > 5"))
        return f"SELECT {column} FROM ({one} UNION ALL {two}) AS q{where} ORDER BY {column}{direction}"

    def _grouped(self) -> str:
        key, direction = self.random.choice(("a", "x", "s", "b", "c")), self.random.choice(("", " DESC"))
        return f"SELECT {key}, COUNT(*), MIN(d) FROM t{self._where('t')} GROUP BY {key} ORDER BY {key}{direction}"
