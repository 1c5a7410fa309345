"""ORDER BY with LIMIT, and aggregates with GROUP BY, over random maps: the model's answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.grids import MAP, canonical, grid_of
from tests.properties.model import FUNCTIONS, agree, grouped, order_key, ordered
from tests.properties.predicates import NUMERIC, predicates, to_sql, truth
from tests.properties.schemas import Schema, rows, schemas


@given(st.data())
def test_order_and_limit(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stored = data.draw(rows(schema))
    names = [column.name for column in schema.columns]
    with grid_of(schema, stored, [], data.draw(st.sampled_from([1, 3]))) as grid:
        for _ in range(data.draw(st.integers(1, 3))):
            wanted = data.draw(st.lists(st.tuples(st.sampled_from(names), st.booleans()), max_size=3))
            # The key comes last and makes the order total: there is one right answer.
            order = [*wanted, *((name, False) for name in schema.key)]
            text = ", ".join(f"{name} DESC" if descending else name for name, descending in order)
            limit, offset = data.draw(st.none() | st.integers(0, 20)), data.draw(st.none() | st.integers(0, 5))
            text += ("" if limit is None else f" LIMIT {limit}") + ("" if offset is None else f" OFFSET {offset}")
            found = grid.sql(f"SELECT * FROM {MAP} ORDER BY {text}").fetchall()
            expected = ordered(stored, [(schema.position(name), descending) for name, descending in order])
            begin = offset or 0
            expected = expected[begin : None if limit is None else begin + limit]
            assert [canonical([row]) for row in found] == [canonical([row]) for row in expected]


def _aggregates(schema: Schema) -> st.SearchStrategy[tuple[str, str]]:
    pairs = [
        (function, column.name)
        for column in schema.columns
        for function in FUNCTIONS
        if (function not in {"SUM", "AVG"} or column.type in NUMERIC)
        and (function not in {"MIN", "MAX"} or column.type != "BOOLEAN")
    ]
    return st.sampled_from(pairs)


@given(st.data())
def test_groups_have_the_totals_of_the_model(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stored = data.draw(rows(schema))
    names = [column.name for column in schema.columns]
    with grid_of(schema, stored, [], data.draw(st.sampled_from([1, 3]))) as grid:
        by = data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        calls = data.draw(st.lists(_aggregates(schema), min_size=1, max_size=3, unique=True))
        predicate = data.draw(predicates(schema))
        where, parameters = to_sql(predicate)
        selected = [*by, *(f"{function}({name})" for function, name in calls), "COUNT(*)"]
        group = f" GROUP BY {', '.join(by)}" if by else ""
        found = grid.sql(f"SELECT {', '.join(selected)} FROM {MAP} WHERE {where}{group}", *parameters).fetchall()

        kept = [row for row in stored if truth(predicate, schema, row) is True]
        expected = [
            (
                *(group_rows[0][schema.position(name)] for name in by),
                *(FUNCTIONS[function]([row[schema.position(name)] for row in group_rows]) for function, name in calls),
                len(group_rows),
            )
            for group_rows in grouped(kept, [schema.position(name) for name in by])
        ]
        by_group = {tuple(order_key(value) for value in row[: len(by)]): row for row in expected}
        assert len(found) == len(expected)
        for row in found:
            answer = by_group[tuple(order_key(value) for value in row[: len(by)])]
            assert all(agree(ours, theirs) for ours, theirs in zip(row, answer, strict=True)), (tuple(row), answer)
