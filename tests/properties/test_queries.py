"""Random predicates over random maps, indexes and members: the rows are the model's, whatever path is taken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.grids import MAP, canonical, grid_of
from tests.properties.predicates import key_predicates, predicates, to_sql, truth
from tests.properties.schemas import DOMAINS, rows, schemas


@given(st.data())
def test_predicates_give_the_rows_of_the_model(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stored = data.draw(rows(schema))
    cut = data.draw(st.integers(0, len(stored)))
    with grid_of(schema, stored[:cut], stored[cut:], data.draw(st.sampled_from([1, 3]))) as grid:
        for predicate in data.draw(st.lists(predicates(schema) | key_predicates(schema), min_size=1, max_size=5)):
            text, parameters = to_sql(predicate)
            found = grid.sql(f"SELECT * FROM {MAP} WHERE {text}", *parameters).fetchall()
            assert canonical(found) == canonical(row for row in stored if truth(predicate, schema, row) is True)


@given(st.data())
def test_pruning_changes_no_answer(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stored = data.draw(rows(schema))
    with grid_of(schema, stored, [], data.draw(st.sampled_from([1, 3]))) as grid:
        for predicate in data.draw(st.lists(key_predicates(schema) | predicates(schema), min_size=1, max_size=5)):
            text, parameters = to_sql(predicate)
            answers = []
            for setting in ("on", "off"):
                grid.sql(f"SET partition_pruning = {setting}")
                answers.append(canonical(grid.sql(f"SELECT * FROM {MAP} WHERE {text}", *parameters).fetchall()))
            assert answers[0] == answers[1]


@given(st.data())
def test_writes_change_the_rows_that_the_model_changes(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stored = data.draw(rows(schema))
    values = [column for column in schema.columns if column.name not in schema.key]
    cut = data.draw(st.integers(0, len(stored)))
    with grid_of(schema, stored[:cut], stored[cut:], data.draw(st.sampled_from([1, 3]))) as grid:
        model = list(stored)
        for predicate in data.draw(st.lists(predicates(schema) | key_predicates(schema), min_size=1, max_size=4)):
            text, parameters = to_sql(predicate)
            chosen = [row for row in model if truth(predicate, schema, row) is True]
            if values and data.draw(st.booleans()):
                column = data.draw(st.sampled_from(values))
                value = data.draw(st.none() | DOMAINS[column.type])
                at = schema.position(column.name)
                result = grid.sql(f"UPDATE {MAP} SET {column.name} = ? WHERE {text}", value, *parameters)
                model = [(*row[:at], value, *row[at + 1 :]) if row in chosen else row for row in model]
            else:
                result = grid.sql(f"DELETE FROM {MAP} WHERE {text}", *parameters)
                model = [row for row in model if row not in chosen]
            assert result.update_count == len(chosen)
            assert canonical(grid.sql(f"SELECT * FROM {MAP}").fetchall()) == canonical(model)
