"""Random queries over three small maps full of NULLs: joins, sub-queries in all clauses, groups, windows, unions.

Every query has two columns of whole numbers and no order that its answer depends on: two engines can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

MAPS = {"t": ("id", "a", "b"), "u": ("id", "a", "c"), "v": ("id", "x", "a")}
ROWS = 8
COMPARISONS = ("=", "=", "<", ">", "<>", "<=", ">=")


def replicating(statements: Iterable[str], random: Random) -> Iterator[str]:
    """The same statements with some of the maps REPLICATED: whole on every member."""
    for statement in statements:
        is_map = statement.startswith("CREATE TABLE")
        yield f"{statement} REPLICATED" if is_map and random.random() < 0.6 else statement


def definitions(random: Random) -> Iterator[str]:
    """The statements that make the maps and fill them."""
    for name, (key, *others) in MAPS.items():
        columns = ", ".join(f"{each} INTEGER" for each in others)
        yield f"CREATE TABLE {name} ({key} BIGINT, {columns}, PRIMARY KEY ({key}))"
        rows = ", ".join(f"({number}, {', '.join(_value(random) for _ in others)})" for number in range(1, ROWS + 1))
        yield f"INSERT INTO {name} VALUES {rows}"


def _value(random: Random) -> str:
    return "NULL" if random.random() < 0.2 else str(random.randint(0, 4))


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that can be named: those of FROM, and with some chance those of a query around it."""

    own: tuple[str, ...]
    outer: Names | None = None


class Generator:
    def __init__(self, random: Random) -> None:
        self.random = random
        self._aliases = 0

    def query(self, depth: int = 2) -> str:
        make = self.random.choice(
            (self._grouped, self._grouped, self._windowed, self._valued, self._plain, self._plain, self._combined)
        )
        return make(depth)

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    def _column(self, names: Names, correlated: float = 0.0) -> str:
        if names.outer is not None and self._chance(correlated):
            return self._column(names.outer, correlated)
        return self.random.choice(names.own)

    # FROM

    def _source(self, depth: int) -> tuple[str, tuple[str, ...]]:
        alias = self._alias()
        name = self.random.choice(tuple(MAPS))
        if depth <= 0 or self._chance(0.7):
            return f"{name} {alias}", tuple(f"{alias}.{column}" for column in MAPS[name])
        if self._chance(0.5):
            return f"({self.query(depth - 1)}) AS {alias} (m, n)", (f"{alias}.m", f"{alias}.n")
        other = self.random.choice(("a", "NULL", "id"))
        union = (
            f"SELECT id, a FROM {name} WHERE a > 1 UNION ALL SELECT id, {other} FROM {self.random.choice(tuple(MAPS))}"
        )
        return f"({union}) {alias}", (f"{alias}.id", f"{alias}.a")

    def _from(self, depth: int, outer: Names | None = None, more: float = 0.5) -> tuple[str, Names]:
        text, columns = self._source(depth)
        for _ in range(2):
            if not self._chance(more):
                break
            right, added = self._source(depth)
            kind = self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LATERAL"))
            both = Names((*columns, *added))
            if kind == "LATERAL":
                alias = self._alias()
                inner = self._subquery(Names(columns), 0)
                text += f" LEFT JOIN LATERAL ({inner}) AS {alias} (m) ON true"
                added = (f"{alias}.m",)
            elif kind == "CROSS JOIN":
                text += f" CROSS JOIN {right}"
            else:
                condition = f"{self.random.choice(columns)} = {self.random.choice(added)}"
                if self._chance(0.4):
                    condition += f" AND {self._condition(both, 0)}"
                text += f" {kind} {right} ON {condition}"
            columns = (*columns, *added)
        return text, Names(columns, outer)

    # Conditions

    def _condition(self, names: Names, depth: int) -> str:
        left, right = self._column(names, 0.4), self._column(names, 0.4)
        compared, negated = self.random.choice(COMPARISONS), self.random.choice(("", "NOT "))
        number, connector = self.random.randint(0, 4), self.random.choice(("AND", "OR"))
        plain: tuple[Callable[[], str], ...] = (
            lambda: f"{left} {compared} {right}",
            lambda: f"{left} {compared} {number}",
            lambda: f"{left} IS {negated}NULL",
            lambda: f"{left} IS NOT DISTINCT FROM {right}",
            lambda: f"{left} {negated}IN ({number}, {number - 1})",
            lambda: f"({self._condition(names, depth)} {connector} {self._condition(names, depth)})",
            lambda: f"NOT ({self._condition(names, depth)})",
        )
        nested: tuple[Callable[[], str], ...] = (
            lambda: f"{negated}EXISTS ({self._subquery(names, depth - 1)})",
            lambda: f"{left} {negated}IN ({self._subquery(names, depth - 1)})",
            lambda: f"{left} {compared} ANY ({self._subquery(names, depth - 1)})",
            lambda: f"{left} {compared} ALL ({self._subquery(names, depth - 1)})",
            lambda: f"{left} {compared} ({self._value(names, depth - 1)})",
        )
        return self.random.choice((*plain, *nested) if depth > 0 else plain)()

    def _where(self, names: Names, depth: int) -> str:
        return f" WHERE {self._condition(names, depth)}" if self._chance(0.7) else ""

    # Sub-queries

    def _subquery(self, outer: Names, depth: int) -> str:
        """One column."""
        source, names = self._from(depth, outer, more=0.2)
        where = f" WHERE {self._condition(names, depth)}"
        column, key = self._column(names, 0.1), names.own[0]
        forms = (
            f"SELECT {column} FROM {source}{where}",
            f"SELECT {column} FROM {source}{where} UNION ALL SELECT {self.random.randint(0, 3)}",
            f"SELECT {self.random.choice(('MAX', 'COUNT', 'SUM'))}({self._column(names)}) FROM {source}{where}",
            f"SELECT {key} FROM {source}{where} GROUP BY {key} HAVING COUNT(*) > {self.random.randint(0, 1)}",
        )
        return self.random.choices(forms, weights=(6, 1, 1, 1))[0]

    def _value(self, outer: Names, depth: int) -> str:
        """One column and one row at most."""
        source, names = self._from(depth, outer, more=0.2)
        where = f" WHERE {self._condition(names, depth)}"
        function = self.random.choice(("MAX", "MIN", "COUNT", "SUM"))
        return self.random.choice(
            (
                f"SELECT {function}({self._column(names)}) FROM {source}{where}",
                f"SELECT {function}({self._column(names)} + {self._column(names, 0.5)}) FROM {source}{where}",
                f"SELECT {self._column(names)} FROM {source}{where} ORDER BY 1 LIMIT 1",
                f"SELECT COUNT(*) FROM ({self._subquery(outer, depth)}) {self._alias()}",
            )
        )

    # Queries

    def _plain(self, depth: int) -> str:
        source, names = self._from(depth)
        distinct = self.random.choice(("", "DISTINCT "))
        case = f"CASE WHEN {self._condition(names, 0)} THEN {self._column(names)} ELSE {self._column(names)} + 1 END"
        return f"SELECT {distinct}{self._column(names)} AS m, {case} AS n FROM {source}{self._where(names, depth)}"

    def _valued(self, depth: int) -> str:
        source, names = self._from(depth)
        value = self._value(names, max(depth - 1, 0))
        return f"SELECT {self._column(names)} AS m, ({value}) AS n FROM {source}{self._where(names, depth)}"

    def _grouped(self, depth: int) -> str:
        source, names = self._from(depth)
        first, second, other = (self._column(names) for _ in range(3))
        result = self.random.choice(
            (
                "COUNT(*)",
                f"SUM({other})",
                f"COUNT(DISTINCT {other})",
                f"SUM(DISTINCT {other})",
                f"MAX({other}) - MIN({self._column(names)})",
                f"COUNT(*) FILTER (WHERE {self._condition(names, 0)})",
                f"SUM(COUNT(*)) OVER (PARTITION BY {first})",
                f"(SELECT COUNT(*) FROM t WHERE t.a = {first})",
            )
        )
        keys = self.random.choice(
            (
                first,
                f"{first}, {second}",
                f"ROLLUP ({first}, {second})",
                f"CUBE ({first}, {second})",
                f"GROUPING SETS (({first}), ())",
            )
        )
        having = self.random.choice(("", "", " HAVING COUNT(*) > 1", f" HAVING SUM({other}) IS NOT NULL"))
        where = self._where(names, depth)
        return f"SELECT {first} AS m, {result} AS n FROM {source}{where} GROUP BY {keys}{having}"

    def _windowed(self, depth: int) -> str:
        source, names = self._from(depth)
        value, partition, order = (self._column(names) for _ in range(3))
        window = self.random.choice(
            (
                f"SUM({value}) OVER (PARTITION BY {partition})",
                f"COUNT(*) OVER (PARTITION BY {partition} ORDER BY {order})",
                f"RANK() OVER (ORDER BY {order})",
                f"DENSE_RANK() OVER (PARTITION BY {partition} ORDER BY {order} DESC)",
                f"MAX({value}) OVER (ORDER BY {order} RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
                f"MIN({value}) OVER (ORDER BY {order} GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
            )
        )
        qualify = self.random.choice(("", f" QUALIFY RANK() OVER (ORDER BY {self._column(names)}) <= 3"))
        return f"SELECT {value} AS m, {window} AS n FROM {source}{self._where(names, depth)}{qualify}"

    def _combined(self, depth: int) -> str:
        if depth <= 0:
            return self._plain(depth)
        operation = self.random.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
        return f"({self.query(depth - 1)}) {operation} ({self.query(depth - 1)})"
