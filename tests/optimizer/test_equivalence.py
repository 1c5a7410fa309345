"""For random filters, rows and indexes: `index filter AND residual` is the filter, and pruning loses no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from remuda.catalog import DEFAULT_SCHEMA, ColumnDefinition, IndexDefinition, IndexType, MapDefinition
from remuda.exec.scan.concrete_bounds import index_lookups, pruned_partitions
from remuda.expr import Column, Expression, Literal, call, compile_row, evaluate_constant
from remuda.expr.functions.strings import like_prefix
from remuda.grid.parameters import to_stored_values
from remuda.optimizer.index_binding import bind_index, bind_key
from remuda.optimizer.pruning import prune
from remuda.optimizer.sargable import find_sargable
from remuda.plan import logical
from remuda.plan.bounds import Bound, Interval, Points, Prefix, Ranges
from remuda.plan.walk import walk
from remuda.rules.normalize.normalize import RuleTrace, normalize
from remuda.rules.normalize.trim import trim_columns
from remuda.sql.parse.type_names import TYPE_NAMES
from remuda.storage import UNBOUNDED, Lookup, hash_values, partition_of
from remuda.types import SqlType, to_stored
from remuda.types.normalized_key import comparable
from tests.optimizer.maps import bound
from tests.properties.predicates import Predicate, key_predicates, predicates, to_sql, truth
from tests.properties.schemas import Row, Schema, rows, schemas


@dataclass(frozen=True, slots=True)
class Case:
    definition: MapDefinition
    filter: Expression | None
    is_empty: bool
    """Whether planning found that no row can pass."""
    parameters: Row
    rows: list[Row]
    """In stored form."""
    matching: list[bool]
    """Which of them pass, as the model says."""
    columns: tuple[Column, ...]

    def holds(self, predicate: Expression | None, row: Row) -> bool:
        if predicate is None:
            return True
        layout = {column.id: self.definition.position(column.name) for column in self.columns}
        return compile_row(predicate, layout)(row, self.parameters) is True


def definition_of(schema: Schema) -> MapDefinition:
    columns = tuple(
        ColumnDefinition(column.name, TYPE_NAMES[column.type], nullable=column.name not in schema.key)
        for column in schema.columns
    )
    indexes = tuple(
        IndexDefinition(index.name, index.name, index.columns, IndexType[index.kind]) for index in schema.indexes
    )
    return MapDefinition("m", DEFAULT_SCHEMA, "m", columns, schema.key, schema.key, partitions=7, indexes=indexes)


def case_of(schema: Schema, predicate: Predicate, given_rows: list[Row]) -> Case:
    definition = definition_of(schema)
    text, given_values = to_sql(predicate)
    query = f"SELECT * FROM m WHERE {text}"
    stored, inexact = to_stored_values(bound(query, definition).parameters, given_values)
    tree = bound(query, definition, {number: given_values[number] for number in inexact}).tree
    normalized = normalize(trim_columns(tree), RuleTrace(checked=True))
    scans = [node for node in walk(normalized) if isinstance(node, logical.Scan)]
    types = [column.type for column in definition.columns]
    in_storage = [tuple(map(to_stored, types, row)) for row in given_rows]
    matching = [truth(predicate, schema, row) is True for row in given_rows]
    (original,) = (node for node in walk(tree) if isinstance(node, logical.Scan))
    filter_ = scans[0].filter if scans else None
    return Case(definition, filter_, not scans, stored, in_storage, matching, original.columns)


@st.composite
def cases(draw: st.DrawFn, make: Any) -> Case:
    schema = draw(schemas())
    return case_of(schema, draw(make(schema)), draw(rows(schema, max_size=12)))


def within(bound_: Bound, value: Any, type_: SqlType, parameters: Row) -> bool:
    """Whether a value lies within the bound, by the comparisons of SQL itself."""

    def compares(operator: str, other: Expression) -> bool:
        compared = call(operator, Literal(value, type_), Literal(evaluate_constant(other, parameters), other.type))
        assert compared is not None
        return evaluate_constant(compared) is True

    match bound_:
        case Points():
            if value is None:
                return bound_.or_null
            return any(compares("=", candidate) for candidate in bound_.values)
        case Interval():
            return (
                value is not None
                and all(compares(">=" if end.inclusive else ">", end.value) for end in bound_.lows)
                and all(compares("<=" if end.inclusive else "<", end.value) for end in bound_.highs)
            )
        case Prefix():
            pattern = evaluate_constant(bound_.pattern, parameters)
            return value is not None and pattern is not None and value.startswith(like_prefix(pattern)[0])
        case Ranges():
            return any(within(part, value, type_, parameters) for part in bound_.parts)


@given(cases(predicates))
def test_the_bound_filter_is_what_the_model_says(case: Case) -> None:
    found = [not case.is_empty and case.holds(case.filter, row) for row in case.rows]
    assert found == case.matching


@given(cases(predicates))
def test_index_filter_and_remainder_are_the_filter(case: Case) -> None:
    candidates = find_sargable(case.filter)
    for index in case.definition.indexes:
        served = bind_index(index, case.filter, candidates)
        if served is None:
            continue
        places = case.definition.positions(index.columns)
        for row, matches in zip(case.rows, case.matching, strict=True):
            reached = all(
                within(single, row[place], case.definition.columns[place].type, case.parameters)
                for single, place in zip(served.bounds, places, strict=False)
            )
            assert (reached and case.holds(served.residual, row)) == matches
            assert case.holds(served.used, row) or not reached


@given(cases(key_predicates))
def test_key_and_remainder_are_the_filter(case: Case) -> None:
    found = bind_key(case.definition.key, case.filter, find_sargable(case.filter))
    if found is None:
        return
    places = case.definition.positions(case.definition.key)
    for row, matches in zip(case.rows, case.matching, strict=True):
        reached = all(
            within(points, row[place], case.definition.columns[place].type, case.parameters)
            for points, place in zip(found[0], places, strict=True)
        )
        assert (reached and case.holds(found[1], row)) == matches


@given(cases(lambda schema: predicates(schema) | key_predicates(schema)))
def test_every_matching_row_lies_in_a_pruned_partition(case: Case) -> None:
    pruning = prune(case.definition, case.filter)
    left = None if pruning is None else pruned_partitions(case.definition, pruning, case.parameters)
    if left is None:
        return
    places = case.definition.positions(case.definition.partitioned_by)
    types = [case.definition.columns[place].type for place in places]
    for row, matches in zip(case.rows, case.matching, strict=True):
        partition = partition_of(hash_values([row[place] for place in places], types), case.definition.partitions)
        assert partition in left or not matches


@given(cases(predicates))
def test_lookups_find_each_value_within_the_bounds_once(case: Case) -> None:
    """What an index is asked, valued: disjoint, in its order, and neither more nor less than the bounds say."""
    for index in case.definition.indexes:
        served = bind_index(index, case.filter, find_sargable(case.filter))
        if served is None:
            continue
        lookups = index_lookups(served.bounds, case.parameters)
        places = case.definition.positions(index.columns)
        types = [case.definition.columns[place].type for place in places]
        for row in case.rows:
            values = [row[place] for place in places]
            reached = all(
                within(single, value, type_, case.parameters)
                for single, value, type_ in zip(served.bounds, values, types, strict=False)
            )
            assert sum(_meets(lookup, values) for lookup in lookups) == reached


def _meets(lookup: Lookup, values: list[Any]) -> bool:
    """Whether an entry with these values is found by the lookup."""
    fixed = [comparable(value) for value in lookup.prefix]
    if fixed != [comparable(value) for value in values[: len(fixed)]]:
        return False
    if lookup.range is None:
        return True
    value, wanted = values[len(fixed)], lookup.range
    if value is None:
        return False
    key = comparable(value)
    above = (
        wanted.low is UNBOUNDED
        or key > comparable(wanted.low)
        or (wanted.low_inclusive and key == comparable(wanted.low))
    )
    below = (
        wanted.high is UNBOUNDED
        or key < comparable(wanted.high)
        or (wanted.high_inclusive and key == comparable(wanted.high))
    )
    return above and below
