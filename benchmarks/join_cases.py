"""The joins that `join_orders` measures, and the maps that they read.

Half of the references of `every` and of `orders` go to a few buyers; the other maps are even. A case with parameters
runs as it is and with its values written out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks import access_paths
from benchmarks.access_paths import FIRST_DAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import remuda

MAPS = (
    "CREATE TABLE buyers (number INTEGER, grade INTEGER, zone INTEGER, PRIMARY KEY (number))",
    "CREATE TABLE zones (zone INTEGER, name VARCHAR, PRIMARY KEY (zone))",
    "CREATE TABLE visits (id BIGINT, buyer INTEGER, day INTEGER, PRIMARY KEY (id))",
    "CREATE INDEX visits_buyer ON visits (buyer) TYPE HASH",
    "CREATE TABLE days (day DATE, month INTEGER, year INTEGER, PRIMARY KEY (day))",
    "CREATE TABLE regions (region VARCHAR, manager VARCHAR, PRIMARY KEY (region))",
    "CREATE TABLE orders (id BIGINT, buyer INTEGER, total DOUBLE, PRIMARY KEY (id))",
    "CREATE INDEX orders_buyer ON orders (buyer) TYPE SORTED",
    "CREATE INDEX orders_total ON orders (total) TYPE SORTED",
    "CREATE TABLE parcels (id BIGINT, order_id BIGINT, weight DOUBLE, PRIMARY KEY (id))",
    "CREATE INDEX parcels_order ON parcels (order_id) TYPE HASH",
)
BUYERS, ZONES, DAYS = 100_000, 50, 1_800
REGIONS = {"EMEA": "Ada", "AMER": "Ben", "LATAM": "Cleo", "APAC": "Dan"}


@dataclass(frozen=True, slots=True)
class Join:
    name: str
    relations: Mapping[str, str]
    """Of each alias the map; any order of them is a forced one."""
    conditions: tuple[str, ...]
    """Equalities between two aliases."""
    filter: str = "TRUE"
    values: tuple[Any, ...] = ()
    calls: str = "COUNT(*)"
    beside: str = ""
    """Outer joins, which stay behind the others."""
    tail: str = ""
    """What follows the filter: groups, an order, a limit."""

    def text(self) -> str:
        found = self.ordered()
        assert found is not None, self.name
        return found

    def ordered(self, order: Sequence[str] | None = None) -> str | None:
        """Return the statement with the relations in an order; None where one of them would meet no condition."""
        first, *others = order or tuple(self.relations)
        clauses, joined, left = [f"{self.relations[first]} AS {first}"], {first}, list(self.conditions)
        for alias in others:
            joined.add(alias)
            own = [each for each in left if _aliases(each) <= joined]
            if not own:
                return None
            left = [each for each in left if each not in own]
            clauses.append(f"{self.relations[alias]} AS {alias} ON {' AND '.join(own)}")
        return f"SELECT {self.calls} FROM {' JOIN '.join(clauses)} {self.beside} WHERE {self.filter} {self.tail}"

    def with_literals(self) -> Join:
        """Return the same with its values written out."""
        values = iter(self.values)

        def written(text: str) -> str:
            parts = text.split("?")
            return parts[0] + "".join(_literal(next(values)) + part for part in parts[1:])

        return replace(self, filter=written(self.filter), values=())


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _aliases(condition: str) -> set[str]:
    return {side.split(".")[0] for side in condition.split(" = ")}


TWO = {"f": "every", "b": "buyers"}
OF_BUYER = ("f.cust = b.number",)
VISITED = {"v": "visits", "b": "buyers"}
BY_BUYER = ("v.buyer = b.number",)
SENT = {"p": "parcels", "o": "orders"}
OF_ORDER = ("p.order_id = o.id",)
ORDERED = "o.buyer = b.number"
STAR = TWO | {"d": "days"}
IN_STAR = (*OF_BUYER, "f.made = d.day")
CHAIN = {**SENT, "b": "buyers", "z": "zones"}
IN_CHAIN = (*OF_ORDER, ORDERED, "b.zone = z.zone")
ITSELF = {"f": "every", "g": "every"}
BOTH_SUMS = "COUNT(f.note), SUM(b.grade)"


def _each(name: str, given: Mapping[str, tuple[Any, ...]], join: Join) -> Iterator[Join]:
    """Yield the join with each of these values."""
    for which, values in given.items():
        yield replace(join, name=f"{name}, {which}", values=values)


def joins() -> Iterator[Join]:
    """Yield every case once."""
    yield from _two_way()
    yield from _several()
    yield from _tested()
    yield from _outer()
    yield from _grouped()
    yield from _first_rows()


def _two_way() -> Iterator[Join]:
    regions = {"rare": ("APAC",), "one in twenty": ("LATAM",), "frequent": ("EMEA",)}
    yield from _each("a region", regions, Join("", TWO, OF_BUYER, "f.region = ?", calls=BOTH_SUMS))
    yield Join("buyers who buy often", TWO, OF_BUYER, "b.number < 3", calls="COUNT(f.note)")
    yield Join("buyers who buy seldom", TWO, OF_BUYER, "b.number BETWEEN 40000 AND 40100", calls="COUNT(f.note)")
    yield Join("a fifth of the buyers", TWO, OF_BUYER, "b.grade = 2", calls="SUM(f.amount)")
    yield Join("by the keys of both", {"f": "every", "v": "visits"}, ("f.id = v.id",), "v.day < 3", (), "SUM(f.amount)")
    yield Join("with itself", ITSELF, ("f.cust = g.cust",), "f.qty > 24 AND g.amount > 600")
    yield from _each(
        "ranges of both",
        {"many and few": (1.0, 500, 520), "few and many": (900.0, 10, 90_000), "few and few": (900.0, 10, 30)},
        Join("", TWO, OF_BUYER, "f.amount > ? AND b.number BETWEEN ? AND ?", calls=BOTH_SUMS),
    )
    skewed = Join(
        "", {"f": "every", "o": "orders"}, ("f.cust = o.buyer",), "f.id BETWEEN ? AND ?", calls="SUM(o.total)"
    )
    yield from _each("skewed both", {"20 rows": (100, 120), "200 rows": (300, 500)}, skewed)
    yield Join("few values, many keys", {"o": "orders", "g": "orders"}, ("o.buyer = g.id",), "g.total > 300")
    named = Join("", {"f": "every", "r": "regions"}, ("f.region = r.region",), "r.manager = ?", calls="SUM(f.amount)")
    yield from _each("by a text", {"rare": ("Dan",), "frequent": ("Ada",)}, named)
    held = Join("", SENT, OF_ORDER, "p.weight > ? AND o.total > ?", calls="SUM(p.weight)")
    yield from _each("orders and parcels", {"both few": (9.99, 500.0), "few": (9.99, 0.0), "all": (0.0, 0.0)}, held)


def _several() -> Iterator[Join]:
    row, chain = TWO | {"z": "zones"}, (*OF_BUYER, "b.zone = z.zone")
    yield Join("three in a row", row, chain, "z.name = 'zone 7'", calls="SUM(f.qty)")
    yield from _each(
        "two facts of one buyer",
        {"few": (17, 400), "many": (17, 5), "few and few": (3, 900)},
        Join(
            "",
            TWO | {"v": "visits"},
            (*OF_BUYER, *BY_BUYER),
            "v.day = ? AND f.amount > ?",
            (),
            "COUNT(*), SUM(b.grade)",
        ),
    )
    yield Join("star of three", STAR, IN_STAR, "d.month = 5 AND b.grade = 1", calls="SUM(f.qty)")
    yield from _each(
        "star of three, one day",
        {"half of the buyers": (50_000,), "few buyers": (99_000,)},
        Join("", STAR, IN_STAR, "d.day = DATE '2021-03-04' AND b.number > ?", calls="SUM(f.qty)"),
    )
    yield from _each(
        "star of four",
        {"rare": ("Dan", 5), "frequent": ("Ada", 5)},
        Join(
            "",
            STAR | {"r": "regions"},
            (*IN_STAR, "f.region = r.region"),
            "r.manager = ? AND d.month = ?",
            calls="SUM(f.qty), SUM(b.grade)",
        ),
    )
    yield from _each(
        "chain of four",
        {"from its end": ("zone 7", 0.0), "from its head": ("zone 7", 9.999)},
        Join("", CHAIN, IN_CHAIN, "z.name = ? AND p.weight > ?", calls="SUM(p.weight)"),
    )
    yield Join("chain of four, from within", CHAIN, IN_CHAIN, "o.total > 900", calls="COUNT(*), MAX(z.name)")


def _tested() -> Iterator[Join]:
    of_visitors = "f.cust IN (SELECT v.buyer FROM visits AS v WHERE v.day BETWEEN ? AND ?)"
    days = {"few": (17, 17), "many": (0, 300)}
    yield from _each("IN", days, Join("", {"f": "every"}, (), of_visitors, calls="SUM(f.amount)"))
    rare = f"{of_visitors} AND f.region = 'APAC'"
    yield from _each("IN, of few", days, Join("", {"f": "every"}, (), rare, calls="SUM(f.amount)"))
    bought = "EXISTS (SELECT 1 FROM every AS f WHERE f.cust = b.number AND f.amount > ?) AND b.grade = 1"
    yield from _each("EXISTS", {"few": (900.0,), "many": (2.0,)}, Join("", {"b": "buyers"}, (), bought))
    never = "NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.buyer = b.number) AND b.number < ?"
    yield from _each("NOT EXISTS", {"few": (30,), "many": (90_000,)}, Join("", {"b": "buyers"}, (), never))
    unordered = "f.region = ? AND NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.buyer = f.cust)"
    yield from _each(
        "NOT EXISTS, skewed", {"rare": ("APAC",), "frequent": ("AMER",)}, Join("", {"f": "every"}, (), unordered)
    )
    yield Join(
        "IN beside a join",
        TWO,
        OF_BUYER,
        "b.zone IN (SELECT z.zone FROM zones AS z WHERE z.name LIKE '%7') AND f.amount > 300",
        calls="SUM(f.qty)",
    )


def _outer() -> Iterator[Join]:
    visited = "LEFT JOIN visits AS v ON v.buyer = b.number"
    some = Join("", {"b": "buyers"}, (), "b.number BETWEEN ? AND ?", calls="COUNT(*), SUM(v.day)", beside=visited)
    yield from _each("LEFT", {"few": (100, 120), "many": (0, 90_000)}, some)
    skewed = "LEFT JOIN orders AS o ON o.buyer = b.number AND o.total > 100"
    outer = Join("", VISITED, BY_BUYER, "v.day = ?", calls="COUNT(*), SUM(o.total)", beside=skewed)
    yield from _each("LEFT of a join", {"few": (17,)}, outer)
    counted = (
        "LEFT JOIN (SELECT v.buyer, COUNT(*) AS visits FROM visits AS v GROUP BY v.buyer) AS c ON c.buyer = b.number"
    )
    groups = Join("", {"b": "buyers"}, (), "b.number < ?", calls="SUM(c.visits)", beside=counted)
    yield from _each("LEFT of groups", {"few": (50,), "many": (90_000,)}, groups)
    full = "FULL JOIN visits AS v ON v.id = o.id"
    yield Join("FULL", {"o": "orders"}, (), calls="COUNT(*), COUNT(v.id)", beside=full)


def _grouped() -> Iterator[Join]:
    yield Join("groups of few", TWO, OF_BUYER, calls="b.grade, SUM(f.amount)", tail="GROUP BY b.grade")
    by_number = Join("", TWO, OF_BUYER, "b.zone < ?", calls="b.number, COUNT(*), SUM(f.qty)", tail="GROUP BY b.number")
    yield from _each("groups by the key", {"few": (1,), "many": (40,)}, by_number)
    of_zone = Join(
        "",
        TWO | {"z": "zones"},
        (*OF_BUYER, "b.zone = z.zone"),
        "f.qty > ?",
        calls="z.name, COUNT(*), SUM(f.amount)",
        tail="GROUP BY z.name",
    )
    yield from _each("groups of a chain", {"few": (20,), "many": (1,)}, of_zone)
    yield Join(
        "groups by a text", STAR, IN_STAR, "d.year = 2021", (), "f.region, SUM(b.grade)", tail="GROUP BY f.region"
    )


def _first_rows() -> Iterator[Join]:
    by_amount = "ORDER BY f.amount DESC LIMIT 10"
    graded = Join("", TWO, OF_BUYER, "b.grade = ?", calls="f.id, f.amount, b.zone", tail=by_amount)
    yield from _each("first, half", {"frequent": (2,)}, graded)
    numbered = replace(graded, filter="b.number BETWEEN ? AND ?")
    yield from _each("first, range", {"rare": (40_000, 40_002), "some": (4_000, 6_000), "all": (0, 99_999)}, numbered)
    named = replace(
        graded,
        relations=TWO | {"z": "zones"},
        conditions=(*OF_BUYER, "b.zone = z.zone"),
        filter="z.name = ?",
    )
    yield from _each("first of a chain", {"one in fifty": ("zone 7",)}, named)
    heavy = Join("", SENT, OF_ORDER, "p.weight > ?", (), "o.id, o.total, p.id", tail="ORDER BY o.total DESC LIMIT 10")
    yield from _each("first of orders", {"few": (9.999,), "many": (1.0,)}, heavy)
    last = Join("", TWO, OF_BUYER, "f.region = ?", (), "f.id, b.grade", tail="ORDER BY f.id LIMIT 20")
    yield from _each("first by key", {"rare": ("APAC",), "frequent": ("EMEA",)}, last)


def fill(grid: remuda.Grid, rows: int) -> None:
    access_paths.fill_map(grid, "every", access_paths.table(rows), access_paths.INDEXES)
    for text in MAPS:
        grid.sql(text)
    numbers = np.arange(BUYERS, dtype=np.int32)
    grid.load("buyers", pa.table({"number": numbers, "grade": numbers % 5, "zone": numbers % ZONES}))
    zones = np.arange(ZONES, dtype=np.int32)
    grid.load("zones", pa.table({"zone": zones, "name": [f"zone {number}" for number in zones.tolist()]}))
    grid.load("regions", pa.table({"region": list(REGIONS), "manager": list(REGIONS.values())}))
    random = np.random.default_rng(29)
    visits, orders, parcels = (max(1, int(rows * share)) for share in (0.2, 0.3, 0.6))
    grid.load(
        "visits",
        pa.table(
            {
                "id": np.arange(visits) * 3,
                "buyer": random.integers(0, BUYERS, visits).astype(np.int32),
                "day": random.integers(0, 365, visits).astype(np.int32),
            }
        ),
    )
    numbers = np.arange(DAYS, dtype=np.int32)
    days = pa.array(numbers + FIRST_DAY.toordinal() - 719_163, pa.int32()).view(pa.date32())
    grid.load("days", pa.table({"day": days, "month": numbers // 30 % 12, "year": 2020 + numbers // 360}))
    grid.load(
        "orders",
        pa.table(
            {
                "id": np.arange(orders),
                "buyer": np.minimum(random.zipf(1.2, orders) - 1, BUYERS - 1).astype(np.int32),
                "total": random.exponential(100.0, orders),
            }
        ),
    )
    grid.load(
        "parcels",
        pa.table(
            {
                "id": np.arange(parcels),
                "order_id": random.integers(0, orders, parcels),
                "weight": random.random(parcels) * 10,
            }
        ),
    )
