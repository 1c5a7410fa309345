"""Half of a surrogate pair is no text: every way in and every way to ask says so, and names the column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from remuda.catalog import IndexType
from remuda.errors import ErrorCode, SqlError
from remuda.storage import Lookup, MapStore, Range, Store
from remuda.types import BIGINT, VARCHAR
from tests.storage.maps import contents, index_on, map_of, table_of

LONE = "half \ud800"


@pytest.fixture(params=["memory", "folder"])
def names(request: pytest.FixtureRequest, tmp_path: Path) -> MapStore:
    """A map with a string for a key, one row in a segment and one in the log."""
    store = Store.open(tmp_path if request.param == "folder" else None)
    indexes = (index_on("name", type_=IndexType.HASH), index_on("name"))
    definition = map_of([("id", VARCHAR), ("name", VARCHAR), ("number", BIGINT)], indexes=indexes)
    store.create_map(definition)
    store.map(definition).insert([("ä", "é", 1)])
    store.checkpoint()
    store.map(definition).insert([("b", None, 2)])
    return store.map(definition)


def _refused(use: Callable[[], Any], column: str) -> None:
    with pytest.raises(SqlError) as caught:
        use()
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert f"orders.{column} cannot hold" in caught.value.message


def test_it_is_refused_in_writes(names: MapStore) -> None:
    before = contents(names.snapshot())
    _refused(lambda: names.insert([("c", "fine", 3), ("d", LONE, 4)]), "name")
    _refused(lambda: names.put([(LONE, None, 3)]), "id")
    _refused(lambda: names.delete(["b", LONE]), "id")
    assert contents(names.snapshot()) == before
    names.put([("ü", "日本語", 3)])
    assert names.lookup("ü", (1,)) == ("日本語",)


def test_it_is_refused_in_lookups(names: MapStore) -> None:
    _refused(lambda: names.lookup(LONE, (1,)), "id")
    by_hash, by_order = names.definition.indexes
    (segment, _) = names.snapshot().sources
    _refused(lambda: segment.key_positions([LONE]), "id")
    _refused(lambda: segment.positions(by_hash.id, Lookup((LONE,))), "name")
    assert list(segment.positions(by_order.id, Lookup((), Range("a", high="ÿ")))) == [0]


def test_it_is_refused_in_loads(names: MapStore) -> None:
    table = table_of(names.definition, [("x", "fine", 1), ("y", "text", 2)])
    broken = pa.array([b"fine", b"half \xed\xa0\x80"]).view(pa.string())
    for given in (broken, broken.dictionary_encode()):
        _refused(lambda given=given: names.load(table.set_column(1, "name", given)), "name")
    assert len(names) == 2
