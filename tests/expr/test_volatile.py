"""Volatile functions: a value for each row of a batch, never folded, never constant."""

from __future__ import annotations

import pyarrow as pa
import pytest

from remuda.expr import Literal, Parameters, call, compile_batch, compile_row, fold, is_constant, is_volatile
from remuda.types import BIGINT


@pytest.mark.parametrize("name", ["random", "gen_random_uuid"])
def test_every_row_has_its_own_value(name: str) -> None:
    drawn = call(name, Literal(1, BIGINT))
    assert drawn is not None
    assert fold(drawn) == drawn
    assert is_volatile(drawn)
    assert not is_constant(drawn)
    batch = pa.RecordBatch.from_arrays([pa.array(range(100))], names=["0"])
    values = compile_batch(drawn, {})(batch, Parameters((), ())).to_pylist()
    assert len(set(values)) == 100
    row = compile_row(drawn, {})
    assert row((), ()) != row((), ())
    assert type(row((), ())) is type(values[0])


def test_two_calls_are_two_expressions() -> None:
    assert call("random", Literal(1, BIGINT)) != call("random", Literal(2, BIGINT))
