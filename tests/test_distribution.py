"""Wheel and source distribution, built and installed as a user does: into environments that hold nothing else.

The tests need a package index. Without one they are skipped, and say so.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import remuda
from tests.harness import markdown, page_examples

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).parents[1]
DECLARED = {"msgspec", "numpy", "pyarrow", "remudadb", "sqlglot", "sqlglotc", "xxhash"}
"""What an installation without extras consists of."""
MINUTES = 60

# All tests of one process, so that the distribution is built once.
pytestmark = pytest.mark.xdist_group("distribution")


def _run(*command: str | Path, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that is not the checkout, without the variables that would let Python find it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    ended = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=10 * MINUTES
    )
    assert not check or ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended


@dataclass(frozen=True, slots=True)
class Distribution:
    wheel: Path
    sdist: Path

    @property
    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return email.message_from_string(archive.read(name).decode())


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with Remuda in it, and an empty folder to work in."""

    programs: Path
    folder: Path

    def python(self, code: str) -> str:
        return _run(self.programs / "python", "-c", code, folder=self.folder).stdout

    def remuda(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _run(self.programs / "remuda", *arguments, folder=self.folder, check=check)

    def pip(self, *arguments: str) -> str:
        return _run(self.programs / "python", "-m", "pip", *arguments, folder=self.folder).stdout


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """`python -m build`: the source distribution from the checkout, the wheel from the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder / "probe", "hatchling"]
    if _run(*probe, folder=folder, check=False).returncode != 0:
        pytest.skip("no package index: pip cannot download hatchling, which builds the distribution")
    _run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Distribution(wheel, sdist)


def _install(path: Path, folder: Path) -> Environment:
    _run(sys.executable, "-m", "venv", folder / "environment", folder=folder)
    environment = Environment(folder / "environment" / "bin", folder / "work")
    environment.folder.mkdir()
    environment.pip("install", "--quiet", "--disable-pip-version-check", str(path))
    return environment


@pytest.fixture(scope="module")
def installed(distribution: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return _install(distribution.wheel, tmp_path_factory.mktemp("installed"))


def test_the_wheel_has_the_packages_and_nothing_else(distribution: Distribution) -> None:
    with zipfile.ZipFile(distribution.wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "remuda",
        "pyspark_remuda",  # by which Spark finds the format `remuda`
        f"remudadb-{remuda.__version__}.dist-info",
    }
    assert "pyspark_remuda/__init__.py" in names
    assert "remuda/py.typed" in names
    assert "remuda/bench/cases/lookup.py" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    checkout = {f"remuda/{path.relative_to(ROOT / 'src/remuda')}" for path in (ROOT / "src/remuda").rglob("*.py")}
    assert checkout <= set(names)


def test_the_source_distribution_has_what_a_packager_needs(distribution: Distribution) -> None:
    with tarfile.open(distribution.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "tests/conftest.py", "docs/sql.md"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "build/", "dist/"))]


def test_the_metadata_is_true(distribution: Distribution) -> None:
    metadata = distribution.metadata
    assert (metadata["Name"], metadata["Version"]) == ("remudadb", remuda.__version__)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert metadata["Requires-Python"] == ">=3.11"
    classifiers = metadata.get_all("Classifier", [])
    assert not [name for name in classifiers if "Windows" in name or "OS Independent" in name]
    assert {"Operating System :: POSIX :: Linux", "Operating System :: MacOS", "Typing :: Typed"} <= set(classifiers)
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"spark", "pandas", "polars", "shell", "notebook", "s3", "bench", "all"} <= extras
    # The project has no address yet; docs/releasing.md says so. An invented one would be somebody else's.
    assert metadata.get_all("Project-URL") is None
    assert metadata["Home-page"] is None


def test_the_description_renders_and_links_nowhere_that_is_not_there(distribution: Distribution) -> None:
    folder = distribution.wheel.parent
    _run(sys.executable, "-m", "twine", "check", "--strict", distribution.wheel, distribution.sdist, folder=folder)
    text = distribution.metadata.get_payload()
    assert isinstance(text, str)
    assert distribution.metadata["Description-Content-Type"] == "text/markdown"
    assert "pip install remudadb" in text
    assert "| come from elsewhere | DuckDB, SQLite, Redis, Hazelcast |" in text, "the text of a link stays"
    assert "<img" not in text
    links = [*re.findall(r"\]\(([^)]*)\)", text), *re.findall(r'(?:href|src|srcset)="([^"]*)"', text)]
    assert not [link for link in links if not link.startswith("https://")]


def test_only_the_declared_dependencies_are_installed(installed: Environment) -> None:
    assert "No broken requirements found" in installed.pip("check")
    listed = {line.partition("==")[0].lower() for line in installed.pip("freeze", "--all").splitlines()}
    assert {name.partition(" @ ")[0] for name in listed} - {"pip", "setuptools"} == DECLARED


def test_the_installed_package_is_imported_and_typed(installed: Environment) -> None:
    code = "import remuda, importlib.resources as r; print(remuda.__file__, (r.files(remuda) / 'py.typed').is_file())"
    path, typed = installed.python(code).split()
    assert Path(path).is_relative_to(installed.programs.parent)
    assert typed == "True"
    # Every module can be imported, but for those that need packages of an extra.
    of_extras = ("remuda.spark", "remuda.bench.peers", "remuda.cli.shell.prompt_editor", "remuda.notebook")
    installed.python(
        "import importlib, pkgutil, remuda\n"
        "for module in pkgutil.walk_packages(remuda.__path__, 'remuda.'):\n"
        f"    if not module.name.startswith({of_extras}) and '__main__' not in module.name:\n"
        "        importlib.import_module(module.name)\n"
    )


def test_the_command_answers(installed: Environment) -> None:
    assert installed.remuda("--version").stdout == f"remuda {remuda.__version__}\n"
    assert installed.remuda("sql", "-c", "SELECT 40 + 2 AS answer").stdout.split()[:3:2] == ["answer", "42"]
    wrong = installed.remuda("sql", "-c", "SELECT nothing FROM nowhere", check=False)
    assert wrong.returncode == 1
    assert "nowhere" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_durable_folder_is_read_by_the_next_process(installed: Environment) -> None:
    installed.python(
        "import remuda\n"
        "with remuda.open('shop.remuda') as grid:\n"
        "    grid.sql('CREATE TABLE t (k BIGINT, v VARCHAR, PRIMARY KEY (k))')\n"
        "    grid.sql('CREATE INDEX t_v ON t (v) TYPE HASH')\n"
        "    grid.sql('INSERT INTO t SELECT n, CAST(n % 10 AS VARCHAR) FROM generate_series(1, 1000) AS s(n)')\n"
    )
    counted = installed.remuda(
        "sql", "-d", "shop.remuda", "--format", "csv", "-c", "SELECT COUNT(*) AS n FROM t WHERE v = '7'"
    )
    assert counted.stdout == "n\n100\n"
    assert installed.remuda("check", "shop.remuda").returncode == 0


def test_the_demonstration_runs_without_spark(installed: Environment) -> None:
    printed = installed.remuda("demo", "--rows", "10000", "--no-spark").stdout
    assert "Load them into a Remuda folder, with two indexes" in printed
    assert "IndexScan" in printed


def test_the_benchmarks_run_and_name_the_peers_that_are_missing(installed: Environment) -> None:
    printed = installed.remuda("bench", "--quick", "--rows", "1000", "--growth", "1000", "--report", "report").stdout
    assert "DuckDB not installed" in printed
    page = (installed.folder / "report" / "benchmarks.md").read_text(encoding="utf-8")
    assert "Not installed, and so not measured: DuckDB, Polars, LMDB, chDB, Spark." in page


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("remuda.open().sql('SELECT 1').to_pandas()", "pandas"),
        ("remuda.open().sql('SELECT 1').to_polars()", "polars"),
        ("remuda.spark.session()", "spark"),
    ],
)
def test_a_missing_extra_is_named(installed: Environment, call: str, extra: str) -> None:
    printed = installed.python(
        f"import remuda\ntry:\n    {call}\nexcept remuda.RemudaError as error:\n    print(error)"
    )
    assert f"pip install 'remudadb[{extra}]'" in printed


@pytest.mark.slow  # `tests/test_documents.py` runs them from the checkout
@pytest.mark.parametrize(
    "page",
    [page for page in markdown.pages_with_examples() if "remuda.spark.session" not in page.read_text(encoding="utf-8")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_examples_of_a_page_run_without_extras(installed: Environment, page: Path, tmp_path: Path) -> None:
    _run(installed.programs / "python", page_examples.__file__, page, folder=tmp_path)


@pytest.mark.parametrize(
    "last_section",
    ["## With Spark", pytest.param("## How it compares", marks=pytest.mark.slow)],
    ids=["embedded", "with Spark"],
)
def test_the_readme_runs_as_pasted(distribution: Distribution, tmp_path: Path, last_section: str) -> None:
    """Run README's blocks, `pip install` included, in an empty folder and an empty environment, and then once more."""
    _run(sys.executable, "-m", "venv", tmp_path / "environment", folder=tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    page = tmp_path / "README.md"
    page.write_text((ROOT / "README.md").read_text(encoding="utf-8").partition(last_section)[0], encoding="utf-8")
    python = tmp_path / "environment" / "bin" / "python"
    for _ in range(2):
        # pip finds `remudadb` beside the index, in the folder with the wheel that was built.
        printed = _run(
            *("env", f"PIP_FIND_LINKS={distribution.wheel.parent}", python),
            *(page_examples.__file__, page),
            folder=folder,
        )
        assert int(printed.stdout.split()[-2]) >= 7
    where = _run(python, "-c", "import remuda; print(remuda.__file__)", folder=folder).stdout
    assert Path(where).is_relative_to(tmp_path)


def test_the_source_distribution_installs(distribution: Distribution, tmp_path: Path) -> None:
    environment = _install(distribution.sdist, tmp_path)
    assert "42" in environment.remuda("sql", "-c", "SELECT 40 + 2").stdout.split()
    assert "No broken requirements found" in environment.pip("check")
