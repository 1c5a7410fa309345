"""Damaged and absurd files are refused, and never end the process."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from tests.hostile.processes import run_apart

CREATE = 'grid.sql("CREATE TABLE t (n BIGINT, s VARCHAR, b VARBINARY, j JSON)")\n'


def load_apart(path: Path) -> str:
    return run_apart(f'{CREATE}print(grid.load("t", {str(path)!r}), len(grid.sql("SELECT * FROM t").fetchall()))')


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("column", ["n", "s", "j", "other"])
def test_json_nested_deeply(tmp_path: Path, opening: str, column: str) -> None:
    path = tmp_path / "t.json"
    closing = "]" if opening == "[" else "}"
    path.write_text(f'{{"{column}": {opening * 100_000}1{closing * 100_000}}}\n')
    assert load_apart(path).startswith("refused 2000")
    assert run_apart(f'grid.load("unknown", {str(path)!r})').startswith("refused")


@pytest.mark.parametrize("line", ["null", "null null", '{"n": 1} null', "[]", "5", '"x"', "{", "}", "\0", "\x1b[2J"])
def test_lines_that_are_no_objects(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(f"{line}\n")
    assert load_apart(path).startswith("refused 2000")


def test_csv_of_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{number}" for number in range(100_000)) + "\n" + ",".join("1" * 100_000) + "\n")
    assert load_apart(path).startswith("refused 2000")
    assert run_apart(f'grid.load("unknown", {str(path)!r})').startswith("refused")
    copied = f"{CREATE}grid.sql(\"COPY t FROM '{path}' (HEADER false)\")"
    assert run_apart(copied).startswith("refused 2000")


def _damaged(data: bytes, seed: int) -> bytes:
    """Some bytes changed, most of them in the second half: there are the offsets."""
    choice = random.Random(seed)
    changed = bytearray(data)
    for _ in range(choice.randint(1, 8)):
        place = choice.randrange(len(changed))
        changed[place] = choice.choice([0, 0x7F, 0x80, 0xFF, changed[place] ^ (1 << choice.randrange(8))])
    return bytes(changed)


def test_arrow_files_with_wild_offsets(tmp_path: Path) -> None:
    """All in one process: the first that dies fails the test."""
    values = pa.array(["one", "two", None, "three"])
    table = pa.table({"n": [1, 2, 3, 4], "s": values, "b": values.cast(pa.binary())})
    with pa.OSFile(str(tmp_path / "good.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    whole = (tmp_path / "good.arrow").read_bytes()
    offsets = struct.pack("<5i", 0, 3, 6, 6, 11)
    assert whole.count(offsets) == 2
    for number, wild in enumerate([(0, 2**30, 5, 2**31 - 1, -1), (-5, 3, 6, 6, 11), (0, 3, 6, 6, 2**31 - 1)]):
        changed = whole.replace(offsets, struct.pack("<5i", *wild))
        for suffix in ("arrow", "feather"):
            (tmp_path / f"wild-{number}.{suffix}").write_bytes(changed)
    for seed in range(300):
        (tmp_path / f"damaged-{seed}.arrow").write_bytes(_damaged(whole, seed))
    answer = run_apart(
        f"""{CREATE}
from pathlib import Path
refused = 0
for path in sorted(Path({str(tmp_path)!r}).iterdir()):
    try:
        grid.load("t", path)
        grid.sql("SELECT n, s, b FROM t").fetchall()
        assert not path.name.startswith("wild"), path
    except RemudaError as error:
        refused += 1
print(refused > 20)
"""
    )
    assert answer == "True"
