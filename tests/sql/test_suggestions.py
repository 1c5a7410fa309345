"""Suggestions are near in spelling or in meaning: a table of good ones, and of those that would mislead."""

from __future__ import annotations

import re

import pytest

from remuda.errors import SqlError, nearest
from remuda.plan.aggregates import AGGREGATES
from remuda.sql import parse
from remuda.sql.bind.functions.functions import NAMES
from remuda.sql.parse import other_names
from remuda.sql.parse.type_names import TYPE_NAMES

COLUMNS = ("id", "customer", "customer_name", "amount", "created", "paid", "status")
FUNCTIONS = tuple(sorted({*NAMES, *AGGREGATES}))
STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "SHOW", "SET", "COPY", "DESCRIBE", "ANALYZE")

GOOD = [
    ("ordesr", ("orders", "customers"), "orders"),
    ("order", ("orders", "customers"), "orders"),
    ("Orders ".strip(), ("orders",), "orders"),
    ("amont", COLUMNS, "amount"),
    ("ammount", COLUMNS, "amount"),
    ("costumer", COLUMNS, "customer"),
    ("custmer_nmae", COLUMNS, "customer_name"),
    ("stat", COLUMNS, "status"),
    ("statsu", COLUMNS, "status"),
    ("craeted", COLUMNS, "created"),
    ("SELCT", STATEMENTS, "SELECT"),
    ("INSRET", STATEMENTS, "INSERT"),
    ("DELET", STATEMENTS, "DELETE"),
    ("CRAETE", STATEMENTS, "CREATE"),
    ("SEELCT", STATEMENTS, "SELECT"),
    ("VARCHR", TYPE_NAMES, "VARCHAR"),
    ("BIGNT", TYPE_NAMES, "BIGINT"),
    ("TIMESTMAP", TYPE_NAMES, "TIMESTAMP"),
    ("uper", FUNCTIONS, "upper"),
    ("lenght", FUNCTIONS, "length"),
    ("coalesc", FUNCTIONS, "coalesce"),
    ("cuont", FUNCTIONS, "count"),
    ("regexp_replce", FUNCTIONS, "regexp_replace"),
]
MISLEADING = [
    ("DEALLOCATE", STATEMENTS),
    ("EXECUTE", STATEMENTS),
    ("GRANT", STATEMENTS),
    ("SERIAL", TYPE_NAMES),
    ("MONEY", TYPE_NAMES),
    ("getdate", FUNCTIONS),
    ("changes", FUNCTIONS),
    ("quote", FUNCTIONS),
    ("square", FUNCTIONS),
    ("foo", FUNCTIONS),
    ("age", FUNCTIONS),
    ("total", FUNCTIONS),
    ("string_split", FUNCTIONS),
    ("date_format", FUNCTIONS),
    ("xyz", FUNCTIONS),
    ("id", ("paid", "amount")),
    ("a", ("b", "c")),
    ("x1", ("y1",)),
    ("name", COLUMNS),
    ("price", COLUMNS),
    ("nothing", ("orders", "lines")),
]


@pytest.mark.parametrize(("name", "names", "meant"), GOOD)
def test_a_slip_is_understood(name: str, names: tuple[str, ...], meant: str) -> None:
    assert nearest(name, names) == meant


@pytest.mark.parametrize(("name", "names"), MISLEADING)
def test_another_word_is_no_slip(name: str, names: tuple[str, ...]) -> None:
    assert nearest(name, names) is None


@pytest.mark.parametrize("name", other_names.FUNCTIONS)
def test_functions_of_other_systems_lead_to_functions_that_exist(name: str) -> None:
    assert name not in {*NAMES, *AGGREGATES}, "it exists"
    meant = other_names.FUNCTIONS[name]
    called = re.findall(r"\b([a-z_]+)\(", meant) if " " in meant else [meant]
    others = {"sql", "current_date", "localtime", "now"}
    assert {each for each in called if each not in {*NAMES, *AGGREGATES, *others}} == set()


def test_types_of_other_systems_lead_to_types_that_exist() -> None:
    assert not set(other_names.TYPES) & set(TYPE_NAMES)
    assert {meant for meant in other_names.TYPES.values() if " " not in meant} <= set(TYPE_NAMES)


@pytest.mark.parametrize("statement", other_names.STATEMENTS)
def test_statements_of_other_systems_are_refused_with_advice(statement: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(f"{statement} x" if statement[0].isalpha() else f"{statement}x")
    assert caught.value.suggestion == other_names.STATEMENTS[statement]
    assert caught.value.sqlstate == "0A000"
