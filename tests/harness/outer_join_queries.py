"""Random queries over joins of all kinds, with aggregates of arguments that are known where a side has no row.

The maps have skew, groups of many rows on both sides, and groups that only one side has; their sizes are such that a
plan computes aggregates below a join. Every number is exact in any order of additions: two engines can be compared.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from remuda.optimizer import cost, costing
from remuda.optimizer.memo import Split
from remuda.optimizer.search import Search
from remuda.rules.explore import aggregate_below_join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from remuda.optimizer.memo import Group

COLUMNS = {
    "id": "BIGINT",
    "grp": "INTEGER",
    "cust": "INTEGER",
    "amount": "INTEGER",
    "price": "DECIMAL(10, 2)",
    "share": "DOUBLE",
    "label": "VARCHAR",
    "flag": "BOOLEAN",
}
MAPS = ("o", "r", "s")
SIZES = (0, 9, 60, 60, 400, 2_500)
INDEXES = (
    "CREATE INDEX o_grp ON o (grp) TYPE SORTED",
    "CREATE INDEX r_grp ON r (grp, amount) TYPE SORTED",
    "CREATE INDEX s_grp ON s (grp) TYPE HASH",
    "CREATE INDEX r_amount ON r (amount) TYPE SORTED",
)


def definitions(random: Random) -> Iterator[tuple[str, str, str]]:
    """For each map its name, the statement that makes it, and a query of DuckDB's for its rows."""
    for number, name in enumerate(MAPS):
        rows, seed = random.choice(SIZES), random.randint(0, 1_000_000)
        groups = max(3, rows // random.choice((3, 8, 20)))
        columns = ", ".join(f"{column} {type_}" for column, type_ in COLUMNS.items())
        yield name, f"CREATE TABLE {name} ({columns}, PRIMARY KEY (id))", _rows(rows, seed, groups, number)


def _rows(rows: int, seed: int, groups: int, number: int) -> str:
    """Group 1 is large, others are those of one map alone, and one row in twenty has none."""

    def draw(salt: int, below: int) -> str:
        return f"CAST(hash(i * 31 + {seed + salt * 7_919}) % {below} AS INTEGER)"

    def some(salt: int, value: str, missing: int = 8) -> str:
        return f"CASE WHEN {draw(salt + 50, missing)} > 0 THEN {value} END"

    group = f"CASE WHEN {draw(1, 100)} < 3 THEN 1 ELSE {draw(2, groups)} + {number * (groups // 3)} END"
    return f"""SELECT i AS id, {some(1, group, 20)} AS grp, {some(2, draw(3, 6))} AS cust,
        {some(3, f"{draw(4, 12)} - 2")} AS amount,
        {some(4, f"CAST({draw(5, 900)} AS DECIMAL(10, 2)) / 4")}::DECIMAL(10, 2) AS price,
        {some(5, f"{draw(6, 40)} / CAST(4.0 AS DOUBLE)")} AS share,
        {some(6, f"chr(97 + {draw(7, 5)})")} AS label, {some(7, f"{draw(8, 2)} = 1")} AS flag
        FROM range({rows}) t(i)"""


@contextmanager
def any_plan(random: Random) -> Iterator[None]:
    """While this lasts, costs and so plans are a matter of chance, and sides of joins always ask each other."""

    def drawn(node: Any, rows: float, *, members: int) -> float:
        return honest(node, rows, members=members) * 10 ** random.uniform(-2, 2)

    def promising(search: Search, group: Group) -> list[tuple[float, Any]]:
        """Mostly those trees alone that an explore rule found."""
        every = by_promise(search, group)
        known = search.memo.explored
        found = [(least, tree) for least, tree in every if isinstance(tree, Split) or id(tree) in known]
        return found if found and random.random() < 0.8 else every

    honest, by_promise = cost.operator_cost, Search._by_promise
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costing, "operator_cost", drawn)
        patch.setattr(Search, "_by_promise", promising)
        patch.setattr(aggregate_below_join, "MOST_ROWS_LEFT", 2.0)
        patch.setattr(cost, "FILTERED_BUILD_ROWS", 0)
        patch.setattr(cost, "SPOOLED_PROBE_SHARE", 1e9)
        patch.setattr(cost, "RUNTIME_FILTER_SHARE", 1e9)
        patch.setattr(cost, "ARROW_JOIN_START", random.choice((0.0, cost.ARROW_JOIN_START)))
        yield


@dataclass(frozen=True, slots=True)
class Names:
    """The aliases of FROM whose columns can be named, and those of the query around it."""

    own: tuple[str, ...]
    outer: tuple[str, ...] = ()


class OuterJoinGenerator:
    def __init__(self, random: Random) -> None:
        self.random = random
        self._aliases = 0

    def query(self) -> str:
        make = self.random.choice(
            (
                self._grouped,
                self._grouped,
                self._grouped,
                self._grouped,
                self._grouped_twice,
                self._windowed,
                self._limited,
                self._valued,
                self._plain,
            )
        )
        return make()

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def _alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    # Expressions

    def _of(self, names: Names, *types: str) -> str:
        """A column of one of these types."""
        columns = [column for column, type_ in COLUMNS.items() if type_ in types and column != "id"]
        aliases = names.outer if names.outer and self._chance(0.3) else names.own
        return f"{self.random.choice(aliases)}.{self.random.choice(columns)}"

    def _number(self, names: Names) -> str:
        """A whole number that may be known where a side is missing, NULL where it is there, or constant."""
        column, other = self._of(names, "INTEGER"), self._of(names, "INTEGER")
        constant = self.random.randint(-1, 6)
        return self.random.choice(
            (
                column,
                column,
                str(constant),
                f"COALESCE({column}, {constant})",
                f"COALESCE({column}, {other})",
                f"CASE WHEN {self._condition(names)} THEN {constant} ELSE {self.random.randint(0, 2)} END",
                f"CASE WHEN {self._condition(names)} THEN {column} END",
                f"CASE WHEN {column} IS NULL THEN {constant} ELSE {other} END",
                f"NULLIF({column}, {constant})",
                f"GREATEST({column}, {constant})",
                f"{column} * 2 + {constant}",
                f"CAST({column} AS BIGINT)",
                f"ABS({column})",
                f"LENGTH({self._of(names, 'VARCHAR')})",
                f"LENGTH(CONCAT({self._of(names, 'VARCHAR')}, 'x'))",
                f"CAST({self._of(names, 'BOOLEAN')} AS INTEGER)",
            )
        )

    def _condition(self, names: Names, depth: int = 1) -> str:
        number, text, flag = self._of(names, "INTEGER"), self._of(names, "VARCHAR"), self._of(names, "BOOLEAN")
        any_ = self._of(names, *COLUMNS.values())
        constant, negated = self.random.randint(-1, 6), self.random.choice(("", "NOT "))
        compared = self.random.choice(("=", "<>", "<", ">="))
        forms: list[Callable[[], str]] = [
            lambda: f"{number} {compared} {constant}",
            lambda: f"{number} {compared} {self._of(names, 'INTEGER')}",
            lambda: f"{any_} IS {negated}NULL",
            lambda: f"{self.random.choice(names.own)}.id IS {negated}NULL",
            lambda: f"COALESCE({number}, {constant}) {compared} {self.random.randint(0, 3)}",
            lambda: f"{number} IS {negated}DISTINCT FROM {constant}",
            lambda: f"{number} {negated}IN ({constant}, {constant + 2})",
            lambda: f"{number} {negated}BETWEEN 0 AND {constant}",
            lambda: f"{negated}{flag}",
            lambda: f"{flag} IS {negated}TRUE",
            lambda: f"({number} > {constant}) IS {negated}UNKNOWN",
            lambda: f"{text} {negated}LIKE 'a%'",
            lambda: f"{text} || 'x' < 'c'",
            lambda: f"{self._of(names, 'DOUBLE')} {compared} {constant}",
            lambda: (
                f"{self.random.choice(names.own)}.id {compared} {self.random.choice(('30', '99999999999999999999'))}"
            ),
        ]
        if depth > 0:
            forms += [
                lambda: f"({self._condition(names, 0)} AND {self._condition(names, 0)})",
                lambda: f"({self._condition(names, 0)} OR {self._condition(names, 0)})",
                lambda: f"NOT ({self._condition(names, 0)})",
                lambda: f"CASE WHEN {self._condition(names, 0)} THEN {self._condition(names, 0)} ELSE {flag} END",
            ]
        return self.random.choice(forms)()

    def _nested(self, names: Names) -> str:
        """A condition with a sub-query, which may stand beside another or be a value."""
        nested = self._subquery(names)
        return self.random.choice(
            (nested, nested, f"({nested} OR {self._condition(names)})", f"({nested}) IS NOT TRUE", f"NOT ({nested})")
        )

    def _subquery(self, names: Names) -> str:
        source, inner = self._from(names.own, most=2)
        outer, own = self._of(Names(names.own), "INTEGER"), self._of(Names(inner.own), "INTEGER")
        negated = self.random.choice(("", "NOT "))
        where = f"WHERE {inner.own[0]}.grp = {self.random.choice(names.own)}.grp AND {self._condition(inner)}"
        return self.random.choice(
            (
                f"{negated}EXISTS (SELECT 1 FROM {source} {where})",
                f"{outer} {negated}IN (SELECT {own} FROM {source} {where})",
                f"{outer} {negated}IN (SELECT {own} FROM {source})",
                f"{outer} < (SELECT SUM({self._number(Names(inner.own))}) FROM {source} {where})",
            )
        )

    def _where(self, names: Names) -> str:
        if self._chance(0.5):
            return ""
        condition = self._nested(names) if self._chance(0.3) else self._condition(names)
        return f" WHERE {condition}"

    # Aggregates

    def _call(self, names: Names) -> str:
        """A call whose value is a number, a truth value or a text that does not depend on the order of rows."""
        filter_ = f" FILTER (WHERE {self._condition(names)})" if self._chance(0.3) else ""
        distinct = "DISTINCT " if self._chance(0.2) else ""
        number, text = self._number(names), self._of(names, "VARCHAR")
        whole = self.random.choice(("COUNT", "SUM", "MIN", "MAX", "AVG"))
        call = self.random.choice(
            (
                "COUNT(*)",
                f"{self.random.choice(('COUNT', 'SUM', 'MAX'))}({self.random.randint(1, 3)})",
                f"{whole}({distinct}{number})",
                f"{whole}({distinct}{number})",
                f"{whole}({distinct}{number})",
                f"{whole}({self._of(names, 'DOUBLE')})",
                f"SUM(COALESCE({self._of(names, 'DECIMAL(10, 2)')}, 1.25))",
                f"SUM({self._of(names, 'DECIMAL(10, 2)')})",
                f"{self.random.choice(('BOOL_OR', 'BOOL_AND'))}({self._condition(names)})",
                f"{self.random.choice(('BIT_OR', 'BIT_AND', 'BIT_XOR'))}({number})",
                f"COUNT({distinct}{text})",
                f"MAX(CONCAT({text}, '!'))",
                f"STRING_AGG({distinct}{text}, ',' ORDER BY {text})",
                f"COUNT({self._condition(names)})",
                f"COUNT({self.random.choice(names.own)}.id)",
                f"QUANTILE_DISC({number}, 0.5)",
            )
        )
        return call + filter_

    # FROM

    def _relation(self) -> tuple[str, str]:
        """Its text and its alias; it has all columns."""
        name, other = self.random.choices(MAPS, k=2)
        alias, first, second = (self._alias() for _ in range(3))
        if self._chance(0.7):
            return f"{name} {alias}", alias
        condition = self._condition(Names((first,)))
        groups = (
            "grp, MAX(id) AS id, MIN(cust) AS cust, COUNT(*)::INTEGER AS amount, SUM(price) AS price, "
            "MAX(share) AS share, MIN(label) AS label, BOOL_OR(flag) AS flag"
        )
        both = self._condition(Names((first, second)))
        on, once = f"{first}.grp = {second}.grp AND {both}", f"{first}.id = {second}.id AND {both}"
        kind, outer = self.random.choice(("SEMI", "ANTI")), self.random.choice(("RIGHT", "FULL"))
        direction = self.random.choice(("", " DESC"))
        query = self.random.choice(
            (
                f"SELECT * FROM {name} {first} WHERE {condition}",
                f"SELECT * FROM {name} {first} WHERE {condition}",
                f"SELECT {groups} FROM {name} GROUP BY grp",
                f"SELECT {first}.* FROM {name} {first} {kind} JOIN {other} {second} ON {on}",
                f"SELECT * FROM {name} {first} ORDER BY id{direction} LIMIT {self.random.randint(1, 60)}",
                f"SELECT * FROM {name} WHERE id < 30 UNION ALL SELECT * FROM {other} {first} WHERE {condition}",
                f"SELECT DISTINCT ON (grp) * FROM {name} ORDER BY grp, id",
                f"SELECT {first}.* FROM {name} {first} {outer} JOIN {other} {second} ON {once}",
                f"SELECT {second}.* FROM {name} {first} LEFT JOIN {other} {second} ON {once}",
            )
        )
        return f"({query}) {alias}", alias

    def _from(self, outer: tuple[str, ...] = (), most: int = 3) -> tuple[str, Names]:
        text, alias = self._relation()
        names = [alias]
        for _ in range(self.random.choice((1, 1, 1, 2)) if most > 2 else self.random.choice((0, 1))):
            right, added = self._relation()
            kind = self.random.choice(("LEFT", "LEFT", "LEFT", "RIGHT", "FULL", "INNER", "SEMI", "ANTI"))
            both = Names((*names, added))
            parts = [f"{self.random.choice(names)}.grp = {added}.grp"]
            if self._chance(0.15):
                parts = [f"{self.random.choice(names)}.id = {added}.{self.random.choice(('id', 'grp'))}"]
            if self._chance(0.3):
                parts.append(self._condition(both))
            if self._chance(0.15):
                parts.append(f"{self.random.choice(names)}.cust = {added}.cust")
            if self._chance(0.1):
                parts = [f"{self.random.choice(names)}.id = {added}.grp + {self.random.randint(0, 2)}"]
            text += f" {kind} JOIN {right} ON {' AND '.join(parts)}"
            if kind not in {"SEMI", "ANTI"}:
                names.append(added)
        return text, Names(tuple(names), outer)

    # Queries

    def _key(self, names: Names) -> str:
        column = f"{self.random.choice(names.own)}.{self.random.choice(('grp', 'cust', 'cust', 'id', 'label', 'flag'))}"
        if self._chance(0.15):
            return self.random.choice((f"COALESCE({self._of(names, 'INTEGER')}, -9)", f"({column} IS NULL)"))
        return column

    def _grouped(self) -> str:
        source, names = self._from()
        keys = [self._key(names) for _ in range(self.random.choice((0, 1, 1, 1, 2)))]
        # Aggregates of one relation alone may be computed below the join.
        asked = Names((self.random.choice(names.own),)) if self._chance(0.7) else names
        calls = [self._call(asked) for _ in range(self.random.choice((1, 1, 2, 3)))]
        items = ", ".join(f"{item} AS c{place}" for place, item in enumerate((*keys, *calls)))
        listed = ", ".join(keys)
        having = f" HAVING {self._having(names, keys)}" if self._chance(0.25) else ""
        if not keys:
            return f"SELECT {items} FROM {source}{self._where(names)}{having}"
        grouping = self.random.choice((listed, listed, listed, f"ROLLUP ({listed})", f"GROUPING SETS (({listed}), ())"))
        return f"SELECT {items} FROM {source}{self._where(names)} GROUP BY {grouping}{having}"

    def _having(self, names: Names, keys: list[str]) -> str:
        asked = [f"{key} IS NULL" for key in keys]
        asked += [f"{key} <> 99999999999999999999" for key in keys if key.endswith((".id", ".grp", ".cust"))]
        return self.random.choice(
            (
                *asked,
                "COUNT(*) > 1",
                f"COUNT({self._number(names)}) = 0",
                f"SUM({self._number(names)}) IS NULL",
                f"MAX({self._number(names)}) >= 1",
                f"BOOL_OR({self._condition(names)})",
            )
        )

    def _grouped_twice(self) -> str:
        """Groups joined with something and grouped again."""
        source, names = self._from(most=2)
        key, alias = f"{names.own[0]}.grp", self._alias()
        inner = f"SELECT {key} AS k, {self._call(names)} AS v, COUNT(*) AS n FROM {source} GROUP BY {key}"
        other, added = self._relation()
        kind = self.random.choice(("LEFT", "RIGHT", "FULL", "INNER"))
        call = self.random.choice(
            (
                f"COUNT({alias}.v)",
                f"SUM({alias}.n)",
                f"SUM(COALESCE({alias}.n, 1))",
                f"BOOL_OR({alias}.k IS NULL)",
                "COUNT(*)",
            )
        )
        group = self.random.choice((f"{added}.cust", f"{added}.label", f"{alias}.k"))
        joined = f"({inner}) {alias} {kind} JOIN {other} ON {alias}.k = {added}.grp"
        return f"SELECT {group} AS c0, {call} AS c1 FROM {joined} GROUP BY {group}"

    def _windowed(self) -> str:
        source, names = self._from()
        key = self._key(names)
        call = self.random.choice((f"SUM({self._number(names)})", "COUNT(*)", f"MAX({self._number(names)})"))
        window = f"{call} OVER (PARTITION BY {key})"
        over = f"SELECT {key} AS c0, {window} AS c1, {self._number(names)} AS c2 FROM {source}{self._where(names)}"
        kept = self.random.choice(("", " WHERE c0 IS NULL", " WHERE c1 > 2", " WHERE c0 IS NOT NULL"))
        return f"SELECT c0, c1, c2 FROM ({over}) {self._alias()}{kept}"

    def _limited(self) -> str:
        """The order is total up to rows that are the same."""
        source, names = self._from()
        items = [f"{alias}.id" for alias in names.own] + [self._number(names)]
        columns = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))
        order = ", ".join(
            f"c{place}{self.random.choice(('', ' DESC', ' NULLS LAST'))}"
            for place in self.random.sample(range(len(items)), len(items))
        )
        offset = f" OFFSET {self.random.randint(1, 5)}" if self._chance(0.3) else ""
        limit = f"LIMIT {self.random.randint(1, 20)}{offset}"
        return f"SELECT {columns} FROM {source}{self._where(names)} ORDER BY {order} {limit}"

    def _valued(self) -> str:
        """An aggregate over joins for each row, which may have none."""
        name, alias = self.random.choice(MAPS), self._alias()
        source, names = self._from((alias,), most=2)
        key = self.random.choice(("grp", "grp", "id"))
        inner = Names(names.own)
        where = f"{names.own[0]}.grp = {alias}.{key}" + (f" AND {self._condition(inner)}" if self._chance(0.4) else "")
        having = f" HAVING {self._having(inner, [])}" if self._chance(0.3) else ""
        value = f"SELECT {self._call(inner)} FROM {source} WHERE {where}{having}"
        if self._chance(0.2):
            # One row by the key, or none.
            found, other = self._alias(), self.random.choice(MAPS)
            value = f"SELECT {self._number(Names((found,)))} FROM {other} {found} WHERE {found}.id = {alias}.{key}"
        missing = f"IS {self.random.choice(('', 'NOT '))}NULL"
        if self._chance(0.5):
            asked = f" WHERE ({value}) {missing}" if self._chance(0.3) else ""
            return f"SELECT {alias}.id AS c0, ({value}) AS c1 FROM {name} {alias}{asked}"
        lateral = self._alias()
        joined = f"LEFT JOIN LATERAL ({value}) AS {lateral} (v) ON {self._condition(Names((alias,)))}"
        asked = f" WHERE {lateral}.v {missing}" if self._chance(0.5) else ""
        return f"SELECT {alias}.id AS c0, {lateral}.v AS c1 FROM {name} {alias} {joined}{asked}"

    def _plain(self) -> str:
        source, names = self._from()
        distinct = self.random.choice(("", "DISTINCT "))
        tested = self._nested(names) if self._chance(0.3) else self._condition(names)
        items = [self._number(names), self._key(names), tested]
        columns = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))
        where = self._where(names)
        return f"SELECT {distinct}{columns} FROM {source}{where}"
