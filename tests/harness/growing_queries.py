"""Queries that grow: each one joins, filters, groups or combines the one before it, over maps of some thousand rows.

A query has two columns of whole numbers, m and n. Wherever LIMIT or a position matters, the order is total up to equal
rows, so that two engines can be compared. `GrowingGenerator.grow` takes a query and gives the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

MAPS = {"big": 8_000, "mid": 4_000, "low": 1_500, "few": 300}
"""The rows of each map. All have the columns id, a, b, c (whole numbers) and s (text)."""
COLUMNS = ("id", "a", "b", "c")
INDEXES = (
    "CREATE INDEX big_a ON big (a) TYPE SORTED",
    "CREATE INDEX mid_b ON mid (b) TYPE HASH",
    "CREATE INDEX low_s ON low (s) TYPE SORTED",
)
JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
SET_OPERATIONS = ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
MODULUS = 1_009
"""Values that are computed stay below it: no sum of them overflows."""


def definitions() -> Iterator[str]:
    """The statements that make the maps."""
    for name in MAPS:
        yield f"CREATE TABLE {name} (id BIGINT, a INTEGER, b INTEGER, c BIGINT, s VARCHAR, PRIMARY KEY (id))"


def contents(random: Random) -> Iterator[tuple[str, str]]:
    """Each map with the query that makes its rows: duplicates, NULLs, and a few values that come very often."""
    for name, rows in MAPS.items():
        seed = random.randint(1, 1_000)
        few, many = random.choice((5, 20, 100)), random.choice((rows // 10, rows // 2, rows))
        nulls = random.choice((7, 30))
        draw = f"(hash(i * 31 + {seed} + %d) %% 1000003)::BIGINT"
        first, second, third = (draw % salt for salt in range(3))
        yield (
            name,
            (
                f"SELECT i AS id, CASE WHEN {first} % {nulls} = 0 THEN NULL ELSE ({first} % {many})::INTEGER END AS a, "
                f"CASE WHEN {second} % {nulls + 1} = 0 THEN NULL ELSE ({second} % {few})::INTEGER END AS b, "
                f"CASE WHEN {third} % 3 = 0 THEN 1 ELSE {third} % {rows} END AS c, "
                f"CASE WHEN {third} % {nulls} = 1 THEN NULL ELSE ({second} % {few * 10})::VARCHAR END AS s "
                f"FROM range(1, {rows + 1}) AS r(i)"
            ),
        )


class GrowingGenerator:
    def __init__(self, random: Random) -> None:
        self.random = random
        self._aliases = 0

    def start(self) -> str:
        name, alias = self._map(), self._alias()
        first, second = (self._of(alias) for _ in range(2))
        return f"SELECT {first} AS m, {second} AS n FROM {name} AS {alias}"

    def grow(self, query: str) -> str:
        steps: tuple[Callable[[str], str], ...] = (
            self._joined,
            self._joined,
            self._crossed,
            self._several,
            self._half_joined,
            self._half_joined,
            self._filtered,
            self._valued,
            self._compared_with_value,
            self._nested_subqueries,
            self._subquery_in_on,
            self._lateral,
            self._lateral,
            self._lateral_join,
            self._chained,
            self._named,
            self._named,
            self._recursive,
            self._combined,
            self._combined,
            self._grouped,
            self._windowed,
            self._distinct,
            self._limited,
        )
        return self.random.choice(steps)(query)

    def bounded(self, query: str) -> str:
        """The query in few rows: groups of what would be too many."""
        return f"SELECT m % 50 AS m, COUNT(*) % {MODULUS} AS n FROM ({query}) AS {self._alias()} GROUP BY m % 50"

    # Parts

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    def _map(self) -> str:
        return self.random.choice(tuple(MAPS))

    def _of(self, alias: str, *, grown: bool = False) -> str:
        """A column of a map, or of a query that has grown."""
        return f"{alias}.{self.random.choice(('m', 'n') if grown else COLUMNS)}"

    def _negated(self) -> str:
        return self.random.choice(("", "NOT "))

    def _compared(self) -> str:
        return self.random.choice(("<", ">", "<=", ">=", "<>"))

    def _right(self, query: str) -> tuple[str, str]:
        """What a query is joined with, and its alias: a map mostly, as columns m and n and its own."""
        alias, inner = self._alias(), self._alias()
        name, one, two = self._map(), self.random.choice(COLUMNS), self.random.choice(COLUMNS)
        plain = f"SELECT *, {one} AS m, {two} AS n FROM {name} AS {inner}"
        number = self.random.randint(0, 20)
        forms = (
            plain,
            plain,
            plain,
            f"{plain} WHERE {self._plain(inner)}",
            (
                f"SELECT {one} AS m, COUNT(*) AS n, {one} AS id, MIN(a) AS a, MAX(b) AS b, COUNT(c) AS c, MAX(s) AS s "
                f"FROM {name} AS {inner} GROUP BY {one}"
            ),
            f"SELECT *, {one} AS m, ROW_NUMBER() OVER (PARTITION BY b ORDER BY id) AS n FROM {name} AS {inner}",
            f"{plain} UNION ALL SELECT *, {two}, {number} FROM {self._map()}",
            f"SELECT m AS m, n AS n, m AS id, n AS a, m AS b, n AS c, NULL AS s FROM ({query}) AS {inner}",
        )
        return f"({self.random.choice(forms)}) AS {alias}", alias

    # Conditions

    def _plain(self, alias: str, *, grown: bool = False) -> str:
        one, two = (self._of(alias, grown=grown) for _ in range(2))
        number = self.random.choice((0, 1, 3, 10, 50, 500))
        return self.random.choice(
            (
                f"{one} {self._compared()} {number}",
                f"{one} = {number}",
                f"{one} IS {self._negated()}NULL",
                f"{one} BETWEEN {number} AND {number + 20}",
                f"{one} {self._negated()}IN ({number}, {number + 1}, 7)",
                f"({one} = {number} OR {two} {self._compared()} {number})",
                f"{one} % 7 = {number % 7}",
                f"COALESCE({one}, 0) {self._compared()} COALESCE({two}, 1)",
                f"NOT ({one} > {number} AND {two} IS NULL)",
            )
        )

    def _equality(self, left: str, right: str) -> str:
        """A condition with something to look up by, on the surface or below it."""
        one, two = (self._of(left, grown=True) for _ in range(2))
        other, another = (self._of(right) for _ in range(2))
        plain = f"{one} = {other}"
        number = self.random.randint(0, 9)
        return self.random.choice(
            (
                plain,
                plain,
                plain,
                f"{one} = {other} AND {two} {self._compared()} {another}",
                f"{one} = {other} AND {two} = {another}",
                f"{one} + {number} = {other}",
                f"{one} % 100 = {other} % 100",
                f"COALESCE({one}, 0) = COALESCE({other}, -1)",
                f"{one} IS NOT DISTINCT FROM {other}",
                f"({one} = {other} OR ({one} IS NULL AND {other} IS NULL))",
                f"(({one} = {other} AND {another} > {number}) OR ({one} = {other} AND {two} < {number}))",
                f"(({one} = {other} AND {another} > {number}) OR ({one} = {another} AND {two} < {number}))",
                f"CAST({one} AS VARCHAR) = {right}.s",
                # DuckDB takes a NULL within a row for a value.
                f"(COALESCE({one}, -2), COALESCE({two}, 0)) = (COALESCE({other}, -1), COALESCE({another}, 0))",
                f"CASE WHEN {one} > {number} THEN {one} ELSE {two} END = {other}",
                f"NOT ({one} <> {other} OR {two} < {number})",
            )
        )

    def _pairing(self, left: str, right: str) -> str:
        """A condition of two relations: equalities mostly, and others that compare pairs."""
        if self._chance(0.7):
            return self._equality(left, right)
        one, two = (self._of(left, grown=True) for _ in range(2))
        other, another = (self._of(right) for _ in range(2))
        return self.random.choice(
            (
                f"({one} = {other} OR {two} = {another})",
                f"({one} = {other} OR {one} = {another})",
                f"{one} IN ({other}, {another})",
                f"{one} {self._compared()} {other}",
                f"{one} BETWEEN {other} AND {another}",
                f"{one} > {other} AND {two} < {another}",
                f"ABS({one} - {other}) <= 1",
                f"({one} = {other} OR {self._plain(left, grown=True)})",
                f"({one} = {other} OR {self._plain(right)})",
                f"{one} + {two} = {other} + {another}",
                f"{one} = {two} + {other}",
            )
        )

    # Steps

    def _selected(self, left: str, right: str) -> str:
        """The columns m and n out of both sides of a join."""
        one, other = self._of(left, grown=True), self._of(right)
        return self.random.choice(
            (
                f"{one} AS m, {other} AS n",
                f"{one} AS m, ({left}.n + {other}) % {MODULUS} AS n",
                f"COALESCE({one}, {other}) AS m, {left}.n AS n",
                f"{other} AS m, {left}.m AS n",
            )
        )

    def _joined(self, query: str) -> str:
        left = self._alias()
        source, right = self._right(query)
        kind, condition = self.random.choice(JOINS), self._pairing(left, right)
        if self._chance(0.15):
            column = self.random.choice(("m", "n", "m, n"))
            return f"SELECT {left}.m AS m, {right}.n AS n FROM ({query}) AS {left} {kind} {source} USING ({column})"
        if self._chance(0.4):
            condition += f" AND {self._plain(right)}"
        if self._chance(0.2):
            condition += f" AND {self._plain(left, grown=True)}"
        where = f" WHERE {self._pairing(left, right)}" if self._chance(0.15) else ""
        return f"SELECT {self._selected(left, right)} FROM ({query}) AS {left} {kind} {source} ON {condition}{where}"

    def _crossed(self, query: str) -> str:
        """A cross join under a filter that says how its sides belong together, perhaps only from outside."""
        left, outer = self._alias(), self._alias()
        source, right = self._right(query)
        if self._chance(0.5):
            return (
                f"SELECT {self._selected(left, right)} FROM ({query}) AS {left}, {source} "
                f"WHERE {self._pairing(left, right)}"
            )
        number = self.random.randint(0, 5)
        return (
            f"SELECT {outer}.m AS m, {outer}.n AS n FROM (SELECT {left}.m AS m, {left}.n AS n, {right}.a AS x, "
            f"{right}.b AS y FROM ({query}) AS {left} CROSS JOIN {source}) AS {outer} "
            f"WHERE {outer}.m = {outer}.x AND {outer}.y > {number}"
        )

    def _several(self, query: str) -> str:
        """Three relations with commas, their conditions mixed up below."""
        left, middle, right = self._alias(), self._alias(), self._alias()
        conditions = [
            f"{self._of(left, grown=True)} = {self._of(middle)}",
            f"{self._of(middle)} = {self._of(right)}",
            self._plain(middle),
        ]
        if self._chance(0.3):
            conditions[1] = f"({conditions[1]} OR {self._of(middle)} = {self._of(right)})"
        if self._chance(0.3):
            conditions[0] = f"({conditions[0]} AND {self._plain(right)} OR {conditions[0]} AND {self._plain(middle)})"
        self.random.shuffle(conditions)
        return (
            f"SELECT {self._selected(left, right)} FROM {self._map()} AS {right}, ({query}) AS {left}, "
            f"{self._map()} AS {middle} WHERE {' AND '.join(conditions)}"
        )

    def _half_joined(self, query: str) -> str:
        left, right = self._alias(), self._alias()
        name, negated = self._map(), self._negated()
        condition = self._pairing(left, right)
        more = f" AND {self._plain(right)}" if self._chance(0.4) else ""
        column, value = self._of(left, grown=True), self._of(right)
        correlated = f" AND {self._equality(left, right)}" if self._chance(0.4) else ""
        test = self.random.choice(
            (
                f"{negated}EXISTS (SELECT 1 FROM {name} AS {right} WHERE {condition}{more})",
                f"{column} {negated}IN (SELECT {value} FROM {name} AS {right} WHERE {self._plain(right)}{correlated})",
                f"{column} {negated}IN (SELECT {value} FROM {name} AS {right} WHERE {value} IS NOT NULL{correlated})",
                f"({negated}EXISTS (SELECT 1 FROM {name} AS {right} WHERE {condition}{more}) OR {column} > 100)",
                (
                    f"{column} {self._compared()} {self.random.choice(('ANY', 'ALL'))} "
                    f"(SELECT {value} FROM {name} AS {right} WHERE {self._plain(right)}{correlated})"
                ),
            )
        )
        return f"SELECT {left}.m AS m, {left}.n AS n FROM ({query}) AS {left} WHERE {test}"

    def _filtered(self, query: str) -> str:
        alias = self._alias()
        conditions = " AND ".join(self._plain(alias, grown=True) for _ in range(self.random.randint(1, 2)))
        return f"SELECT {alias}.m AS m, ({alias}.n + 1) % {MODULUS} AS n FROM ({query}) AS {alias} WHERE {conditions}"

    def _value(self, outer: str) -> str:
        """A sub-query of one value for each row of `outer`."""
        right = self._alias()
        name, column = self._map(), self._of(right)
        condition = self._pairing(outer, right) if self._chance(0.8) else self._plain(right)
        function = self.random.choice(("MIN", "MAX", "COUNT", "COUNT(DISTINCT"))
        call = f"{function} {column}))" if function.endswith("DISTINCT") else f"{function}({column})"
        return self.random.choice(
            (
                f"SELECT {call} FROM {name} AS {right} WHERE {condition}",
                f"SELECT {call} FROM {name} AS {right} WHERE {condition}",
                f"SELECT SUM({column}) % {MODULUS} FROM {name} AS {right} WHERE {condition} AND {self._plain(right)}",
                f"SELECT {column} FROM {name} AS {right} WHERE {condition} ORDER BY 1 LIMIT 1",
                f"SELECT {right}.b FROM {name} AS {right} WHERE {right}.id = {self._of(outer, grown=True)}",
            )
        )

    def _valued(self, query: str) -> str:
        left = self._alias()
        return f"SELECT {left}.m AS m, ({self._value(left)}) AS n FROM ({query}) AS {left}"

    def _compared_with_value(self, query: str) -> str:
        left = self._alias()
        column = self._of(left, grown=True)
        return (
            f"SELECT {left}.m AS m, {left}.n AS n FROM ({query}) AS {left} "
            f"WHERE {column} {self.random.choice((self._compared(), '='))} ({self._value(left)})"
        )

    def _nested_subqueries(self, query: str) -> str:
        """A sub-query within a sub-query that names columns of both queries around it."""
        left, middle, inner = (self._alias() for _ in range(3))
        within = self.random.choice(
            (
                (
                    f"{self._negated()}EXISTS (SELECT 1 FROM {self._map()} AS {inner} WHERE {inner}.a = {left}.m "
                    f"AND {inner}.b = {middle}.b)"
                ),
                f"{middle}.c > (SELECT COUNT(*) FROM {self._map()} AS {inner} WHERE {inner}.a = {left}.n)",
                (
                    f"{middle}.b {self._negated()}IN (SELECT {inner}.b FROM {self._map()} AS {inner} "
                    f"WHERE {inner}.b IS NOT NULL AND {inner}.c = {left}.m)"
                ),
                f"{middle}.id = (SELECT MAX({inner}.id) FROM {self._map()} AS {inner} WHERE {inner}.b = {middle}.b)",
            )
        )
        around = self.random.choice(
            (
                (
                    f"{self._negated()}EXISTS (SELECT 1 FROM {self._map()} AS {middle} "
                    f"WHERE {self._equality(left, middle)} AND {within})"
                ),
                (
                    f"{left}.n < (SELECT MAX({self._of(middle)}) FROM {self._map()} AS {middle} "
                    f"WHERE {self._equality(left, middle)} AND {within})"
                ),
            )
        )
        return f"SELECT {left}.m AS m, {left}.n AS n FROM ({query}) AS {left} WHERE {around}"

    def _lateral_join(self, query: str) -> str:
        """LATERAL over two maps, of which either may name the outer row."""
        left, right, one, two = (self._alias() for _ in range(4))
        kind = self.random.choice(("JOIN", "LEFT JOIN"))
        body = (
            f"SELECT {self._of(one)} AS x, {self._of(two)} AS y FROM {self._map()} AS {one} "
            f"{kind} {self._map()} AS {two} ON {one}.id = {two}.a"
        )
        condition = self._equality(left, self.random.choice((one, two)))
        if self._chance(0.5):
            body = f"{body} WHERE {condition}"
        else:
            body = f"SELECT COUNT(x) AS x, MIN(y) AS y FROM ({body} WHERE {condition}) AS {self._alias()}"
        joined = self.random.choice(
            (f"CROSS JOIN LATERAL ({body}) AS {right}", f"LEFT JOIN LATERAL ({body}) AS {right} ON true")
        )
        return f"SELECT {left}.m AS m, {right}.y AS n FROM ({query}) AS {left} {joined}"

    def _chained(self, query: str) -> str:
        """Outer joins one after the other, over keys that may be missing on either side."""
        left, one, two = (self._alias() for _ in range(3))
        first, second = (self.random.choice(("LEFT JOIN", "FULL JOIN", "RIGHT JOIN", "JOIN")) for _ in range(2))
        where = f" WHERE {self._plain(two)}" if self._chance(0.4) else ""
        return (
            f"SELECT COALESCE({left}.m, {one}.a) AS m, {two}.b AS n FROM ({query}) AS {left} "
            f"{first} {self._map()} AS {one} ON {left}.m = {one}.id "
            f"{second} {self._map()} AS {two} ON COALESCE({left}.n, {one}.a) = {two}.id{where}"
        )

    def _subquery_in_on(self, query: str) -> str:
        """A join whose condition has a sub-query, of one side or of none."""
        left, inner = self._alias(), self._alias()
        source, right = self._right(query)
        kind = self.random.choice(("JOIN", "LEFT JOIN"))
        name = self._map()
        test = self.random.choice(
            (
                f"EXISTS (SELECT 1 FROM {name} AS {inner} WHERE {inner}.a = {right}.b)",
                f"{self._of(right)} < (SELECT MAX({self._of(inner)}) FROM {name} AS {inner})",
                f"{self._of(right)} IN (SELECT {self._of(inner)} FROM {name} AS {inner} WHERE {self._plain(inner)})",
                f"{self._of(right)} >= (SELECT COUNT(*) FROM {name} AS {inner} WHERE {inner}.b = {right}.b)",
            )
        )
        return (
            f"SELECT {self._selected(left, right)} FROM ({query}) AS {left} {kind} {source} "
            f"ON {self._equality(left, right)} AND {test}"
        )

    def _lateral(self, query: str) -> str:
        left, right, inner = self._alias(), self._alias(), self._alias()
        name, condition = self._map(), self._pairing(left, inner)
        one, two = (self._of(inner) for _ in range(2))
        body = self.random.choice(
            (
                f"SELECT {one} AS x, {two} AS y FROM {name} AS {inner} WHERE {condition}",
                (
                    f"SELECT {one} AS x, {two} AS y FROM {name} AS {inner} WHERE {condition} "
                    f"ORDER BY 1, 2 LIMIT {self.random.randint(1, 3)}"
                ),
                f"SELECT COUNT(*) AS x, MAX({two}) AS y FROM {name} AS {inner} WHERE {condition}",
                f"SELECT {one} AS x, COUNT(*) AS y FROM {name} AS {inner} WHERE {condition} GROUP BY {one}",
                f"SELECT DISTINCT {one} AS x, {left}.m AS y FROM {name} AS {inner} WHERE {condition}",
                f"SELECT {one} AS x, RANK() OVER (ORDER BY {two}) AS y FROM {name} AS {inner} WHERE {condition}",
                (
                    f"SELECT {one} AS x, {two} AS y FROM {name} AS {inner} WHERE {self._equality(left, inner)} "
                    f"UNION ALL SELECT {left}.m, {left}.n"
                ),
            )
        )
        joined = self.random.choice(
            (
                f"CROSS JOIN LATERAL ({body}) AS {right}",
                f", LATERAL ({body}) AS {right}",
                f"LEFT JOIN LATERAL ({body}) AS {right} ON true",
                f"JOIN LATERAL ({body}) AS {right} ON {right}.x {self._compared()} {self._of(left, grown=True)}",
            )
        )
        return f"SELECT {left}.m AS m, {right}.{self.random.choice('xy')} AS n FROM ({query}) AS {left} {joined}"

    def _named(self, query: str) -> str:
        """WITH: the query under a name, read once, twice, or through another name."""
        first, second, left, right = (self._alias() for _ in range(4))
        kind = self.random.choice(JOINS)
        one, two = self.random.choice("mn"), self.random.choice("mn")
        grouped = f"SELECT {one} AS m, COUNT(*) AS n FROM {first} GROUP BY {one}"
        both = f"SELECT {left}.m AS m, {right}.n AS n FROM {first} AS {left}"
        above = f"(SELECT AVG({two}) FROM {first})"
        return self.random.choice(
            (
                f"WITH {first} AS ({query}) SELECT {one} AS m, n FROM {first} WHERE {two} > 5",
                f"WITH {first} AS ({query}) {both} {kind} {first} AS {right} ON {left}.{one} = {right}.{two}",
                (
                    f"WITH {first} AS ({query}), {second} AS ({grouped}) {both} "
                    f"{kind} {second} AS {right} ON {left}.{one} = {right}.m"
                ),
                (
                    f"WITH {first} AS ({query}) SELECT {left}.m AS m, {left}.n AS n FROM {first} AS {left} "
                    f"WHERE {left}.{two} > {above}"
                ),
                (
                    f"WITH {first} AS ({query}) SELECT {left}.m AS m, {left}.n AS n FROM {first} AS {left} "
                    f"WHERE {self._negated()}EXISTS (SELECT 1 FROM {first} AS {right} "
                    f"WHERE {right}.{two} = {left}.{one} AND {right}.n <> {left}.n)"
                ),
                (
                    f"WITH {first} AS ({query}), {second} AS (SELECT m, n FROM {first} WHERE {two} < 100) "
                    f"SELECT m, n FROM {first} {self.random.choice(SET_OPERATIONS)} SELECT n, m FROM {second}"
                ),
                (
                    f"SELECT m, n FROM (WITH {first} AS ({query}), {second} AS ({grouped}) "
                    f"SELECT {left}.m, {left}.n FROM {second} AS {left} WHERE {left}.n IN "
                    f"(SELECT {two} FROM {first} WHERE {one} IS NOT NULL)) AS {right}"
                ),
            )
        )

    def _recursive(self, query: str) -> str:
        name, alias, inner = self._alias(), self._alias(), self._alias()
        kind, limit = self.random.choice(("UNION", "UNION ALL")), self.random.randint(2, 5)
        first = f"SELECT DISTINCT CAST(m AS BIGINT), CAST(0 AS BIGINT) FROM ({query}) AS {alias}"
        step = self.random.choice(
            (
                (
                    f"SELECT CAST({inner}.m + 1 AS BIGINT), {inner}.n + CAST(1 AS BIGINT) FROM {name} AS {inner} "
                    f"WHERE {inner}.n < {limit}"
                ),
                (
                    f"SELECT CAST(few.a AS BIGINT), {inner}.n + CAST(1 AS BIGINT) FROM {name} AS {inner} "
                    f"JOIN few ON few.id = {inner}.m WHERE {inner}.n < {limit}"
                ),
            )
        )
        return f"WITH RECURSIVE {name} (m, n) AS ({first} {kind} {step}) SELECT m, n FROM {name}"

    def _combined(self, query: str) -> str:
        operation, alias, other = self.random.choice(SET_OPERATIONS), self._alias(), self._alias()
        name, one, two = self._map(), self.random.choice(COLUMNS), self.random.choice(COLUMNS)
        second = self.random.choice(
            (
                f"SELECT {one}, {two} FROM {name}",
                f"SELECT {one}, {two} FROM {name} WHERE {self._plain(name)}",
                f"SELECT n, m FROM ({query}) AS {alias}",
                f"SELECT {alias}.a, {other}.b FROM few AS {alias} CROSS JOIN few AS {other}",
                f"SELECT {alias}.{one}, {other}.{two} FROM low AS {alias} CROSS JOIN few AS {other}",
                (
                    f"SELECT {alias}.{one}, {other}.{two} FROM {name} AS {alias} JOIN {self._map()} AS {other} "
                    f"ON {alias}.id = {other}.a"
                ),
            )
        )
        parts = [f"({query})", f"({second})"]
        if self._chance(0.3):
            parts.reverse()
        combined = f" {operation} ".join(parts)
        where = f" WHERE {self._plain('z', grown=True)}" if self._chance(0.4) else ""
        return f"SELECT z.m AS m, z.n AS n FROM ({combined}) AS z (m, n){where}"

    def _grouped(self, query: str) -> str:
        alias = self._alias()
        key, other = self._of(alias, grown=True), self._of(alias, grown=True)
        call = self.random.choice(
            (
                "COUNT(*)",
                f"COUNT(DISTINCT {other})",
                f"SUM({other}) % {MODULUS}",
                f"MAX({other}) - MIN({alias}.n)",
                f"COUNT(*) FILTER (WHERE {self._plain(alias, grown=True)})",
            )
        )
        having = self.random.choice(("", "", " HAVING COUNT(*) > 1", f" HAVING MAX({other}) > 10"))
        return f"SELECT {key} AS m, {call} AS n FROM ({query}) AS {alias} GROUP BY {key}{having}"

    def _windowed(self, query: str) -> str:
        alias, outer = self._alias(), self._alias()
        call = self.random.choice(
            (
                "COUNT(*) OVER (PARTITION BY m)",
                "RANK() OVER (PARTITION BY m ORDER BY n)",
                "DENSE_RANK() OVER (ORDER BY n, m)",
                f"SUM(n) OVER (PARTITION BY m) % {MODULUS}",
                "MAX(n) OVER (PARTITION BY m ORDER BY n)",
                "LAG(n) OVER (PARTITION BY m ORDER BY n)",
            )
        )
        condition = self.random.choice(("n < 5", "m = 3", "m BETWEEN 1 AND 50", self._plain(outer, grown=True)))
        inner = f"SELECT {alias}.m AS m, {call} AS n FROM ({query}) AS {alias}"
        return f"SELECT {outer}.m AS m, {outer}.n AS n FROM ({inner}) AS {outer} WHERE {condition}"

    def _distinct(self, query: str) -> str:
        alias = self._alias()
        columns = self.random.choice(("m, n", "m, m AS n", "n AS m, 1 AS n"))
        return f"SELECT DISTINCT {columns} FROM ({query}) AS {alias}"

    def _limited(self, query: str) -> str:
        alias = self._alias()
        first, second = self.random.choices(("", " DESC", " NULLS LAST", " DESC NULLS FIRST"), k=2)
        offset = f" OFFSET {self.random.randint(0, 50)}" if self._chance(0.3) else ""
        limit = self.random.choice((5, 100, 1_000))
        return f"SELECT m, n FROM ({query}) AS {alias} ORDER BY m{first}, n{second} LIMIT {limit}{offset}"
