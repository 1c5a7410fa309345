"""Every case of every `.plan` file: EXPLAIN's text, and which rules fired.

`pytest tests/plans --rewrite` writes the plans as they are now into the files. Read the difference before
committing it: a golden plan is right because somebody read it, not because it is what came out.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.optimizer.finishing.common_expressions import SHARE_RULE
from remuda.optimizer.finishing.common_plans import SPOOL_RULE
from remuda.optimizer.finishing.local_exchange import place_local_exchanges
from remuda.optimizer.finishing.runtime_decisions import RUNTIME_RULES
from remuda.optimizer.optimize import FAST_PATH
from remuda.optimizer.populate import EXPLORE_RULE
from remuda.rules.explore.explore import AGGREGATE_RULES, SIMPLE_RULES
from remuda.rules.implement.implement import IMPLEMENT_RULES
from remuda.rules.normalize.normalize import NORMALIZE_RULES
from tests.harness import plan_file
from tests.harness.generated import rows_of
from tests.harness.plan_trace import explain_with_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
CASES = [(path, case) for path in sorted(FOLDER.glob("*.plan")) for case in plan_file.read(path).cases]
_LISTS = (*NORMALIZE_RULES.values(), SIMPLE_RULES, AGGREGATE_RULES, *IMPLEMENT_RULES.values())
RULES = {
    *(rule.__name__ for rules in _LISTS for rule in rules),
    *(rule.__name__ for rule, _ in RUNTIME_RULES),
    *(EXPLORE_RULE, SHARE_RULE, SPOOL_RULE, FAST_PATH, place_local_exchanges.__name__),
}
"""All that `expect` and `disable` can name."""


def test_every_rule_has_a_case_that_expects_it() -> None:
    expected = {rule for _, case in CASES for rule in case.expect}
    missing = sorted(RULES - expected)
    assert not missing, f"without a case that has expect= and its name: {', '.join(missing)}"


def test_cases_name_rules_that_exist() -> None:
    named = {rule for _, case in CASES for rule in case.expect | case.disable}
    unknown = sorted(named - RULES)
    assert not unknown, f"no such rules: {', '.join(unknown)}"


def _open(path: Path, members: int) -> Any:
    grid = remuda.open(members=members)
    for block in plan_file.read(path).header:
        match block:
            case plan_file.Setup(statements):
                for statement in statements:
                    grid.sql(statement)
            case plan_file.Load(map_name, query):
                grid.load(map_name, rows_of(query))
    return grid


@pytest.fixture(scope="module")
def grids() -> Iterator[dict[tuple[Path, int], Any]]:
    """The grids opened so far, one for each file and number of members."""
    opened: dict[tuple[Path, int], Any] = {}
    yield opened
    for grid in opened.values():
        grid.close()


@pytest.fixture(scope="module")
def new_plans() -> Iterator[dict[Path, dict[int, str]]]:
    """What `--rewrite` has to write, when all cases have run: before that the line numbers must stay."""
    plans: dict[Path, dict[int, str]] = defaultdict(dict)
    yield plans
    for path, by_line in plans.items():
        path.write_text(plan_file.rewrite(path.read_text(encoding="utf-8"), by_line), encoding="utf-8")


@pytest.mark.parametrize(("path", "case"), CASES, ids=[f"{path.name}:{case.line}" for path, case in CASES])
def test_plan(
    path: Path,
    case: plan_file.Case,
    grids: dict[tuple[Path, int], Any],
    new_plans: dict[Path, dict[int, str]],
    pytestconfig: pytest.Config,
) -> None:
    place = (path, case.members)
    if place not in grids:
        grids[place] = _open(*place)
    text, fired = explain_with_trace(grids[place], case.sql, disabled=case.disable)
    assert case.expect <= fired, f"did not fire: {', '.join(sorted(case.expect - fired))}"
    assert not case.disable & fired, f"fired though disabled: {', '.join(sorted(case.disable & fired))}"
    if pytestconfig.getoption("--rewrite"):
        new_plans[path][case.line] = text
    else:
        assert text.rstrip("\n") == case.expected


@pytest.mark.parametrize(("path", "case"), CASES, ids=[f"{path.name}:{case.line}" for path, case in CASES])
def test_estimates_are_in_one_column_of_a_terminal(
    path: Path, case: plan_file.Case, pytestconfig: pytest.Config
) -> None:
    """EXPLAIN MEMO and LOGICAL have a line for each operator, however long it is."""
    if case.sql.startswith(("EXPLAIN MEMO", "EXPLAIN LOGICAL")) or pytestconfig.getoption("--rewrite"):
        return
    lines = case.expected.split("\n")
    assert all(len(line) <= 98 for line in lines), path
    assert len({line.index(" rows≈") for line in lines if " rows≈" in line}) == 1
