"""Random statements full of INTERVAL and typed literals, in WITH, in sub-queries and in changes of a table.

Every literal has a value of its own: two that change places change the answer, or what is stored.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

SETUP = (
    "CREATE TABLE m (id BIGINT, t TIMESTAMP, n BIGINT, PRIMARY KEY (id))",
    "INSERT INTO m VALUES (1, '2024-01-31 10:00:00', 1), (2, '2023-12-31 23:59:59', 2), (3, NULL, 3)",
    "INSERT INTO m VALUES (4, '2024-02-29 00:00:00', NULL), (5, '1969-07-20 20:17:40', 5)",
)
CONTENT = "SELECT id, t, n FROM m ORDER BY id"
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
EDGES = (
    *(0, 1, -1, 5, 15, 25, -25, 127, 32767, 2**31 - 1, -(2**31) + 1, 2**53 - 1, 2**53 + 1, -(2**53) - 1),
    *(2**63 - 1, -(2**63) + 1, 9007199254740995, 1234567890123456789),
)


class LiteralStatements:
    def __init__(self, random: Random) -> None:
        self.random = random
        self._numbers = count(1)

    # Values

    def interval(self) -> str:
        number, unit = next(self._numbers) % 97 + 1, self.random.choice(_UNITS)
        match self.random.randrange(5):
            case 0:
                return f"INTERVAL '{number} {unit.lower()}s'"
            case 1:
                return f"INTERVAL {number} {unit}"
            case 2:
                return f"INTERVAL '{number} days {number % 23}:{number % 59:02}:05'"
            case _:
                return f"INTERVAL '{number}' {unit}"

    def literal(self) -> str:
        day = f"{self.random.randint(1990, 2030)}-{self.random.randint(1, 12):02}-{self.random.randint(1, 28):02}"
        return self.random.choice(
            (
                f"TIMESTAMP '{day} 01:02:03'",
                f"DATE '{day}'::TIMESTAMP",
                f"TIMESTAMP '{day} 23:59:58'::DATE::TIMESTAMP",
                f"VARCHAR '{day} 10:00:00'::TIMESTAMP",
                f"CAST('{day}' AS TIMESTAMP)",
            )
        )

    def moment(self, names: tuple[str, ...], depth: int) -> str:
        choice = self.random.random()
        if depth <= 0 or choice < 0.2:
            return self.random.choice(names) if names and self.random.random() < 0.6 else self.literal()
        inner = self.moment(names, depth - 1)
        if choice < 0.75:
            return f"{inner} {self.random.choice('+-')} {self.interval()}"
        if choice < 0.85:
            return f"CASE WHEN {self.condition(names, depth - 1)} THEN {inner} ELSE {self.moment(names, 0)} END"
        if choice < 0.93:
            return f"(WITH w{depth} AS (SELECT {inner} AS t) SELECT t + {self.interval()} FROM w{depth})"
        return f"(SELECT max(s.t) + {self.interval()} FROM m AS s WHERE {self.condition(('s.t', *names), 1)})"

    def condition(self, names: tuple[str, ...], depth: int) -> str:
        one, other = self.moment(names, depth), self.moment(names, depth)
        return self.random.choice(
            (f"{one} < {other}", f"{one} >= {other}", f"{one} BETWEEN {other} AND {self.literal()}")
        )

    # Statements

    def query(self, depth: int = 2) -> str:
        """A query of the columns id and t."""
        match self.random.randrange(6) if depth > 0 else 0:
            case 0 | 1:
                where = f" WHERE {self.condition(('m.t',), 1)}" if self.random.random() < 0.5 else ""
                return f"SELECT id, {self.moment(('m.t',), 2)} AS t FROM m{where}"
            case 2:
                inner, outer = self.query(depth - 1), self.moment(("c.t",), 1)
                return f"WITH c AS ({inner}) SELECT c.id, {outer} AS t FROM c WHERE {self.condition(('c.t',), 1)}"
            case 3:
                first, second = self.query(depth - 1), self.moment(("c.t",), 1)
                return (
                    f"WITH c AS ({first}), d AS (SELECT c.id, {second} AS t FROM c) "
                    f"SELECT d.id, {self.moment(('c.t', 'd.t'), 2)} AS t FROM c JOIN d ON c.id = d.id"
                )
            case 4:
                return f"SELECT q.id, {self.moment(('q.t',), 1)} AS t FROM ({self.query(depth - 1)}) AS q"
            case _:
                common = f"WITH e AS (SELECT {self.moment(('o.t',), 1)} AS t)"
                exists = f"EXISTS ({common} SELECT 1 FROM e WHERE e.t < {self.literal()})"
                return f"SELECT o.id, {self.moment(('o.t',), 1)} AS t FROM m AS o WHERE {exists} OR o.id > 3"

    def change(self) -> str:
        """A statement that stores values of t."""
        match self.random.randrange(4):
            case 0:
                key = (next(self._numbers) + 1000) * 100
                rows = f"SELECT id + {key}, {self.moment(('c.t',), 1)}, 0 FROM c"
                return f"INSERT INTO m WITH c AS ({self.query(1)}) {rows}"
            case 1:
                return f"UPDATE m SET t = {self.moment(('t',), 2)} WHERE {self.condition(('t',), 1)}"
            case 2:
                start = self.moment((), 1)
                return (
                    f"WITH c AS (SELECT {start} AS x) UPDATE m SET t = {self.moment(('x', 't'), 1)} FROM c WHERE id < 4"
                )
            case _:
                return f"DELETE FROM m WHERE id > 1000 AND {self.condition(('t',), 1)}"

    def arithmetic(self) -> str:
        """A function of whole numbers whose exact value both engines know."""
        value = self.random.choice(EDGES)
        other = self.random.choice([edge for edge in EDGES if edge])
        operand = f"CAST({value} AS BIGINT)" if self.random.random() < 0.7 else f"CAST({value} AS DECIMAL(25, 0))"
        digits = self.random.randint(-20, 3)
        return self.random.choice(
            (
                *(
                    f"round({operand}, {digits})",
                    f"trunc({operand}, {digits})",
                    f"round({operand})",
                    f"trunc({operand})",
                ),
                *(f"abs({operand})", f"sign({operand})", f"mod({operand}, {other})", f"{operand} % {other}"),
                *(f"gcd({value}, {other})", f"greatest({operand}, {other})", f"least({operand}, {other})"),
                *(f"{operand} + {self.random.randint(-9, 9)}", f"- {operand}"),
                *(f"CAST({value} AS BIGINT) // {other}", f"CAST({value} AS BIGINT) & {other}"),
            )
        )
