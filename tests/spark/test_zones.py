"""Other zones of moments, within structs, lists and maps as Spark hands them to Python."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from remuda.spark.load.partition_task import with_zones

MOMENT = datetime(2024, 7, 1, 12, tzinfo=UTC)


def any_type(draw: random.Random, depth: int, zone: str) -> pa.DataType:
    """Return a type whose members, elements and values are NOT NULL by chance."""
    shape = draw.choice(["text", "moment", "struct", "list", "map"][: 5 if depth else 2])
    match shape:
        case "text":
            return pa.string()
        case "moment":
            return pa.timestamp("us", zone)
        case "struct":
            count = draw.randrange(1, 4)
            return pa.struct([any_field(draw, f"m{number}", depth - 1, zone) for number in range(count)])
        case "list":
            return pa.list_(any_field(draw, "element", depth - 1, zone))
    key = any_type(draw, depth - 1, zone)
    return pa.map_(pa.field("key", key, nullable=False), any_field(draw, "value", depth - 1, zone))


def any_field(draw: random.Random, name: str, depth: int, zone: str) -> pa.Field:
    return pa.field(name, any_type(draw, depth, zone), nullable=draw.random() < 0.5)


def any_value(draw: random.Random, given: pa.DataType, *, nullable: bool) -> Any:
    if nullable and draw.random() < 0.3:
        return None
    if pa.types.is_struct(given):
        return {field.name: any_value(draw, field.type, nullable=field.nullable) for field in given.fields}
    if pa.types.is_list(given):
        field = given.value_field
        return [any_value(draw, field.type, nullable=field.nullable) for _ in range(draw.randrange(3))]
    if pa.types.is_map(given):
        key, item = given.key_field, given.item_field
        return [
            (any_value(draw, key.type, nullable=False), any_value(draw, item.type, nullable=item.nullable))
            for _ in range(draw.randrange(3))
        ]
    return f"text {draw.randrange(9)}" if pa.types.is_string(given) else MOMENT + timedelta(hours=draw.randrange(9999))


def as_spark_writes(values: list[Any], given: pa.DataType) -> pa.Array:
    """Return the array. The members of a struct that is NULL are NULL too, also where they are declared NOT NULL."""
    missing = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_struct(given):
        members = [
            as_spark_writes([None if value is None else value[field.name] for value in values], field.type)
            for field in given.fields
        ]
        return pa.StructArray.from_arrays(members, fields=given.fields, mask=missing)
    if pa.types.is_list(given) or pa.types.is_map(given):
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value or ()))
        offsets = pa.array(ends, pa.int32())
        elements = [element for value in values for element in value or ()]
        if pa.types.is_list(given):
            return pa.ListArray.from_arrays(offsets, as_spark_writes(elements, given.value_type), given, mask=missing)
        keys = as_spark_writes([key for key, _ in elements], given.key_type)
        items = as_spark_writes([item for _, item in elements], given.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, given, mask=missing)
    return pa.array(values, given)


@pytest.mark.parametrize(("zone", "other"), [("UTC", "UTC"), ("Asia/Kolkata", "-03:30"), ("+01:00", "Asia/Kolkata")])
def test_nested_moments_keep_their_value_in_another_zone(zone: str, other: str) -> None:
    """A struct that was NULL, with a member NOT NULL, was refused beside any column of another zone."""
    draw = random.Random(zone + other)
    for _ in range(200):
        fields = [any_field(draw, f"c{number}", 3, zone) for number in range(2)]
        columns = [[any_value(draw, each.type, nullable=each.nullable) for _ in range(20)] for each in fields]
        arrays = [as_spark_writes(values, each.type) for values, each in zip(columns, fields, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=pa.schema(fields)).slice(draw.randrange(5))
        found = with_zones(table, lambda _: other)
        found.validate(full=True)
        assert found.to_pylist() == table.to_pylist()
        for given, answered in zip(table.schema, found.schema, strict=True):
            assert zones(answered.type) == ({other} if zones(given.type) else set())


def zones(given: pa.DataType) -> set[str]:
    """Return the zones of all moments in a type."""
    if pa.types.is_timestamp(given):
        return {given.tz}
    if pa.types.is_map(given):
        return zones(given.key_type) | zones(given.item_type)
    return {zone for number in range(given.num_fields) for zone in zones(given.field(number).type)}
