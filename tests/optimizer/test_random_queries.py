"""Random nested queries: each is planned, checked after every rule, the same with any number of members."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remuda.plan import physical
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from tests.optimizer.maps import define, plan

MAP = define("SORTED(a, b)", "HASH(b)", "SORTED(x)", key=("id", "c"), partitioned_by=("id",))
REPLICATED = define("SORTED(a)", replicated=True)
NUMBERS = ["id", "a", "b", "g", "x"]


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> tuple[str, list[str]]:
    """A query and the names of its columns, all of them numbers."""
    source, columns = "m", NUMBERS
    if depth and draw(st.booleans()):
        inner, columns = draw(queries(depth - 1))
        source = f"({inner}) AS t{depth}"
    column = st.sampled_from(columns)
    where = f" WHERE {draw(conditions(columns))}" if draw(st.booleans()) else ""
    if draw(st.integers(0, 3)) == 0:
        keys = draw(st.lists(column, max_size=2, unique=True))
        function = draw(st.sampled_from(["COUNT(*)", "SUM({})", "MIN({})", "COUNT(DISTINCT {})", "AVG({} + 1)"]))
        items = [*keys, f"CAST({function.format(draw(column))} AS DOUBLE) AS n{depth}"]
        names = [*keys, f"n{depth}"]
        rest = (f" GROUP BY {', '.join(keys)}" if keys else "") + draw(st.sampled_from(["", " HAVING COUNT(*) > 1"]))
    else:
        chosen = draw(st.lists(column, min_size=1, max_size=3, unique=True))
        shapes = draw(st.lists(st.sampled_from(["{}", "{0} AS {0}", "{0} + 1 AS {0}"]), min_size=3, max_size=3))
        items = [shape.format(name) for shape, name in zip(shapes, chosen, strict=False)]
        names, rest = chosen, ""
    distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
    order = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    directions = draw(st.lists(st.sampled_from(["", " DESC", " NULLS LAST"]), min_size=2, max_size=2))
    keys_of_order = [name + direction for name, direction in zip(order, directions, strict=False)]
    ordered = f" ORDER BY {', '.join(keys_of_order)}" if order else ""
    limited = draw(st.sampled_from(["", "", " LIMIT 5", " LIMIT ?", " OFFSET 3", " LIMIT 7 OFFSET 2", " LIMIT 0"]))
    return f"SELECT {distinct}{', '.join(items)} FROM {source}{where}{rest}{ordered}{limited}", names


@st.composite
def conditions(draw: st.DrawFn, columns: list[str]) -> str:
    one = st.builds(
        str.format,
        st.sampled_from(
            ["{} = 5", "{} > ?", "{} IN (1, 2, ?)", "{} IS NULL", "{} BETWEEN 1 AND 9", "NOT {} = 3", "TRUE"]
        ),
        st.sampled_from(columns),
    )
    parts = draw(st.lists(one, min_size=1, max_size=3))
    return draw(st.sampled_from([" AND ", " OR "])).join(parts)


@given(queries())
def test_every_query_has_a_plan(query: tuple[str, list[str]]) -> None:
    text, names = query
    for members, conventions in (
        (1, (Convention.LOCAL,)),
        (3, (Convention.LOCAL,)),
        (2, (Convention.LOCAL, Convention.SPARK)),
        (1, (Convention.SPARK,)),
    ):
        for definition in (MAP, REPLICATED):
            tree = plan(text, definition, members=members, conventions=conventions).tree
            assert [column.lower() for column in tree.names] == names
            exchanges = sum(isinstance(node, physical.RootExchange) for node in walk(tree))
            assert exchanges <= 1
