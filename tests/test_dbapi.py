"""PEP 249: its public compliance suite, and what that suite leaves open."""

from __future__ import annotations

import threading
from decimal import Decimal

import dbapi20
import pytest

import remuda
from remuda import dbapi


class TestCompliance(dbapi20.DatabaseAPI20Test):
    driver = dbapi

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.connect_args = (tmp_path / "shop.remuda",)

    def test_nextset(self):
        """Optional: a statement has one result."""

    def test_setoutputsize(self):
        """Values are never cut: there is nothing to set."""


def test_connections_of_one_process_share_the_folder(tmp_path):
    first, second = dbapi.connect(tmp_path / "a"), dbapi.connect(tmp_path / "a")
    first.cursor().execute("CREATE TABLE t (a INT, PRIMARY KEY (a))")
    second.cursor().execute("INSERT INTO t VALUES (1)")
    first.close()
    assert second.cursor().execute("SELECT a FROM t").fetchall() == [(1,)]
    second.close()
    with dbapi.connect(tmp_path / "a") as again:
        assert again.cursor().execute("SELECT a FROM t").fetchone() == (1,)


def test_options_can_not_be_chosen_for_an_open_folder(tmp_path):
    with dbapi.connect(tmp_path / "a"), pytest.raises(dbapi.InterfaceError, match="open already"):
        dbapi.connect(tmp_path / "a", partitions=3)


def test_an_empty_path_is_refused_rather_than_taken_for_the_current_folder():
    with pytest.raises(dbapi.Error, match="the path is empty"):
        dbapi.connect("")


def test_a_given_grid_stays_open():
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (a INT, PRIMARY KEY (a))")
        dbapi.connect(grid).close()
        assert grid.sql("SELECT COUNT(*) FROM t").fetchone() == (0,)


@pytest.fixture
def cursor():
    with dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT, b DECIMAL(10, 2), c VARCHAR, PRIMARY KEY (a))")
        yield cursor


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT nothing FROM t", dbapi.ProgrammingError),
        ("SELECT a FROM nowhere", dbapi.ProgrammingError),
        ("SELEC a FROM t", dbapi.ProgrammingError),
        ("SELECT 1 / 0", dbapi.DataError),
        ("INSERT INTO t VALUES (1, 1, 'x')", dbapi.IntegrityError),
        ("INSERT INTO t VALUES (NULL, 1, 'x')", dbapi.IntegrityError),
    ],
)
def test_errors_are_of_their_kind_and_keep_their_cause(cursor, statement, error):
    cursor.execute("INSERT INTO t VALUES (1, 2.5, 'one')")
    with pytest.raises(error) as caught:
        cursor.execute(statement).fetchall()
    assert isinstance(caught.value.__cause__, remuda.SqlError)
    assert cursor.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)


def test_description_has_type_digits_and_nullability(cursor):
    cursor.execute("SELECT a, b, c FROM t")
    names, types, *_, digits, scales, nullable = zip(*cursor.description, strict=True)
    assert names == ("a", "b", "c")
    assert types == (dbapi.NUMBER, dbapi.NUMBER, dbapi.STRING)
    assert types[0] != dbapi.STRING
    assert (digits, scales, nullable) == ((None, 10, None), (None, 2, None), (False, True, True))


def test_parameters_by_place_and_by_name(cursor):
    cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, Decimal("2.50"), "one"), (2, None, "two")])
    assert cursor.rowcount == 2
    assert cursor.execute("SELECT c FROM t WHERE a = :wanted", {"wanted": 2}).fetchall() == [("two",)]


def test_rows_come_by_iteration_and_as_arrow(cursor):
    cursor.executemany("INSERT INTO t VALUES (?, NULL, NULL)", [(number,) for number in range(5)])
    cursor.execute("SELECT a FROM t ORDER BY a")
    assert next(cursor) == (0,)
    assert [row[0] for row in cursor] == [1, 2, 3, 4]
    assert cursor.execute("SELECT a FROM t ORDER BY a").fetch_arrow_table().to_pydict() == {"a": [0, 1, 2, 3, 4]}


def test_rollback_is_refused_rather_than_ignored(cursor):
    with pytest.raises(dbapi.NotSupportedError):
        cursor.connection.rollback()


def test_executemany_of_a_query_is_refused(cursor):
    with pytest.raises(dbapi.ProgrammingError, match="no rows"):
        cursor.executemany("SELECT a FROM t WHERE a = ?", [(1,)])


def test_what_is_closed_stays_closed(cursor):
    connection = dbapi.connect()
    late = connection.cursor()
    connection.close()
    with pytest.raises(dbapi.ProgrammingError, match="connection is closed"):
        late.execute("SELECT 1")
    cursor.execute("SELECT 1")
    with pytest.raises(dbapi.ProgrammingError, match="not a query"):
        cursor.execute("INSERT INTO t VALUES (1, NULL, NULL)").fetchone()


def test_threads_share_a_connection(cursor):
    def insert(start):
        own = cursor.connection.cursor()
        own.executemany("INSERT INTO t VALUES (?, NULL, NULL)", [(start + step,) for step in range(50)])

    threads = [threading.Thread(target=insert, args=(100 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cursor.execute("SELECT COUNT(*) FROM t").fetchone() == (400,)


def test_a_uri_is_an_address_and_no_folder(tmp_path):
    with remuda.open(tmp_path / "a") as grid:
        grid.sql("CREATE TABLE t (a INT, PRIMARY KEY (a))")
        grid.sql("INSERT INTO t VALUES (7)")
    options = {"read_only": True, "cache": tmp_path / "cache"}
    with dbapi.connect(f"file://{tmp_path}/a", **options) as connection:
        assert connection.cursor().execute("SELECT a FROM t").fetchall() == [(7,)]


@pytest.mark.parametrize("parameters", [None, 5, "1", {1}])
def test_parameters_are_a_sequence_or_a_mapping(cursor, parameters):
    with pytest.raises(dbapi.ProgrammingError, match="parameters are a sequence or a mapping, not a"):
        cursor.execute("SELECT 1", parameters)


@pytest.mark.parametrize(
    ("statement", "kind", "sqlstate"),
    [
        ("INSERT INTO t VALUES (1, 1)", dbapi.IntegrityError, "23505"),
        ("INSERT INTO t VALUES (NULL, 1)", dbapi.IntegrityError, "23502"),
        ("CREATE TABLE t (k BIGINT, PRIMARY KEY (k))", dbapi.ProgrammingError, "42P07"),
        ("SELECT * FROM u", dbapi.ProgrammingError, "42P01"),
        ("SELECT m FROM t", dbapi.ProgrammingError, "42703"),
        ("SELECT f(n) FROM t", dbapi.ProgrammingError, "42883"),
        ("SELECT FROM WHERE", dbapi.ProgrammingError, "42601"),
        ("SELECT * FROM t WHERE n = TRUE", dbapi.ProgrammingError, "42804"),
        ("SELECT 1 / 0", dbapi.DataError, "22012"),
        ("SELECT n + 9223372036854775807 FROM t", dbapi.DataError, "22003"),
        ("SELECT CAST('x' AS BIGINT)", dbapi.DataError, "22P02"),
        ("SELECT CAST('01/02/2024' AS DATE)", dbapi.DataError, "22007"),
        ("ALTER TABLE t ADD COLUMN x BIGINT", dbapi.NotSupportedError, "0A000"),
        ("SELECT ?", dbapi.ProgrammingError, "07001"),
    ],
)
def test_the_exception_is_chosen_by_the_sqlstate(statement: str, kind: type[dbapi.Error], sqlstate: str) -> None:
    with dbapi.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (k BIGINT, n BIGINT, PRIMARY KEY (k))")
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        with pytest.raises(dbapi.Error) as caught:
            cursor.execute(statement).fetchall()
        assert type(caught.value) is kind
        assert caught.value.sqlstate == sqlstate
        assert caught.value.__cause__.sqlstate == sqlstate  # type: ignore[union-attr]
