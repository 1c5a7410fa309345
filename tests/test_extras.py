"""What is not installed or not supported is named, with what to do about it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
WITHOUT = """
import sys
sys.path.insert(0, {source!r})

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {package!r} else found(name, package)
sys.meta_path.insert(0, Absent())
import remuda
try:
    {call}
except remuda.RemudaError as error:
    print(error)
"""


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pandas", "pandas", "remuda.open().sql('SELECT 1').to_pandas()"),
        ("polars", "polars", "remuda.open().sql('SELECT 1').to_polars()"),
        ("pyspark", "spark", "remuda.spark.session()"),
    ],
)
def test_a_missing_extra_is_named(package: str, extra: str, call: str) -> None:
    ended = _run(WITHOUT.format(source=str(SOURCE), package=package, call=call))
    assert f"pip install 'remudadb[{extra}]'" in ended.stdout, ended.stderr


def test_windows_is_refused_at_import() -> None:
    ended = _run(f"import sys; sys.path.insert(0, {str(SOURCE)!r}); sys.platform = 'win32'; import remuda")
    assert ended.returncode == 1
    assert "ImportError: Remuda does not run on Windows" in ended.stderr
