"""Columns of texts that are longer than one array can be: the limit is lowered, so that a few rows are beyond it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from remuda.types import VARCHAR, arrow_texts
from remuda.types.arrow_texts import decoded, fits_one_array, gathered, in_short_chunks, text_bytes, text_lengths
from remuda.types.column_hash import hash_columns

WORDS = ["", "a", None, "bcd", "ä" * 7, "x" * 30, None, "yy"] * 20


@pytest.fixture(autouse=True)
def short_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_texts, "TEXT_BYTES", 100)


def in_chunks(words: list[str | None], rows: int = 9) -> pa.ChunkedArray:
    pieces = [pa.array(["skipped", *words[start : start + rows]]).slice(1) for start in range(0, len(words), rows)]
    return pa.chunked_array(pieces, pa.string())


def test_bytes_are_those_of_the_slices() -> None:
    column = in_chunks(WORDS)
    sizes = [len((word or "").encode()) for word in WORDS]
    assert text_lengths(column).tolist() == sizes
    assert text_bytes(column) == sum(sizes)
    assert not fits_one_array(column)
    assert fits_one_array(column.slice(3, 3))
    assert text_bytes(pa.array([1, 2])) == 0


@pytest.mark.parametrize("rows", [1, 9, 200])
def test_rows_are_gathered_from_any_chunk(rows: int) -> None:
    column = in_chunks(WORDS, rows)
    positions = np.random.default_rng(rows).integers(0, len(WORDS), 40)
    for wanted in (positions, np.sort(positions), positions[:0]):
        assert gathered(column, pa.array(wanted)).to_pylist() == [WORDS[each] for each in wanted]


def test_rows_are_gathered_from_chunks_with_dictionaries_of_their_own() -> None:
    column = pa.chunked_array([chunk.dictionary_encode() for chunk in in_chunks(WORDS).chunks])
    assert not fits_one_array(column)
    positions = np.arange(len(WORDS))[::-1][:50]
    assert gathered(column, pa.array(positions)).to_pylist() == [WORDS[each] for each in positions]


def test_a_dictionary_is_decoded_in_pieces() -> None:
    encoded = pa.array(WORDS).dictionary_encode()
    for column in (encoded, encoded.slice(5, 70), pa.chunked_array([encoded, encoded])):
        plain = decoded(column)
        assert isinstance(plain, pa.ChunkedArray)
        assert plain.num_chunks > 2
        assert plain.to_pylist() == column.to_pylist()
        assert all(text_bytes(chunk) <= 100 for chunk in plain.chunks)
    assert isinstance(decoded(encoded.slice(0, 1)), pa.ChunkedArray | pa.Array)


@pytest.mark.parametrize("given", [pa.large_string(), pa.string_view()])
def test_longer_offsets_become_short_chunks(given: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(WORDS, given)])
    short = in_short_chunks(column)
    assert short.num_chunks > 5
    assert short.cast(pa.string()).to_pylist() == WORDS


def test_hashes_are_those_of_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    column, other = in_chunks(WORDS), in_chunks(WORDS[::-1], 13)
    found = hash_columns([column, other], [VARCHAR, VARCHAR], null_is_value=True)
    monkeypatch.setattr(arrow_texts, "TEXT_BYTES", 10**9)
    assert found.tolist() == hash_columns([column, other], [VARCHAR, VARCHAR], null_is_value=True).tolist()
