"""The example notebook runs from its first cell to its last in a kernel of its own, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

TOUR = Path(__file__).parents[2] / "examples" / "tour.ipynb"


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook with its outputs, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("tour")
    notebook = nbformat.read(TOUR, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute()
    return notebook, folder


def cell(notebook: Any, begins: str) -> Any:
    return next(each for each in notebook.cells if each.source.startswith(begins))


def shown(notebook: Any, begins: str) -> dict[str, str]:
    """What a cell has as its value, by kind."""
    (output,) = [each for each in cell(notebook, begins).outputs if each.output_type == "execute_result"]
    data: dict[str, str] = output.data
    return data


def test_it_is_kept_without_outputs() -> None:
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    assert not [each for each in notebook.cells if each.cell_type == "code" and (each.outputs or each.execution_count)]


def test_plans_are_pictures(tour: Any) -> None:
    notebook, folder = tour
    picture = shown(notebook, "%%sql\nEXPLAIN ANALYZE")["text/html"]
    assert "<svg" in picture
    assert "IndexScan" in picture
    assert "paths weighed" in picture
    assert "3 of 271" in shown(notebook, "plan = grid.explain")["text/html"]
    assert (folder / "plan.svg").read_text().startswith("<svg")


def test_a_mistake_is_shown_without_a_traceback(tour: Any) -> None:
    notebook, _ = tour
    (error,) = [each for each in cell(notebook, "%sql SELECT amont").outputs if each.output_type == "error"]
    assert error.traceback == str(error.evalue).split("\n")
    assert "^^^^^" in error.evalue


def test_results_are_frames(tour: Any) -> None:
    notebook, _ = tour
    assert "<table" in shown(notebook, "by_month.head()")["text/html"]
    assert "shape: (5, 2)" in shown(notebook, "%%sql --polars")["text/plain"]
    assert shown(notebook, "import numpy")["text/plain"] == "(2000, 100000)"
    assert "Row(" in shown(notebook, 'grid.map("orders")')["text/plain"]
