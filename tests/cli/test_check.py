"""`remuda check PATH` and `CHECK TABLE` read every file and say what is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

import remuda
from remuda.cli import main
from remuda.errors import SqlError, StorageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    with remuda.open(path) as grid:
        for name in ("sound", "broken"):
            grid.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, s VARCHAR)")
            grid.sql(f"CREATE INDEX {name}_s ON {name} (s) TYPE HASH")
            grid.sql(f"INSERT INTO {name} SELECT i, 'text ' || i FROM range(1000) AS r(i)")
        grid.checkpoint()
    return path


def damage(folder: Path, suffix: str) -> Path:
    with remuda.open(folder, read_only=True) as grid:
        (definition,) = (each for each in grid.store.catalog.maps.values() if each.name == "broken")
    path = next((folder / "maps" / definition.id).glob(f"*{suffix}"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    return path


def test_a_sound_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder)]) == 0
    assert capsys.readouterr().out == "sound: ok\nbroken: ok\nevery file is as it was written\n"
    with remuda.open(folder) as grid:
        assert [tuple(row) for row in grid.sql("CHECK TABLE sound")] == [("sound", "ok", None, None, None)]


@pytest.mark.parametrize("suffix", [".arrow", ".keys", ".index"])
def test_a_damaged_file_is_named(folder: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = damage(folder, suffix)
    assert main(["check", str(folder)]) == 1
    printed = capsys.readouterr().out
    assert "sound: ok" in printed
    assert "broken: DAMAGED" in printed
    assert str(path) in printed
    with remuda.open(folder) as grid:
        found = {row.map: row for row in grid.sql("CHECK TABLE")}
        assert (found["sound"].status, found["broken"].status, found["broken"].file) == ("ok", "damaged", str(path))
        assert len(grid.map("sound")) == 1000
        with pytest.raises(StorageError, match="the map broken cannot be used"):
            grid.map("broken").get(1)
        grid.sql("DROP TABLE broken")
    assert main(["check", str(folder)]) == 0


def test_maps_in_memory_have_no_files() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]
        with pytest.raises(SqlError, match="nosuch"):
            grid.sql("CHECK TABLE nosuch")


def test_there_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "nothing")]) == 1
    assert "there is no such folder" in capsys.readouterr().err
