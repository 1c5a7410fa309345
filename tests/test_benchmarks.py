"""The benchmarks measure fairly, compare like with like, and report what they measured. No time is asserted."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import remuda
from benchmarks import access_paths, estimates, join_cases, join_orders
from remuda.bench import arguments, data, measure, plots
from remuda.bench.case import REMUDA, Setting, size_of
from remuda.bench.cases import GROUPS
from remuda.bench.measure import Budget
from remuda.bench.peers import KINDS, Peers
from remuda.bench.run import Plan, run
from remuda.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from remuda.bench.run import Measurement

ROWS = 3_000
SHORT = Budget(seconds=0.0, fewest_turns=1, slow_call=0.0)
OTHERS = [name for name in KINDS if name not in ("SQLite", "Spark")]
"""The peers that may be absent and need no Java."""


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "NULLs"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    rows = data.make(ROWS, nulls=request.param)
    made = Setting(rows, Peers(rows))
    yield made
    made.peers.close()


@pytest.mark.parametrize("group", ["lookup", "scan", "series", "members"])
def test_all_contenders_give_answers_of_the_same_size(group: str, setting: Setting) -> None:
    if group == "members" and setting.data.table["customer"].null_count:
        pytest.skip("the key of the members' map has no NULLs")
    for case in GROUPS[group](setting):
        if case.same_answers:
            for _ in range(5):
                sizes = {name: size_of(ask()) for name, ask in case.contenders.items() if ask is not None}
                assert len(set(sizes.values())) == 1, (case.name, sizes)


def test_the_peers_find_the_same_rows(setting: Setting) -> None:
    """Sizes alone would not show a peer that was loaded wrongly."""
    texts = [
        "SELECT COUNT(*), COUNT(amount), COUNT(customer), MIN(id), MAX(qty) FROM orders",
        "SELECT COUNT(*), MIN(qty) FROM orders WHERE qty < 50 AND amount > 1000",
    ]
    for text in texts:
        expected = [tuple(row) for row in setting.peers.remuda.rows(text)]
        for name in ("SQLite", "DuckDB", "DuckDB file", "chDB"):
            peer = setting.peers.find(name)
            if peer is not None:
                found = [tuple(row.values() if isinstance(row, dict) else row) for row in peer.rows(text)]
                assert found == expected, name
    lmdb = setting.peers.find("LMDB")
    if lmdb is not None:
        key = setting.data.keys[0]
        ((_, customer, status, amount, _, qty),) = setting.peers.remuda.rows("SELECT * FROM orders WHERE id = ?", key)
        stored = lmdb.get(key)
        assert [stored[at] for at in (0, 1, 2, 4)] == [customer, status, amount, qty]


def test_every_function_has_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SHORTEST_TURN", 0.0001)
    budget = Budget(seconds=0.0, fewest_turns=3, slow_call=10.0)
    calls: list[str] = []
    timings = measure.interleave({name: lambda name=name: calls.append(name) for name in "ab"}, budget)  # type: ignore[misc]
    assert set(timings) == {"a", "b"}
    assert all(0 < timing.minimum <= timing.median for timing in timings.values())
    assert all(timing.processor and timing.processor.minimum <= timing.processor.median for timing in timings.values())
    assert min(calls.count("a"), calls.count("b")) >= budget.fewest_turns


def test_the_processor_time_of_processes_is_told_beside_the_time_that_passes() -> None:
    plan = Plan(ROWS, budget=SHORT, only="new process to SELECT 1", with_spark=False)
    measured = {each.name: each for each in run(plan)}
    assert list(measured) == ["new process to SELECT 1", "new process to SELECT 1, processor"]
    passed, worked = (each.timings["Python alone"] for each in measured.values())
    assert passed is not None
    assert worked == passed.processor
    assert worked.minimum > 0


def test_the_benchmarks_stop_no_session_that_they_have_not_started(spark: SparkSession) -> None:
    peers = Peers(data.make(ROWS))
    peer = peers.find("Spark")
    assert peer is not None
    assert len(peer.rows("SELECT * FROM orders", "parquet")) == ROWS
    peers.close()
    assert spark.range(3).count() == 3


def test_processor_time_has_that_of_processes_which_a_call_starts() -> None:
    code = "import time; sum(range(1_000_000)); print(time.process_time())"
    started = measure.Clock.now(measure.worked_here)
    theirs = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    taken = measure.Clock.now(measure.worked_here).since(started, 1)
    assert taken.worked >= float(theirs) > 0
    assert taken.since(measure.Clock(0, 0), 2) == measure.Clock(taken.passed / 2, taken.worked / 2)


def test_ranges_hold_exactly_as_many_rows_as_they_say() -> None:
    rows = data.make(ROWS)
    for low, high in rows.amount_ranges(10)[:20]:
        assert sum(low <= amount <= high for amount in rows.sorted_amounts) == 10


def test_nulls_are_in_every_column_but_the_key() -> None:
    table = data.make(ROWS, nulls=True).table
    assert table["id"].null_count == 0
    for name in table.column_names[1:]:
        assert 0 < table[name].null_count < ROWS // 20, name
    assert all(column.null_count == 0 for column in data.make(ROWS).table.columns)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on a tiny run of every group that needs no Java."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arguments, "QUICK", SHORT)
        options = [
            "bench",
            "--quick",
            "--rows",
            str(ROWS),
            "--growth",
            "1000",
            "--report",
            str(folder),
            "--remark",
            "A test.",
        ]
        assert main(options) == 0
    return folder


def test_a_report_names_command_machine_versions_and_every_contender(report: Path) -> None:
    page = (report / "benchmarks.md").read_text(encoding="utf-8")
    assert f"$ remuda bench --quick --rows {ROWS} " in page
    assert "**A test.**" in page
    assert f"| rows | {ROWS:,}" in page
    for fact in ("cores", "memory", "system", "Python", "versions"):
        assert re.search(rf"^\| {fact} \| .+ \|$", page, re.MULTILINE), fact
    for name in OTHERS:
        cells = re.findall(rf"^\|.*\| {re.escape(name)} \|.*$", page, re.MULTILINE)
        assert cells, f"no table has a column for {name}"
    for heading in (
        "Where Remuda is slower",
        "Lookups",
        "Scans, groups, joins",
        "Growth",
        "Start-up",
        "How it is measured",
    ):
        assert re.search(rf"^###? {heading}$", page, re.MULTILINE), heading
    assert "filter 50 %, sum and count, NULLs" in page


def test_every_row_of_a_report_has_a_time_a_dash_or_says_not_installed(report: Path) -> None:
    page = (report / "benchmarks.md").read_text(encoding="utf-8")
    tables = [
        block.splitlines() for block in page.split("\n\n") if block.startswith("| case | Remuda | ") and "÷" in block
    ]
    assert len(tables) >= 7
    for heads, _, *rows in tables:
        width = heads.count("|")
        for row in rows:
            assert row.count("|") == width, row
            _, _, *cells, _ = [cell.strip() for cell in row.split("|")][:-1]
            assert all(re.fullmatch(r"[\d.]+ (µs|ms|s)|–|not installed", cell) for cell in cells), row


def test_the_plots_of_a_report_are_well_formed(report: Path) -> None:
    page = (report / "benchmarks.md").read_text(encoding="utf-8")
    linked = re.findall(r"!\[.+?\]\((.+?)\)", page)
    assert sorted(linked) == sorted(f"benchmarks/{path.name}" for path in (report / "benchmarks").iterdir())
    assert {"benchmarks/growth.svg", "benchmarks/nulls.svg", "benchmarks/start-up.svg"} <= set(linked)
    for name in linked:
        root = ET.parse(report / name).getroot()
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert 0 <= float(text.attrib["x"]) <= width, text.text
            assert 0 <= float(text.attrib["y"]) <= height, text.text
        assert "NaN" not in ET.tostring(root, encoding="unicode")


def test_a_peer_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = {KINDS[name].package for name in OTHERS}
    monkeypatch.setattr("remuda.bench.peers.find_spec", lambda name: None if name in absent else find_spec(name))
    monkeypatch.setattr(arguments, "QUICK", SHORT)
    assert main(["bench", "--quick", "--rows", str(ROWS), "--only", "lookup"]) == 0
    printed = capsys.readouterr().out
    for name in ("LMDB", "DuckDB", "Polars", "chDB"):
        assert f"{name} not installed" in printed
    assert "SQLite not installed" not in printed


def _measured(plan: Plan) -> list[Measurement]:
    return list(run(plan))


def test_only_selects_groups_and_cases() -> None:
    series = _measured(Plan(ROWS, budget=SHORT, only="series", with_spark=False))
    assert {each.group for each in series} == {"series"}
    gets = _measured(Plan(ROWS, sizes=(1_000,), budget=SHORT, only="map.get", with_spark=False))
    assert [(each.group, each.rows) for each in gets] == [("lookup", ROWS), ("growth", 1_000), ("growth", ROWS)]
    assert all(REMUDA in each.timings for each in gets)


def test_a_name_that_no_case_has_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(arguments, "run", lambda _: iter(()))
    assert main(["bench", "--only", "lokup"]) == 1
    assert "no group is called 'lokup'" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["10", "many", "1000,x"])
def test_a_wrong_number_of_rows_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--growth", value])
    assert "argument --growth" in capsys.readouterr().err


def test_the_benchmarks_import_no_peer_before_a_case_asks_for_it() -> None:
    code = "import sys, remuda.bench.arguments; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"duckdb", "polars", "lmdb", "chdb", "pyspark"} & set(loaded)


def test_styles_of_peers_differ_in_shape_or_filling() -> None:
    looks = [(style.shape, style.hollow) for style in plots.STYLES.values()]
    assert len(looks) == len(set(looks)), "colour must not be the only difference"
    assert set(KINDS) <= set(plots.STYLES)


def test_estimates_are_compared_with_actual_rows(capsys: pytest.CaptureFixture[str]) -> None:
    with remuda.open() as grid:
        estimates.fill(grid, ROWS)
        found = [estimates.estimate(grid, f"facts WHERE {each}", each) for each in estimates.CONDITIONS]
        found += [estimates.estimate(grid, each, each) for each in estimates.JOINS]
        found += estimates.operators(
            grid, "query", "SELECT qty FROM facts JOIN customers ON cust = name WHERE grade = 1"
        )
    assert [each.actual for each in found if each.text == "uniform IS NULL"] == [0]
    assert all(each.error >= 1 and each.expected >= 0 for each in found)
    kinds = {each.text.split()[1] for each in found if each.text.startswith("query")}
    assert "MapScan" in kinds
    assert any(kind.endswith("Join") for kind in kinds)
    estimates.summarise("conditions", found)
    assert f"conditions: {len(found)} estimates, median" in capsys.readouterr().out
    assert estimates.Estimated("a tenth", 1.0, 10).error == estimates.Estimated("tenfold", 10.0, 1).error == 10
    assert estimates.Estimated("nothing", 0.0, 0).error == 1


def test_access_paths_are_measured_by_queries_with_the_same_answer() -> None:
    cases = list(access_paths.cases())
    assert len({(case.text, case.values) for case in cases}) == len(cases) > 200
    with remuda.open() as grid:
        access_paths.fill(grid, ROWS)
        for case in cases:
            answers = [
                sorted(grid.sql(case.text.format(map=name), *case.values).fetchall(), key=repr) for name in case.maps
            ]
            assert all(answer == answers[0] for answer in answers), case


def test_plans_of_a_join_have_the_same_answer() -> None:
    forced = 0
    with remuda.open() as grid:
        join_cases.fill(grid, ROWS)
        for join in join_cases.joins():
            others = join_orders.forced_plans(grid, join)
            assert others, join.name
            forced += len(others)
            plans = (*join_orders.own_plans(join), *join_orders.own_plans(join), *others)
            answers = [_rounded(grid.sql(plan.text, *plan.values).fetchall()) for plan in plans]
            assert all(answer == answers[0] for answer in answers), join.name
        kept = grid.sql("SHOW PLANS").fetchall()
    assert sum("-- forced" in str(row) for row in kept) >= forced > 300


def _rounded(rows: list[Any]) -> list[str]:
    """Return the rows in some order, with sums of floating-point numbers as far as their order does not matter."""
    return sorted(str([float(f"{value:.9g}") if isinstance(value, float) else value for value in row]) for row in rows)
