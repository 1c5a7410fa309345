"""Random joins of few rows with a large indexed map: skewed references, NULL and NaN keys, keys without a match.

Half of the rows of `big` have one value, so that one left row can have thousands of matches and the next one none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

ROWS = 3_000
FEW = 120
CONDITIONS = (
    "b.a = p.k",
    "b.a = p.k",
    "b.s = p.t",
    "b.x = p.y",
    "b.id = p.r",
    "b.a = p.k AND b.s = p.t",
    "b.a = p.k + 1",
)
"""What the two sides are joined by: most by an index, one by the key, one by an expression."""
INDEXES = (
    ("CREATE INDEX big_a ON big (a) TYPE HASH", "CREATE INDEX big_a ON big (a) TYPE SORTED"),
    ("CREATE INDEX big_s ON big (s) TYPE HASH", "CREATE INDEX big_s ON big (s) TYPE SORTED"),
    ("CREATE INDEX big_x ON big (x) TYPE HASH", "CREATE INDEX big_x ON big (x) TYPE SORTED"),
    ("CREATE INDEX big_as ON big (a, s) TYPE HASH", "CREATE INDEX big_as ON big (a, s) TYPE SORTED"),
)


def definitions(random: Random) -> Iterator[str]:
    by = random.choice(("", "", " PARTITION BY (part)"))
    key = "id" if not by else "id, part"
    columns = "id BIGINT, part INTEGER, a INTEGER, s VARCHAR, x DOUBLE, v INTEGER"
    yield f"CREATE TABLE big ({columns}, PRIMARY KEY ({key})){by}"
    yield "CREATE TABLE few (id BIGINT, k INTEGER, t VARCHAR, y DOUBLE, r BIGINT, w INTEGER, PRIMARY KEY (id))"
    for types in INDEXES:
        yield random.choice(types)


def contents(random: Random) -> Iterator[tuple[str, str]]:
    seed = random.randint(1, 1_000)
    draw = f"(hash(i * 31 + {seed} + %d) %% 1000003)::BIGINT"
    one, two, three = (draw % salt for salt in range(3))
    skewed = "CASE WHEN {0} % 17 = 0 THEN NULL WHEN {0} % 2 = 0 THEN 0 ELSE ({0} % 400)::INTEGER END"
    number = "CASE WHEN {0} % 13 = 0 THEN 'NaN'::DOUBLE WHEN {0} % 11 = 0 THEN NULL ELSE ({0} % 200) / 4.0 END"
    text = "CASE WHEN {0} % 19 = 0 THEN NULL WHEN {0} % 3 = 0 THEN '' ELSE 's' || ({0} % 300)::VARCHAR END"
    yield (
        "big",
        (
            f"SELECT i AS id, (i % 40)::INTEGER AS part, {skewed.format(one)} AS a, {text.format(two)} AS s,"
            f" {number.format(three)} AS x, ({two} % 100)::INTEGER AS v FROM range({ROWS}) AS r(i)"
        ),
    )
    yield (
        "few",
        (
            f"SELECT i AS id, {skewed.format(three)} AS k, {text.format(one)} AS t, {number.format(two)} AS y,"
            f" CASE WHEN {two} % 7 = 0 THEN NULL ELSE {one} % {ROWS * 2} END AS r, ({three} % 100)::INTEGER AS w"
            f" FROM range({FEW}) AS r(i)"
        ),
    )


class LookupQueries:
    def __init__(self, random: Random) -> None:
        self.random = random

    def query(self) -> tuple[str, list[int]]:
        """Return a query and the values of its parameters. It delivers left rows, with right ones or without."""
        values: list[int] = []
        few, on = self._few(values), self.random.choice(CONDITIONS)
        if self.random.random() < 0.3:
            on += f" AND b.v < {self.random.choice((0, 5, 50))}"
        if self.random.random() < 0.2:
            on += " AND b.v > p.w"
        if self.random.random() < 0.15:
            on += f" AND b.{self.random.choice(('a', 'v'))} IS NOT DISTINCT FROM p.k"
        match self.random.choice(("JOIN", "JOIN", "LEFT JOIN", "semi", "anti", "in", "mark", "reversed", "grouped")):
            case "semi":
                return f"SELECT p.* FROM {few} AS p WHERE EXISTS (SELECT 1 FROM big AS b WHERE {on})", values
            case "anti":
                return f"SELECT p.* FROM {few} AS p WHERE NOT EXISTS (SELECT 1 FROM big AS b WHERE {on})", values
            case "in":
                return f"SELECT p.* FROM {few} AS p WHERE p.k IN (SELECT b.a FROM big AS b WHERE b.v > p.w)", values
            case "mark":
                return f"SELECT p.id, p.k IN (SELECT b.a FROM big AS b) FROM {few} AS p", values
            case "reversed":
                column, own = self.random.choice(
                    (("id", "r"), ("a", "k"), ("s", "t"), ("x", "y"), ("id", "k"), ("x", "k"))
                )
                return f"SELECT b.* FROM big AS b WHERE b.{column} IN (SELECT p.{own} FROM {few} AS p)", values
            case "grouped":
                return f"SELECT p.id, COUNT(*), SUM(b.v) FROM {few} AS p JOIN big AS b ON {on} GROUP BY p.id", values
            case kind:
                return f"SELECT p.id, p.k, b.id, b.s, b.x FROM {few} AS p {kind} big AS b ON {on}", values

    def _few(self, values: list[int]) -> str:
        """Return a relation of few rows: how few is known from its key, a LIMIT, or not before it runs."""
        some = self.random.sample(range(FEW), 3)
        match self.random.randrange(6):
            case 0:
                values.append(some[0])
                return "(SELECT * FROM few WHERE id = ?)"
            case 1:
                return f"(SELECT * FROM few WHERE id IN ({', '.join(map(str, some))}))"
            case 2:
                return f"(SELECT * FROM few ORDER BY w, id LIMIT {self.random.choice((0, 1, 10, 40))})"
            case 3:
                return f"(SELECT * FROM few WHERE w < {self.random.choice((0, 3, 30, 100))})"
            case 4:
                rows = ", ".join(f"({each}, {each % 4}, 's{each}', {each}.5, {each * 7}, {each})" for each in some)
                return f"(SELECT * FROM (VALUES {rows}, (1, NULL, NULL, NULL, NULL, 9)) AS v(id, k, t, y, r, w))"
            case _:
                return "few"
