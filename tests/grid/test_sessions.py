"""Sessions: settings of their own over shared maps and shared plans, and what ends with them."""

from __future__ import annotations

import math
import threading
import time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pytest

import remuda
from remuda import dbapi, sql
from remuda.errors import ErrorCode, SqlError
from remuda.expr.cancellation import CancellationToken
from remuda.grid.planner import Planner
from remuda.grid.settings import SETTINGS, Engine, Settings
from remuda.grid.statements.dispatch import HANDLERS
from tests.harness.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 2_000
ALL = "SELECT id, n FROM m WHERE n >= 0"
ONE = "SELECT n FROM m WHERE id = ?"
ENDLESS = "SELECT COUNT(*) FROM m a JOIN m b ON a.n < b.n + ? JOIN m c ON b.n < c.n + ? WHERE a.n + b.n + c.n > ?"
"""Eight thousand million rows of a nested loop: some minutes."""
PATIENCE = 30.0


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": range(ROWS), "n": range(ROWS)}))
        yield opened


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were planned, in order."""
    texts: list[str] = []
    plan = Planner.plan

    def counted(planner: Planner, text: str, *rest: Any) -> Any:
        texts.append(text)
        return plan(planner, text, *rest)

    monkeypatch.setattr(Planner, "plan", counted)
    return texts


def test_a_session_has_settings_of_its_own(grid: Any) -> None:
    one, other = grid.session(), grid.session()
    one.sql("SET timeout = 7")
    other.sql("SET memory_limit = '1MB'")
    grid.sql("SET partition_pruning = off")
    assert one.settings == Settings(timeout=7.0)
    assert other.settings == Settings(memory_limit=1_000_000)
    assert grid.default_session.settings == Settings(partition_pruning=False)
    assert grid.session().settings == Settings()
    with pytest.raises(SqlError, match="memory"):
        other.sql("SELECT string_agg(repeat('x', 5000), ',' ORDER BY n) FROM m").fetchall()
    assert len(one.sql("SELECT string_agg(repeat('x', 5000), ',' ORDER BY n) FROM m").fetchall()) == 1


def test_sessions_see_the_same_maps(grid: Any) -> None:
    with grid.session() as one, grid.session() as other:
        one.sql("INSERT INTO m VALUES (?, ?)", ROWS, -1)
        assert other.sql(ONE, ROWS).fetchall() == grid.sql(ONE, ROWS).fetchall() == [(-1,)]
        other.sql("CREATE VIEW v AS SELECT n FROM m WHERE id = 3")
        assert one.sql("SELECT * FROM v").fetchall() == [(3,)]
        assert one.explain("SELECT * FROM v") == grid.explain("SELECT * FROM v")


def test_sessions_with_the_same_settings_share_plans(grid: Any, planned: list[str]) -> None:
    sessions = [grid.session() for _ in range(3)]
    for session in (grid, *sessions):
        session.sql(ALL).fetchall()
        session.sql(ONE, 1).fetchall()
    assert planned == [ALL, ONE]


def test_set_loses_no_plan(grid: Any, planned: list[str]) -> None:
    """Neither those of other sessions nor one's own: whoever sets the old value again finds the old plan."""
    session = grid.session()
    for each in (grid, session):
        each.sql(ALL).fetchall()
    session.sql("SET partition_pruning = off")
    session.sql(ALL).fetchall()
    assert planned == [ALL, ALL]
    for _ in range(3):
        grid.sql(ALL).fetchall()
        session.sql(ALL).fetchall()
        session.sql("SET partition_pruning = on")
        session.sql(ALL).fetchall()
        session.sql("SET partition_pruning = off")
    assert planned == [ALL, ALL]


@pytest.mark.parametrize("change", ["timeout = 5", "memory_limit = '1GB'"])
def test_what_plans_do_not_depend_on_makes_no_new_ones(grid: Any, planned: list[str], change: str) -> None:
    grid.sql(ALL).fetchall()
    grid.sql(f"SET {change}")
    grid.sql(ALL).fetchall()
    grid.sql("SET timeout = off")
    grid.sql("SET memory_limit = off")
    grid.sql(ALL).fetchall()
    assert planned == [ALL]


def test_plans_of_all_scopes_follow_the_catalog(grid: Any) -> None:
    session = grid.session()
    session.sql("SET partition_pruning = off")
    for each in (grid, session):
        assert each.sql(ONE, 1).fetchall() == [(1,)]
    grid.sql("DROP TABLE m")
    grid.sql("CREATE TABLE m (id BIGINT, n VARCHAR, PRIMARY KEY (id))")
    grid.sql("INSERT INTO m VALUES (1, 'new')")
    for each in (grid, session):
        assert each.sql(ONE, 1).fetchall() == [("new",)]
    grid.sql("ANALYZE m")
    assert len(grid.engine.plans) == 0


def test_a_search_path_is_a_sessions_own(grid: Any) -> None:
    session = grid.session()
    assert session.sql(ONE, 1).fetchall() == [(1,)]
    session.search_path = ("elsewhere",)
    with pytest.raises(SqlError, match="unknown"):
        session.sql(ONE, 1)
    assert grid.sql(ONE, 1).fetchall() == [(1,)]


def test_sessions_with_different_settings_at_the_same_time(grid: Any, planned: list[str]) -> None:
    """Each thread sees the plan of its own settings in every round, and no plan is made more than once for each."""
    grid.sql("CREATE TABLE p (id BIGINT, n BIGINT, PRIMARY KEY (id))")
    text, rounds = "SELECT n FROM p WHERE id = 5 OR id = 6", 60

    def use(pruning: str) -> None:
        with grid.session() as session:
            for number in range(rounds):
                session.sql(f"SET timeout = {number + 1}")
                session.sql(f"SET partition_pruning = {pruning}")
                assert session.settings == Settings(partition_pruning=pruning == "on", timeout=number + 1.0)
                assert session.sql(text).fetchall() == []
                assert (session.planner().scope, text) in dict(grid.engine.plans.entries())

    run_together(*(partial(use, pruning) for pruning in ("on", "off", "on", "off")))
    assert grid.default_session.settings == Settings()
    made = [each for each in planned if each == text]
    assert 2 <= len(made) <= 4, "two that plan the same text at the same time both do; afterwards nobody does"


def test_threads_that_share_a_session_run_with_the_settings_of_some_moment(grid: Any) -> None:
    done = threading.Event()
    grid.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")

    def change() -> None:
        try:
            for number in range(300):
                grid.sql(f"SET partition_pruning = {('on', 'off')[number % 2]}")
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            assert grid.sql(ONE, 7).fetchall() == [(7,)]
            assert grid.sql("SELECT id FROM m WHERE n BETWEEN ? AND ?", 3, 4).fetchall() == [(3,), (4,)]

    run_together(change, read, read)
    for (scope, _), entry in grid.engine.plans.entries():
        assert scope == entry.key[0]


# Time


def test_the_timeout_of_a_call_ends_it_and_no_other(grid: Any) -> None:
    started = time.monotonic()
    with pytest.raises(SqlError, match=r"longer than its timeout of 0\.2 s") as error:
        grid.sql(ENDLESS, 1, 1, 1, timeout=0.2).fetchall()
    assert error.value.code is ErrorCode.TIMEOUT
    assert 0.2 <= time.monotonic() - started < PATIENCE
    assert grid.default_session.settings == Settings()
    assert len(grid.sql(ALL).fetchall()) == ROWS
    assert len(grid.sql(ALL, timeout=PATIENCE).fetchall()) == ROWS
    assert grid.sql("UPDATE m SET n = n WHERE n < 10", timeout=PATIENCE).update_count == 10


def test_the_timeout_of_a_call_takes_the_place_of_the_settings(grid: Any) -> None:
    session = grid.session()
    session.sql("SET timeout = 0.0000001")
    with pytest.raises(SqlError, match="timeout"):
        session.sql(ALL).fetchall()
    assert len(session.sql(ALL, timeout=PATIENCE).fetchall()) == ROWS
    assert len(session.sql(ALL, timeout=math.inf).fetchall()) == ROWS
    assert len(grid.sql(ALL).fetchall()) == ROWS


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE m SET n = n + 1",
        "CREATE TABLE c AS SELECT * FROM m",
        "CREATE INDEX i ON m (n)",
        "INSERT INTO m SELECT id + 10000, n FROM m",
    ],
)
def test_a_statement_that_writes_is_done_in_the_time_of_its_call_or_not_at_all(grid: Any, statement: str) -> None:
    before = grid.sql("SELECT COUNT(*), SUM(n) FROM m").fetchall()
    with pytest.raises(SqlError) as error:
        grid.sql(statement, timeout=1e-7)
    assert error.value.code is ErrorCode.TIMEOUT
    grid.engine.statements.start(lambda: None).result(PATIENCE)
    grid.sql("UPDATE m SET n = n WHERE id = 5")
    assert grid.sql("SELECT COUNT(*), SUM(n) FROM m").fetchall() == before
    grid.sql(statement, timeout=PATIENCE)


@pytest.mark.parametrize(
    "timeout", [0, 0.0, -1, -0.5, math.nan, -math.inf, "2", "x", b"2", Decimal(2), True, False, [], object()]
)
def test_a_timeout_that_is_none(grid: Any, timeout: Any) -> None:
    """Said before anything is run, of a lookup from the plan cache too."""
    for text, values in ((ALL, ()), (ONE, (1,)), (ONE, (1,)), ("DROP TABLE m", ())):
        with pytest.raises(SqlError, match="timeout must be a number of seconds above 0, not") as error:
            grid.sql(text, *values, timeout=timeout)
        assert error.value.code is ErrorCode.DATA_EXCEPTION
        grid.sql(ONE, 1)


@pytest.mark.parametrize("timeout", [1, 1.5, 1e300, math.inf, None])
def test_a_timeout_that_is_one(grid: Any, timeout: Any) -> None:
    assert grid.sql(ONE, 1, timeout=timeout).fetchall() == [(1,)]
    assert len(grid.sql(ALL, timeout=timeout).fetchall()) == ROWS
    assert grid.sql("UPDATE m SET n = n WHERE n < 10", timeout=timeout).update_count == 10


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("timeout = -1", "timeout must be a number of seconds, not -1"),
        ("timeout = 'nan'", "timeout must be a number of seconds, not nan"),
        ("timeout = soon", "timeout must be a number of seconds, not soon"),
        ("engine = duck", "engine must be auto, local or spark, not duck"),
        ("partition_pruning = 1", "partition_pruning must be on or off, not 1"),
        ("memory_limit = '1 parsec'", "memory_limit must be a size such as 512MB, not 1 parsec"),
        ("timout = 1", "unknown option: timout"),
    ],
)
def test_values_that_a_setting_cannot_have(grid: Any, value: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as error:
        grid.sql(f"SET {value}")
    assert error.value.code is ErrorCode.PARSING
    assert error.value.position is not None
    assert grid.default_session.settings == Settings()


def test_a_parameter_called_timeout_is_given_in_a_mapping(grid: Any) -> None:
    text = "SELECT id FROM m WHERE n = :timeout"
    assert grid.sql(text, {"timeout": 3}).fetchall() == [(3,)]
    assert grid.sql(text, {"timeout": 3}, timeout=PATIENCE).fetchall() == [(3,)]
    with pytest.raises(SqlError, match="the parameters are timeout; given are none") as error:
        grid.sql(text, timeout=3)
    assert error.value.suggestion is not None
    assert "mapping" in error.value.suggestion
    with dbapi.connect(grid) as connection:
        assert connection.cursor().execute(text, {"timeout": 3}).fetchall() == [(3,)]
    assert grid.sql("SELECT id FROM m WHERE n = :n", n=4, timeout=PATIENCE).fetchall() == [(4,)]


# What ends with what


def test_a_closed_session_refuses_statements(grid: Any) -> None:
    session = grid.session()
    assert session.sql(ONE, 1).fetchall() == session.sql(ONE, 1).fetchall() == [(1,)]
    session.close()
    session.close()
    for call in (
        lambda: session.sql(ONE, 1),
        lambda: session.sql(ALL),
        lambda: session.sql("SET timeout = 1"),
        lambda: session.explain(ALL),
        lambda: session.execute(ONE, (1,)),
    ):
        with pytest.raises(SqlError, match="the session is closed"):
            call()
    assert "closed" in repr(session)
    assert grid.sql(ONE, 1).fetchall() == [(1,)]


def test_closing_a_session_ends_its_results_and_no_others(grid: Any) -> None:
    session, other = grid.session(), grid.session()
    mine, others = session.sql(ALL), other.sql(ALL)
    kept = session.sql(ONE, 1)
    assert mine.fetchone() is not None
    session.close()
    with pytest.raises(SqlError, match="the session is closed"):
        mine.fetchall()
    assert kept.fetchall() == [(1,)], "a result that had its rows at once keeps them, like a list"
    assert len(others.fetchall()) == ROWS


def test_closing_the_grid_closes_its_sessions_and_their_results(grid: Any) -> None:
    session = grid.session()
    left = grid.session().sql(ALL)  # its session is known to nobody else
    results = [session.sql(ALL), grid.sql(ALL), left]
    grid.close()
    for result in results:
        with pytest.raises(SqlError, match="the grid is closed"):
            result.fetchall()
    for call in (lambda: session.sql(ONE, 1), grid.session, lambda: session.explain(ALL)):
        with pytest.raises(SqlError, match="the grid is closed"):
            call()


def test_closing_a_session_stops_a_query_that_another_thread_reads(grid: Any) -> None:
    session, errors = grid.session(), []

    def read() -> None:
        try:
            session.sql(ENDLESS, 1, 1, 1).fetchall()
        except SqlError as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    while not session._results:
        time.sleep(0.001)
    time.sleep(0.05)
    session.close()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert [error.message for error in errors] == ["the session is closed"]


def test_a_session_keeps_its_grid(grid: Any) -> None:
    """What is done at a fork or at the end is the grid's: it must not be forgotten while it is in use."""
    assert grid.session().grid is grid
    assert remuda.open().session().sql("SELECT 1 AS a").fetchall() == [(1,)]


def test_connections_do_not_share_settings(tmp_path: Path) -> None:
    with dbapi.connect(tmp_path / "grid") as one, dbapi.connect(tmp_path / "grid") as other:
        assert one.grid is other.grid
        one.cursor().execute("CREATE TABLE m (id BIGINT, PRIMARY KEY (id))")
        one.cursor().execute("SET timeout = 0.0000001")
        with pytest.raises(dbapi.OperationalError, match="timeout"):
            one.cursor().execute("SELECT COUNT(*) FROM m").fetchall()
        assert other.cursor().execute("SELECT COUNT(*) FROM m").fetchall() == [(0,)]
        assert one.grid.sql("SELECT COUNT(*) FROM m").fetchall() == [(0,)]
        cursor = other.cursor().execute("SELECT COUNT(*) FROM m")
        one.close()
        assert cursor.fetchall() == [(0,)]


def test_a_connection_closes_its_session_only(grid: Any) -> None:
    connection = dbapi.connect(grid)
    session = connection.session
    connection.close()
    with pytest.raises(SqlError, match="the session is closed"):
        session.sql(ONE, 1)
    assert grid.sql(ONE, 1).fetchall() == [(1,)]


# One of each


def test_every_statement_but_a_query_has_a_handler() -> None:
    assert set(HANDLERS) == set(get_args(sql.Statement)) - {sql.Query}


def test_every_setting_says_what_it_does() -> None:
    assert list(SETTINGS) == ["engine", "memory_limit", "partition_pruning", "spill_folder", "timeout"]
    assert all(each.metadata["doc"] and each.metadata["expected"] for each in SETTINGS.values())
    assert Settings().of_plans == (Engine.AUTO, True)


def test_a_commit_that_has_begun_is_not_cancelled() -> None:
    token = CancellationToken(PATIENCE)
    child = CancellationToken(parent=token)
    token.begin_commit()
    assert not token.cancel()
    token.check()
    child.check()
    assert child.cancel()
    with pytest.raises(SqlError):
        child.check()


def test_nothing_commits_that_was_cancelled() -> None:
    token = CancellationToken()
    assert token.cancel()
    with pytest.raises(SqlError) as error:
        token.begin_commit()
    assert error.value.code is ErrorCode.CANCELLED_BY_USER
    with pytest.raises(SqlError):
        CancellationToken(parent=token).check()


@pytest.mark.parametrize("name_of_page", ["sql.md", "reference/settings.md"])
def test_the_page_has_every_setting_as_it_is_defined(name_of_page: str) -> None:
    page = Path(__file__).parents[2].joinpath("docs", name_of_page).read_text()
    for name, each in SETTINGS.items():
        default = {None: "off", True: "on", Engine.AUTO: "auto"}[each.default]
        assert f"| `{name}` | {each.metadata['expected']} | {default} | {each.metadata['doc']} |" in page
