"""More shapes of random queries: what `random_queries` has, and WITH, rows, ordered parts, sources of other kinds.

Wherever LIMIT or a function of the row's place stands, the order is total up to rows that are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.random_queries import COMPARISONS, MAPS, Generator, Names

if TYPE_CHECKING:
    from collections.abc import Callable


class WiderGenerator(Generator):
    def query(self, depth: int = 2) -> str:
        wider = (
            self._named,
            self._recursive,
            self._limited,
            self._numbered,
            self._first_of_groups,
            self._by_expression,
            self._set_apart,
            self._summed_twice,
        )
        return super().query(depth) if self._chance(0.35) else self.random.choice(wider)(depth)

    # FROM

    def _source(self, depth: int) -> tuple[str, tuple[str, ...]]:
        if self._chance(0.75):
            return super()._source(depth)
        alias, number = self._alias(), self.random.randint(0, 4)
        name, other = (self.random.choice(tuple(MAPS)) for _ in range(2))
        left, right = self._alias(), self._alias()
        shared = self.random.choice(("id", "id, a"))
        comma = f"SELECT {left}.id AS m, {right}.a AS n FROM {name} {left}, {other} {right}"
        half = f"{self.random.choice(('SEMI', 'ANTI'))} JOIN {other} {right} ON {left}.a = {right}.a"
        forms: tuple[tuple[str, tuple[str, ...]], ...] = (
            (f"(VALUES (1, {number}), (NULL, 2), ({number}, NULL)) AS {alias} (m, n)", (f"{alias}.m", f"{alias}.n")),
            (f"generate_series(0, {number}) AS {alias} (m)", (f"{alias}.m",)),
            (f"(SELECT * FROM {name} {left} JOIN {other} {right} USING ({shared})) AS {alias}", (f"{alias}.id",)),
            (
                f"({comma} WHERE {left}.id {self.random.choice(COMPARISONS)} {right}.a) AS {alias}",
                (f"{alias}.m", f"{alias}.n"),
            ),
            (
                f"(SELECT * FROM {name} {left} {half} AND {right}.id <> {number}) AS {alias}",
                tuple(f"{alias}.{column}" for column in MAPS[name]),
            ),
            (
                f"({self._ordered(f'SELECT id AS m, a AS n FROM {name}')}) AS {alias}",
                (f"{alias}.m", f"{alias}.n"),
            ),
        )
        return self.random.choice(forms)

    def _ordered(self, query: str) -> str:
        """The first rows of a query whose columns are m and n."""
        directions = ("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
        first, second = self.random.choices(directions, k=2)
        offset = f" OFFSET {self.random.randint(0, 3)}" if self._chance(0.4) else ""
        return f"{query} ORDER BY m{first}, n{second} LIMIT {self.random.randint(0, 5)}{offset}"

    # Conditions

    def _condition(self, names: Names, depth: int) -> str:
        if self._chance(0.7):
            return super()._condition(names, depth)
        one, two, three = (self._column(names, 0.4) for _ in range(3))
        compared, negated = self.random.choice(COMPARISONS), self.random.choice(("", "NOT "))
        number = self.random.randint(0, 4)
        # DuckDB takes a NULL within a row for a value.
        row = f"(COALESCE({one}, -1), COALESCE({two}, -1))"
        plain: tuple[Callable[[], str], ...] = (
            lambda: f"{one} {negated}BETWEEN {two} AND {number}",
            lambda: f"{row} {compared} (COALESCE({three}, 1), {number})",
            lambda: f"{row} {negated}IN ((1, {number}), (COALESCE({three}, 1), 2))",
            lambda: f"COALESCE({one}, {two}, {number}) {compared} NULLIF({three}, {number})",
            lambda: f"({one} = {number}) IS {negated}{self.random.choice(('TRUE', 'FALSE', 'UNKNOWN'))}",
            lambda: f"{one} + {two} {compared} {three} * {number}",
            lambda: f"CASE WHEN {self._condition(names, 0)} THEN {one} {compared} {two} END",
            lambda: f"CAST({one} AS VARCHAR) || 'x' {negated}LIKE '{number}%'",
        )
        nested: tuple[Callable[[], str], ...] = (
            lambda: f"{row} {negated}IN ({self._pairs(names, depth - 1)})",
            lambda: f"({self._value(names, depth - 1)}) {compared} ({self._value(names, depth - 1)})",
            lambda: f"{one} + ({self._value(names, depth - 1)}) {compared} {two}",
        )
        return self.random.choice((*plain, *nested) if depth > 0 else plain)()

    def _pairs(self, outer: Names, depth: int) -> str:
        """A sub-query of two columns."""
        source, names = self._from(depth, outer, more=0.2)
        first, second = (f"COALESCE({column}, -1)" for column in (self._column(names), self._column(names, 0.1)))
        return f"SELECT {first}, {second} FROM {source} WHERE {self._condition(names, depth)}"

    # Queries

    def _named(self, depth: int) -> str:
        """WITH: one query, named by another and by the query itself, where a map has the name too."""
        first, second = self.random.choice((self._alias(), *MAPS)), self._alias()
        inner = self.query(depth - 1) if depth > 0 else "SELECT id AS m, a AS n FROM u"
        over = f"SELECT m, n + 1 FROM {first} WHERE m IS NOT NULL"
        join = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        return (
            f"WITH {first} (m, n) AS ({inner}), {second} (m, n) AS ({over}) "
            f"SELECT x.m AS m, COALESCE(y.n, x.n) AS n FROM {first} x {join} {second} y ON x.m = y.n"
        )

    def _recursive(self, depth: int) -> str:
        name, limit = self._alias(), self.random.randint(2, 6)
        source, names = self._from(max(depth - 1, 0), more=0.2)
        column = self._column(names)
        kind = self.random.choice(("UNION", "UNION ALL"))
        first = f"SELECT DISTINCT CAST({column} AS BIGINT), CAST(0 AS BIGINT) FROM {source}"
        step = f"SELECT r.m + CAST(1 AS BIGINT), r.n + CAST(1 AS BIGINT) FROM {name} r WHERE r.n < {limit} AND r.m < 9"
        return f"WITH RECURSIVE {name} (m, n) AS ({first} {kind} {step}) SELECT m, n FROM {name}"

    def _limited(self, depth: int) -> str:
        return f"SELECT m, n FROM ({self._ordered(self._plain(depth))}) AS {self._alias()}"

    def _numbered(self, depth: int) -> str:
        """Functions of the row's place, over the rows of a query without rows that are the same."""
        inner = f"SELECT DISTINCT m, n FROM ({self._plain(depth)}) AS {self._alias()}"
        order = self.random.choice(("ORDER BY m, n", "ORDER BY n DESC, m"))
        over = self.random.choice((f"({order})", f"(PARTITION BY n {order})"))
        start, end = self.random.choice((("2 PRECEDING", "CURRENT ROW"), ("1 FOLLOWING", "3 FOLLOWING")))
        frame = f"{over[:-1]} ROWS BETWEEN {start} AND {end}{self.random.choice(('', ' EXCLUDE CURRENT ROW'))})"
        result = self.random.choice(
            (
                f"ROW_NUMBER() OVER {over}",
                f"LAG(m, {self.random.randint(0, 3)}) OVER {over}",
                f"LEAD(n, 1, -1) OVER {over}",
                f"NTILE({self.random.randint(1, 4)}) OVER {over}",
                f"FIRST_VALUE(n) OVER {over}",
                f"LAST_VALUE(m IGNORE NULLS) OVER {over}",
                f"SUM(m) OVER {frame}",
                f"COUNT(n) OVER {frame}",
                f"MIN(n) OVER {frame}",
                f"NTH_VALUE(m, 2) OVER {frame}",
            )
        )
        return f"SELECT m, {result} AS n FROM ({inner}) AS {self._alias()}"

    def _first_of_groups(self, depth: int) -> str:
        inner = f"({self._plain(depth)}) AS {self._alias()}"
        return f"SELECT DISTINCT ON (m) m, n FROM {inner} ORDER BY m, n{self.random.choice(('', ' DESC'))} NULLS FIRST"

    def _by_expression(self, depth: int) -> str:
        """Groups by what is computed, GROUPING, and a HAVING with a sub-query."""
        source, names = self._from(depth)
        one, two, other = (self._column(names) for _ in range(3))
        key = self.random.choice((f"{one} + {two}", f"COALESCE({one}, -1)", f"CASE WHEN {one} > 1 THEN {two} END"))
        having = f" HAVING COUNT(*) > ({self._value(Names((one,)), 0)})" if self._chance(0.3) else ""
        if self._chance(0.3):
            grouping = f"GROUPING({one}, {two}) * 100 + COUNT(*)"
            sets = f"GROUPING SETS (({one}, {two}), ({two}), ({two}))"
            return (
                f"SELECT {two} AS m, {grouping} AS n FROM {source}{self._where(names, depth)} GROUP BY {sets}{having}"
            )
        value = self.random.choice((f"MIN({other} * 2)", f"SUM(DISTINCT {other} + 1)", f"COUNT(DISTINCT {other} % 2)"))
        return f"SELECT {key} AS m, {value} AS n FROM {source}{self._where(names, depth)} GROUP BY {key}{having}"

    def _set_apart(self, _depth: int) -> str:
        """Set operations of three parts without parentheses: INTERSECT binds tighter."""
        parts = [f"SELECT {two} AS m, {one} AS n FROM {name}" for name, (one, two, _) in MAPS.items()]
        self.random.shuffle(parts)
        operations = ("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
        first, second = self.random.choices(operations, k=2)
        return f"SELECT m, n FROM ({parts[0]} {first} {parts[1]} {second} {parts[2]}) AS {self._alias()}"

    def _summed_twice(self, depth: int) -> str:
        """A group over groups that are joined with what they were made of."""
        source, names = self._from(depth)
        key, value = self._column(names), self._column(names)
        name, first, second = self.random.choice(tuple(MAPS)), self._alias(), self._alias()
        inner = f"SELECT {key} AS m, SUM({value}) AS n FROM {source}{self._where(names, depth)} GROUP BY {key}"
        join = self.random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN"))
        return (
            f"SELECT {second}.a AS m, SUM({first}.n) AS n FROM ({inner}) AS {first} "
            f"{join} {name} AS {second} ON {second}.id = {first}.m GROUP BY {second}.a"
        )
