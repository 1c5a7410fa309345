"""Random statements that change the maps of `random_queries`: conditions, sources and values are random queries' own.

Every statement has one possible outcome: a row that is joined for an update meets one row, and new rows have keys of
their own.
"""

from __future__ import annotations

from tests.harness.random_queries import MAPS, Names
from tests.harness.wider_queries import WiderGenerator


class ChangeGenerator(WiderGenerator):
    def statement(self) -> str:
        make = self.random.choice(
            (
                self._update,
                self._update_rows,
                self._update_from,
                self._update_from_several,
                self._delete,
                self._delete_using,
                self._insert,
                self._insert_anyway,
            )
        )
        return make(self.random.choice(tuple(MAPS)))

    def _target(self, name: str) -> tuple[Names, str, str]:
        """What can be named of a map, and its columns that are no key."""
        _, first, second = MAPS[name]
        return Names(tuple(f"{name}.{column}" for column in MAPS[name])), first, second

    def _update(self, name: str) -> str:
        names, first, second = self._target(name)
        value = self.random.choice(
            (
                str(self.random.randint(0, 4)),
                "NULL",
                f"{second} + 1",
                f"CASE WHEN {self._condition(names, 0)} THEN {first} ELSE {second} END",
                f"(SELECT CAST(MAX(x.a) AS INTEGER) FROM u x WHERE x.id = {name}.id)",
            )
        )
        more = f", {second} = {first}" if self._chance(0.4) else ""
        return f"UPDATE {name} SET {first} = {value}{more}{self._where(names, 1)}"

    def _update_from(self, name: str) -> str:
        names, first, _ = self._target(name)
        other = self.random.choice([each for each in MAPS if each != name])
        both = Names((*names.own, f"s.{MAPS[other][1]}", "s.id"))
        condition = f"s.id = {name}.id AND {self._condition(both, 1)}"
        return f"UPDATE {name} SET {first} = s.{MAPS[other][1]} FROM {other} s WHERE {condition}"

    def _update_rows(self, name: str) -> str:
        """SET of rows: of values, and of a sub-query without commas or parentheses but its own."""
        names, first, second = self._target(name)
        other = self.random.choice(tuple(MAPS))
        _, one, two = MAPS[other]
        row = self.random.choice(
            (
                f"({second}, {first})",
                f"({self.random.randint(0, 4)}, NULL)",
                f"ROW ({first} + 1, CASE WHEN {self._condition(names, 0)} THEN {first} END)",
                f"(SELECT s.{one}, s.{two} + 1 FROM {other} s WHERE s.id = {name}.id)",
            )
        )
        return f"UPDATE {name} SET ({first}, {second}) = {row}{self._where(names, 1)}"

    def _update_from_several(self, name: str) -> str:
        """Each row of the map meets one pair of rows of the others."""
        names, first, second = self._target(name)
        one, two = (each for each in MAPS if each != name)
        left, right = f"s.{MAPS[one][1]}", f"r.{MAPS[two][2]}"
        both = Names((*names.own, left, right, "s.id"))
        source, condition = self.random.choice(
            (
                (f"{one} s, {two} r", f"s.id = {name}.id AND r.id = {name}.id"),
                (f"{one} s JOIN {two} r ON r.id = s.id", f"s.id = {name}.id"),
                (f"{one} s LEFT JOIN {two} r ON r.id = s.id AND {left} > 1", f"s.id = {name}.id"),
                (f"{one} s JOIN {two} r USING (id)", f"s.id = {name}.id"),
                (f"{one} s CROSS JOIN {two} r", f"s.id = {name}.id AND r.id = s.id"),
                (f"{one} s, {two} r JOIN {one} p ON p.id = r.id", f"s.id = {name}.id AND p.id = s.id"),
            )
        )
        assigned = self.random.choice(
            (f"{first} = {left}, {second} = {right}", f"({first}, {second}) = ({right}, {left})")
        )
        return f"UPDATE {name} SET {assigned} FROM {source} WHERE {condition} AND {self._condition(both, 1)}"

    def _delete(self, name: str) -> str:
        names, _, _ = self._target(name)
        return f"DELETE FROM {name} WHERE id < 3 + {self.random.randint(0, 9)} AND {self._condition(names, 2)}"

    def _delete_using(self, name: str) -> str:
        names, first, _ = self._target(name)
        other = self.random.choice([each for each in MAPS if each != name])
        both = Names((*names.own, "s.id"))
        return f"DELETE FROM {name} USING {other} s WHERE s.a = {name}.{first} AND {self._condition(both, 1)}"

    def _insert(self, name: str) -> str:
        """Rows behind those that are there."""
        offset = f"(SELECT COALESCE(MAX(id), 0) FROM {name})"
        query = f"SELECT DISTINCT m, n FROM ({self.query(1)}) AS q (m, n) ORDER BY m, n LIMIT 5"
        numbered = f"SELECT ROW_NUMBER() OVER (ORDER BY m, n) + {offset}, m % 5, n % 5 FROM ({query}) AS r (m, n)"
        return f"INSERT INTO {name} {numbered}"

    def _insert_anyway(self, name: str) -> str:
        """Rows whose keys may be there."""
        _, first, second = MAPS[name]
        rows = ", ".join(
            f"({key}, {self.random.randint(0, 4)}, NULL)"
            for key in self.random.sample(range(1, 15), self.random.randint(1, 5))
        )
        action = self.random.choice(
            (
                "DO NOTHING",
                f"(id) DO UPDATE SET {first} = excluded.{first}",
                f"(id) DO UPDATE SET {second} = {name}.{first} + excluded.{first} WHERE {name}.{first} > 1",
            )
        )
        return f"INSERT INTO {name} VALUES {rows} ON CONFLICT {action}"
