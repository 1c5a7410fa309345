"""Partition ids equal Spark's, for one key and for columns, for every type."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from remuda.storage.index.hash_index import value_hasher
from remuda.types import BIGINT, VARCHAR, Kind, SqlType
from remuda.types.arrow_arrays import stored_array
from remuda.types.column_hash import hash_columns
from remuda.types.partition_hash import hash_values, partition_of, scalar_hasher, to_signed
from tests.storage.sample_values import TYPES, random_value
from tests.storage.spark_hash import VECTORS, from_json, spark_hashes

_VECTORS = json.loads(VECTORS.read_text(encoding="utf-8"))


def _types(vector: dict[str, Any]) -> list[SqlType]:
    return [SqlType(Kind(kind), precision, scale) for kind, precision, scale in vector["types"]]


def _rows(vector: dict[str, Any]) -> list[list[Any]]:
    types = _types(vector)
    return [[from_json(each, value) for each, value in zip(types, row, strict=True)] for row in vector["rows"]]


@pytest.mark.parametrize("vector", _VECTORS, ids=lambda vector: "-".join(kind for kind, *_ in vector["types"]))
def test_hashes_equal_the_vectors_that_spark_gave(vector: dict[str, Any]) -> None:
    types, rows = _types(vector), _rows(vector)
    assert [hash_values(row, types) for row in rows] == vector["hashes"]
    columns = [stored_array([row[number] for row in rows], each) for number, each in enumerate(types)]
    assert hash_columns(columns, types).tolist() == vector["hashes"]


def test_vectors_cover_every_type() -> None:
    assert {kind for vector in _VECTORS for kind, *_ in vector["types"]} == {each.kind.value for each in TYPES}


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_a_precompiled_hasher_a_column_and_a_slice_agree(sql_type: SqlType) -> None:
    source = random.Random(7)
    values = [random_value(sql_type, source) for _ in range(500)]
    expected = [scalar_hasher([sql_type])(value) for value in values]
    array = stored_array(values, sql_type)
    assert hash_columns([array], [sql_type]).tolist() == expected
    assert hash_columns([array.slice(123)], [sql_type]).tolist() == expected[123:]
    assert hash_columns([pa.chunked_array([array.slice(0, 9), array.slice(9)])], [sql_type]).tolist() == expected


def test_composite_keys_are_chained_in_order() -> None:
    hasher = scalar_hasher([BIGINT, VARCHAR])
    columns = [pa.array([1, 2, 3]), pa.array(["a", "b", "c" * 50])]
    assert hash_columns(columns, [BIGINT, VARCHAR]).tolist() == [
        hasher((1, "a")),
        hasher((2, "b")),
        hasher((3, "c" * 50)),
    ]


def test_a_dictionary_hashes_as_its_values() -> None:
    values = ["x", None, "yy", "x", "a longer string than thirty-two bytes, surely"]
    plain = pa.array(values)
    for null_is_value in (False, True):
        coded = hash_columns([plain.dictionary_encode()], [VARCHAR], null_is_value=null_is_value)
        assert coded.tolist() == hash_columns([plain], [VARCHAR], null_is_value=null_is_value).tolist()
    chained = hash_columns([pa.array(range(5)), plain.dictionary_encode()], [BIGINT, VARCHAR])
    assert chained.tolist() == hash_columns([pa.array(range(5)), plain], [BIGINT, VARCHAR]).tolist()


def test_index_hashes_tell_where_a_null_stands() -> None:
    columns = [pa.array([None, "a"], pa.string()), pa.array(["a", None], pa.string())]
    as_keys = hash_columns(columns, [VARCHAR, VARCHAR])
    as_values = hash_columns(columns, [VARCHAR, VARCHAR], null_is_value=True)
    assert as_keys[0] == as_keys[1]
    assert as_values[0] != as_values[1]
    hasher = value_hasher([VARCHAR, VARCHAR])
    assert as_values.tolist() == [to_signed(hasher((None, "a"))), to_signed(hasher(("a", None)))]


def test_partition_is_never_negative() -> None:
    assert partition_of(-1, 271) == 270
    assert partition_of(271, 271) == 0


@pytest.mark.spark
def test_random_values_hash_as_in_a_real_spark(spark: Any) -> None:
    source = random.Random()
    for types in [[each] for each in TYPES] + [random.sample(TYPES, 3) for _ in range(4)]:
        rows = [[source.choice([None, *[random_value(each, source)] * 9]) for each in types] for _ in range(200)]
        assert spark_hashes(spark, rows, types) == [hash_values(row, types) for row in rows], types
