"""Random aggregates that depend on an order: quantiles from both ends, first values, joined texts, in many groupings.

The maps have a column of each kind, with NULLs and many equal values. An order that ends with the unique `id` is total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

TYPES = {
    "i": "INTEGER",
    "l": "BIGINT",
    "x": "DOUBLE",
    "n": "DECIMAL(8, 2)",
    "s": "VARCHAR",
    "d": "DATE",
    "z": "TIMESTAMP",
    "w": "BOOLEAN",
}
NUMBERS = ("i", "l", "x")
FRACTIONS = ("0", "1", "0.5", "0.25", "0.75", "0.1", "0.07", "0.9", "0.3333", "1.0", "0.01", "5e-1")
LONG, SHORT = 40, 4


def definitions(random: Random) -> Iterator[str]:
    """Map r of many rows, map e of few: groups of one row, and of none."""
    columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    for name, count in (("r", LONG), ("e", SHORT)):
        yield f"CREATE TABLE {name} (id INTEGER, g INTEGER, h INTEGER, {columns}, PRIMARY KEY (id))"
        rows = ", ".join(_row(random, number) for number in range(count))
        yield f"INSERT INTO {name} VALUES {rows}"


def _row(random: Random, number: int) -> str:
    values = (_value(random, type_) for type_ in TYPES.values())
    return f"({number}, {_value(random, 'INTEGER')}, {_value(random, 'INTEGER')}, {', '.join(values)})"


def _value(random: Random, type_: str) -> str:
    if random.random() < 0.2:
        return "NULL"
    number = random.randint(-2, 4)
    match type_:
        case "DOUBLE":
            return f"{number * 0.75}e0"
        case "DECIMAL(8, 2)":
            return f"{number}.{random.choice(('00', '25', '99'))}"
        case "VARCHAR":
            return "'" + random.choice(("", "a", "b", "ab", "B", "\u00e9")) + "'"
        case "DATE":
            return f"DATE '2024-02-{10 + number}'"
        case "TIMESTAMP":
            return f"TIMESTAMP '2024-02-{10 + number} 10:00:00'"
        case "BOOLEAN":
            return random.choice(("TRUE", "FALSE"))
        case _:
            return str(number)


class AggregateGenerator:
    def __init__(self, random: Random) -> None:
        self.random = random

    def query(self) -> str:
        """One whose rows are compared without regard to their order."""
        name = self.random.choice(("r", "r", "r", "e"))
        joined = f"{name} JOIN e AS f (fid) ON fid <= {name}.g", f"e AS f (fid) RIGHT JOIN {name} ON fid = {name}.h"
        source = self.random.choice((name, *joined))
        total = f"{name}.id" if source == name else f"{name}.id, fid"
        self._names = [f"{name}.{column}" for column in TYPES]
        keys, groups = self._groups(name)
        where = self.random.choice(("", "", f" WHERE {name}.i > 0", f" WHERE {name}.s IS NOT NULL", " WHERE FALSE"))
        calls = [self._call(total) for _ in range(self.random.randint(1, 3))]
        having = self.random.choice(("", "", " HAVING COUNT(*) > 2", f" HAVING {self._call(total)} IS NOT NULL"))
        if "(" in groups and self._chance(0.4):
            calls.append(f"GROUPING({', '.join(keys)})")
            by_sets = f" HAVING GROUPING({keys[0]}) = 0", f" HAVING GROUPING({keys[-1]}) + COUNT(*) > 1"
            having = self.random.choice((having, *by_sets))
        selected = ", ".join([*keys, *calls])
        ordered = f" ORDER BY {selected}" if "(" in groups and self._chance(0.2) else ""
        return f"SELECT {selected} FROM {source}{where}{groups}{having}{ordered}"

    def _groups(self, name: str) -> tuple[list[str], str]:
        one, two = f"{name}.g", f"{name}.h"
        return self.random.choice(
            (
                ([], ""),
                ([one], f" GROUP BY {one}"),
                ([one, two], f" GROUP BY {one}, {two}"),
                ([one], f" GROUP BY ROLLUP ({one})"),
                ([one, two], f" GROUP BY CUBE ({one}, {two})"),
                ([one, two], f" GROUP BY GROUPING SETS (({one}, {two}), ({two}), ())"),
            )
        )

    def _call(self, total: str) -> str:
        column, other = self.random.choices(self._names, k=2)
        number = self.random.choice([name for name in self._names if name[-1] in NUMBERS])
        fraction, direction = self.random.choice(FRACTIONS), self._direction()
        distinct = self.random.choice(("", "", "DISTINCT "))
        backwards = f"ORDER BY {total.replace(',', ' DESC,')} DESC"
        order = f"ORDER BY {other}{self._direction()}, {total}" if self._chance(0.6) else backwards
        sortable = column if column[-1] != "w" else number  # DuckDB has no quantile of truth values
        written = column if column[-1] != "x" else other.replace(".x", ".s")  # and writes 3.0 where PostgreSQL writes 3
        call = self.random.choice(
            (
                f"percentile_disc({fraction}) WITHIN GROUP (ORDER BY {sortable}{direction})",
                f"percentile_cont({fraction}) WITHIN GROUP (ORDER BY {number}{direction})",
                f"quantile_disc({distinct}{sortable}, {fraction} ORDER BY {sortable}{direction})",
                f"quantile_cont({distinct}{number}, {fraction} ORDER BY {number}{direction})",
                f"quantile_disc({distinct}{sortable}, {fraction})",
                f"quantile_cont({distinct}{number}, {fraction})",
                f"median({distinct}{number} ORDER BY {number}{direction})",
                f"any_value({column} {order})",
                f"first({column} {order})",
                f"last({column} {order})",
                f"mode({column} {order})",
                f"arg_min({column}, {number} {order})",
                f"arg_max({column}, {number} {order})",
                f"string_agg(CAST({written} AS VARCHAR), '|' {order})",
                f"max({number} {order})",
                f"count({distinct}{column})",
            )
        )
        condition = self.random.choice((f"{other} IS NOT NULL", f"{number} > 0", f"{column} = {column}"))
        return f"{call} FILTER (WHERE {condition})" if self._chance(0.25) else call

    def _direction(self) -> str:
        return self.random.choice(("", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST"))

    def _chance(self, probability: float) -> bool:
        return self.random.random() < probability
