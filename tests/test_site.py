"""The documentation site builds without a warning, and its API reference has every public name."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import remuda

ROOT = Path(__file__).parents[1]
API = ROOT / "docs" / "reference" / "api.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", folder]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert not [page for page in pages if not (site / page).is_file()]


def test_it_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text, page
        assert 'rel="stylesheet" type="text/css" href="http' not in text, page


def test_the_reference_has_every_public_name(site: Path) -> None:
    text = (site / "reference" / "api.html").read_text(encoding="utf-8")
    shown = API.read_text(encoding="utf-8")
    for name in set(remuda.__all__) - {"__version__"}:
        assert f"remuda.{name}" in shown or f" {name}," in shown or f", {name}" in shown, name
    for kind in (remuda.Grid, remuda.Session, remuda.Map, remuda.Result, remuda.Row):
        for name in public_methods(kind):
            assert f'id="remuda.{kind.__name__}.{name}"' in text, f"{kind.__name__}.{name}"
    for name in remuda.spark.__all__:
        assert f'id="remuda.spark.{name}"' in text, f"remuda.spark.{name}"


HIDDEN = {
    *("of_execution", "of_update", "of_statement", "leave", "end", "gather"),
    *("execute", "plan", "plan_for_values", "planner", "open_result", "refuse_closed"),
}
"""Methods that the rest of the package calls."""


def test_the_settings_page_has_every_argument_of_open() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `")))
    assert set(inspect.signature(remuda.open).parameters) <= set(named)


def public_methods(kind: type[Any]) -> list[str]:
    return [name for name, found in vars(kind).items() if name[0] != "_" and callable(found) and name not in HIDDEN]


@pytest.mark.parametrize("name", sorted(set(remuda.__all__) - {"__version__"}))
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(getattr(remuda, name))
