"""Folders of format 1, whose manifest is one JSON file: they open as they are, and the first commit upgrades them.

`folder_format_1.zip` and `folder_format_2.zip` were written by the last versions that wrote these formats, and their
processes were killed.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import remuda
from remuda.errors import StorageError
from remuda.storage import Store
from remuda.storage.folder import manifest as manifest_file
from remuda.storage.folder import partition_groups, store_folder
from remuda.storage.folder.group_file import segment_entry
from remuda.storage.folder.inbox import Delivery
from remuda.storage.folder.manifest import NAME, read_manifest
from remuda.storage.load import segment_cut
from remuda.storage.segment.stored_groups import StoredGroups
from tests.storage.format_1 import saved_map, to_format_1

FIXTURE = Path(__file__).parent / "folder_format_1.zip"
HEX = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return extracted(FIXTURE, tmp_path / "shop.remuda")


@pytest.fixture
def folder_2(tmp_path: Path) -> Path:
    return extracted(FIXTURE.with_name("folder_format_2.zip"), tmp_path / "shop.remuda")


@pytest.fixture
def folder_3(tmp_path: Path) -> Path:
    """The folder of format 2 after a commit of format 3, and a map of twenty groups with deletions."""
    return extracted(FIXTURE.with_name("folder_format_3.zip"), tmp_path / "shop.remuda")


def extracted(archive_path: Path, path: Path) -> Path:
    with zipfile.ZipFile(archive_path) as archive:
        archive.extractall(path)
    return path


def is_old(folder: Path, number: int = 1) -> bool:
    return (folder / NAME).read_bytes().startswith(f"REMUDA {number} ".encode())


def order(number: int) -> tuple[Any, ...]:
    """A row of orders as the fixture was given it."""
    if number % 7 == 0:
        return (number, *[None] * 8)
    return (
        number,
        "late" if number == 20 else f"C{number % 5}",
        number / 2,
        Decimal(number) / 4,
        date(2024, 1, 1 + number % 28),
        datetime(2024, 1, 1, number % 24, 30),
        bytes([number % 256, 255]),
        number % 2 == 0,
        number,
    )


ORDERS = [*(order(number) for number in range(10, 200) if number != 21), (1000, "tail", *[None] * 7)]


def check(grid: Any) -> None:
    """Compare all that the fixture has with what it was given."""
    assert grid.sql("SELECT * FROM orders ORDER BY id").fetchall() == ORDERS
    assert grid.map("orders")[1000].customer == "tail"
    assert grid.map("orders").get(21) is None
    by_customer = sorted(row[0] for row in ORDERS if row[1] == "C3")
    assert [row[0] for row in grid.sql("SELECT id FROM orders WHERE customer = 'C3' ORDER BY id")] == by_customer
    by_amount = [row[0] for row in ORDERS if row[2] is not None and 20 <= row[2] < 25]
    assert [
        row[0] for row in grid.sql("SELECT id FROM orders WHERE amount >= 20 AND amount < 25 ORDER BY id")
    ] == by_amount
    big = sum(row[2] is not None and row[2] > 50 for row in ORDERS)
    assert grid.sql("SELECT COUNT(*) FROM big").fetchall() == [(big,)]
    items = [(f"k{number % 3}", number, number / 8) for number in range(20)]
    assert sorted(grid.sql("SELECT * FROM items").fetchall()) == sorted(items)
    assert grid.sql("SELECT * FROM rates ORDER BY code").fetchall() == [("EUR", 1.0), ("USD", 1.25)]
    assert grid.sql("SELECT * FROM empty").fetchall() == [(1,)]
    statistics = grid.store.map(grid.store.catalog.find_map("orders", ("public",))).statistics()
    assert statistics.columns["price"].maximum == Decimal("49.75")
    assert {index.name for index in grid.store.catalog.find_map("orders", ("public",)).indexes} == {
        "orders_amount",
        "orders_customer",
    }


def test_a_folder_of_format_1_is_read_without_being_changed(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with remuda.open(folder, read_only=True) as grid:
        check(grid)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_first_commit_upgrades_a_folder_of_format_1(folder: Path) -> None:
    with remuda.open(folder) as grid:
        check(grid)
        grid.checkpoint()
        check(grid)
        assert not is_old(folder)
        for name in ("orders", "items", "rates"):
            assert [row.status for row in grid.sql(f"CHECK TABLE {name}")] == ["ok"]
    for entry in read_manifest(folder).maps:
        assert entry.segments == ()
        assert [(each.first, each.end) for each in entry.groups] == [(0, 271)]
    for read_only in (True, False):
        with remuda.open(folder, read_only=read_only) as grid:
            check(grid)


def test_a_folder_of_format_2_is_read_without_being_changed(folder_2: Path) -> None:
    before = {path: path.read_bytes() for path in folder_2.rglob("*") if path.is_file()}
    with remuda.open(folder_2, read_only=True) as grid:
        check(grid)
    assert {path: path.read_bytes() for path in folder_2.rglob("*") if path.is_file()} == before


def test_a_folder_of_format_2_is_upgraded_and_split(folder_2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_old(folder_2, 2)
    with remuda.open(folder_2) as grid:
        check(grid)
        grid.checkpoint()
        assert is_old(folder_2, 4)
        check(grid)
        # Segments of format 2 do not say which partitions they have.
        monkeypatch.setattr(segment_cut, "GROUP_BYTES", 3_000)
        grid.sql("SINK INTO orders SELECT * FROM orders WHERE id < 60")
        grid.checkpoint()
        grid.sql("OPTIMIZE orders")
        check(grid)
    (entry,) = [each for each in read_manifest(folder_2).maps if each.name == "orders"]
    assert len(entry.groups) > 2
    for read_only in (True, False):
        with remuda.open(folder_2, read_only=read_only) as grid:
            check(grid)
            assert [row.status for row in grid.sql("CHECK TABLE orders")] == ["ok"]


def check_wide(grid: Any) -> None:
    wide = [
        *((number, -1 if number == 1500 else number % 100, f"text {number % 7}") for number in range(40, 2000)),
        (5000, 1, "tail"),
    ]
    assert len(grid.map("wide")) == len(wide)
    assert grid.sql("SELECT * FROM wide ORDER BY id").fetchall() == wide
    assert grid.map("wide").get(7) is None
    assert grid.map("wide")[1500].v == -1
    assert grid.sql("SELECT COUNT(*) FROM wide WHERE v = 41").fetchall() == [(20,)]


def test_a_folder_of_format_3_is_read_without_being_changed(folder_3: Path) -> None:
    assert is_old(folder_3, 3)
    before = {path: path.read_bytes() for path in folder_3.rglob("*") if path.is_file()}
    with remuda.open(folder_3, read_only=True) as grid:
        check(grid)
        check_wide(grid)
        assert not isinstance(grid.store.map(grid.store.catalog.find_map("wide", ("public",))).stored, StoredGroups)
    assert {path: path.read_bytes() for path in folder_3.rglob("*") if path.is_file()} == before


def test_the_first_change_of_a_map_of_format_3_upgrades_it(folder_3: Path) -> None:
    with remuda.open(folder_3) as grid:
        check_wide(grid)
        grid.checkpoint()  # of the row that was only in the log
    assert is_old(folder_3, 4)
    (entry,) = [each for each in read_manifest(folder_3).maps if each.name == "wide"]
    assert sum(group.rows - group.deleted for group in entry.groups if group.deleted is not None) == 1961
    for read_only in (True, False):
        with remuda.open(folder_3, read_only=read_only) as grid:
            assert isinstance(grid.store.map(grid.store.catalog.find_map("wide", ("public",))).stored, StoredGroups)
            check(grid)
            check_wide(grid)
            assert [row.status for row in grid.sql("CHECK TABLE wide")] == ["ok"]


def test_opening_alone_writes_nothing_where_nothing_has_changed(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        grid.load("t", pa.table({"id": range(20_000)}))
    remuda.open(tmp_path).close()
    to_format_1(tmp_path)
    remuda.open(tmp_path).close()
    assert is_old(tmp_path)
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE other (id BIGINT PRIMARY KEY)")
        assert not is_old(tmp_path)
        assert len(grid.map("t")) == 20_000


def test_a_reader_goes_along_with_an_upgrade(folder: Path) -> None:
    with remuda.open(folder, read_only=True) as reader:
        check(reader)
        with remuda.open(folder) as grid:
            grid.checkpoint()
            grid.sql("DELETE FROM items")
            grid.checkpoint()
        reader.refresh()
        assert reader.sql("SELECT COUNT(*) FROM items").fetchall() == [(0,)]
        assert reader.sql("SELECT * FROM orders ORDER BY id").fetchall() == ORDERS


STEPS = (
    (os, "fsync"),
    (partition_groups, "write_group"),
    (manifest_file, "replace_manifest"),
    (manifest_file, "sync_folder"),
    (store_folder, "write_manifest"),
)
"""What a commit calls: the process is killed before and behind each call."""


def upgrade_and_die(folder: Path, step: int) -> bool:
    """Upgrade in a process that is killed at its n-th step. Return False where it has fewer."""
    child = os.fork()
    if child == 0:
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                os._exit(7)

        def killing(call: Callable[..., Any]) -> Callable[..., Any]:
            def killed(*given: Any) -> Any:
                count()
                answer = call(*given)
                count()
                return answer

            return killed

        for module, name in STEPS:
            setattr(module, name, killing(getattr(module, name)))
        Store.open(folder)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_crash_in_the_upgrade_leaves_the_old_state_or_the_new_one(folder: Path, tmp_path: Path) -> None:
    step, found = 1, set()
    while True:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        if not upgrade_and_die(copy, step):
            break
        found.add(is_old(copy))
        with remuda.open(copy, read_only=True) as grid:
            check(grid)
        with remuda.open(copy) as grid:
            check(grid)
            grid.checkpoint()
            named = {path.name for path in copy.glob("maps/*/*.group")}
            assert named == {f"{group.id}.group" for entry in read_manifest(copy).maps for group in entry.groups}
        step += 1
    assert found == {True, False}
    assert step > 20


@pytest.mark.parametrize("failing", ["write_group", "write_manifest"])
def test_an_upgrade_that_fails_changes_nothing(folder: Path, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = partition_groups if failing == "write_group" else store_folder

    def fails(*_given: Any) -> None:
        raise StorageError("no room", folder)

    files = set(folder.glob("maps/*/*"))
    monkeypatch.setattr(module, failing, fails)
    with pytest.raises(StorageError, match="no room"):
        Store.open(folder)
    monkeypatch.undo()
    assert is_old(folder)
    assert set(folder.glob("maps/*/*")) == files
    with remuda.open(folder) as grid:
        check(grid)


def test_a_delivery_of_an_earlier_version_is_taken_over(folder: Path) -> None:
    """The process that handed it in, and the one that was to take it over, have ended."""
    store = Store.open(folder)
    definition = store.catalog.find_map("items", ("public",))
    assert definition is not None
    found = store.map(definition)
    (entry,) = [each for each in read_manifest(folder).maps if each.id == definition.id]
    rows = pa.table({"a": ["new", "new"], "b": pa.array([1, 2], pa.int32()), "v": pa.array([1.0, 2.0], pa.float32())})
    from remuda.storage import write_segment

    inbox = folder / "inbox" / HEX
    inbox.mkdir(parents=True)
    segment = segment_entry(write_segment(inbox, definition, rows), definition)
    request = {"mode": "append", "map": saved_map(entry, [segment]), "order_by": None}
    assert len(found) == 20
    store.close()
    (folder / "inbox" / f"{HEX}.request").write_bytes(json.dumps(request).encode())
    with remuda.open(folder) as grid:
        assert len(grid.map("items")) == 22
    answer = msgspec.json.decode((folder / "inbox" / f"{HEX}.answer").read_bytes())
    assert answer["rows"] == 2
    assert set(Delivery.__struct_fields__) == {*request, "batch", "condition", "creates"}


def test_a_damaged_manifest_of_format_1_is_reported_with_its_place(folder: Path) -> None:
    path = folder / NAME
    raw = path.read_bytes()
    head, _, body = raw.partition(b"\n")
    path.write_bytes(raw.replace(b'"BIGINT"', b'"BIGONT"', 1))
    with pytest.raises(StorageError, match=f"damaged.*{NAME}, offset {len(head) + 1}"):
        remuda.open(folder, read_only=True)
    for old, new in ((b'"maps"', b'"mops"'), (b'"DECIMAL"', b'"DECI"'), (b'"rows": 200', b'"rows": "x"')):
        changed = body.replace(old, new, 1)
        assert changed != body
        path.write_bytes(f"REMUDA 1 {zlib.crc32(changed):08x}\n".encode() + changed)
        with pytest.raises(StorageError, match=f"cannot be read.*{NAME}"):
            remuda.open(folder, read_only=True)
