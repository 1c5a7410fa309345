"""Statements that are not in the plan cache: parsed, and planned and run, or carried out at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from remuda import sql
from remuda.errors import SqlError, UntypedParametersError, data_error, nested_too_deeply
from remuda.grid.result import Result
from remuda.grid.settings import Engine, with_option
from remuda.grid.statements import ddl
from remuda.grid.statements.copy import copy_from, copy_to, create_map_as
from remuda.grid.statements.ddl import create_view, drop_view
from remuda.grid.statements.describe import describe
from remuda.grid.statements.explain_statement import explain_query, explain_result
from remuda.grid.statements.show import check, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.catalog import MapDefinition
    from remuda.grid.plan_cache import CachedPlan, PlanKey
    from remuda.grid.queries import Queries
    from remuda.sql.parse.statements import Name


def run_statement(queries: Queries, key: PlanKey, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Result:
    started = time.monotonic()
    statement = sql.parse(key[1])
    if isinstance(statement, sql.Query):
        try:
            entry = queries.plan(key, statement)
        except UntypedParametersError as error:
            if not error.numbers:
                raise
            entry = queries.plan_by_values(key[1], error.numbers, positional, named)
        result = _take_shortcut(entry, positional) if not named else None
        return result if result is not None else queries.run(key, entry, positional, named, started)
    match statement:
        case sql.CopyTo():
            written = queries.within_time(
                started, lambda confirm: copy_to(queries, statement, (positional, named), confirm)
            )
            return Result.of_update(written)
        case sql.Explain():
            return explain_result(explain_query(queries, key[1], statement, positional, named), statement)
        case sql.CreateMapAs():
            rows = queries.within_time(
                started, lambda confirm: create_map_as(queries, statement, (positional, named), confirm)
            )
            queries.plans.changed()
            return Result.of_update(rows)
        case _:
            if positional or named:
                raise data_error("this statement takes no parameters")
            return _carry_out(queries, statement, started)


def _take_shortcut(entry: CachedPlan, parameters: tuple[Any, ...]) -> Result | None:
    """None where there is no shortcut, or a stale plan on it: the long way plans anew."""
    try:
        return None if entry.shortcut is None else entry.shortcut(parameters)
    except SqlError as error:
        if not error.invalidates_plan:
            raise
        return None


def _carry_out(queries: Queries, statement: sql.Statement, started: float) -> Result:
    store, search_path = queries.store, queries.search_path
    changed = 0
    match statement:
        case sql.Show():
            queries.look_for_executors()
            return show(statement.what, store, queries.cluster, queries.plans)
        case sql.Describe():
            return describe(queries.planner(), statement)
        case sql.SetOption():
            _set(queries, statement)
        case sql.Check():
            return check(store, _maps_named(queries, statement.name))
        case sql.Checkpoint():
            store.checkpoint()
        case sql.CreateMap():
            ddl.create_map(store, statement)
        case sql.DropMap():
            ddl.drop_map(store, search_path, statement)
        case sql.CreateIndex():
            queries.within_time(started, lambda confirm: ddl.create_index(store, search_path, statement, confirm))
        case sql.DropIndex():
            ddl.drop_index(store, search_path, statement)
        case sql.Truncate():
            changed = store.map(ddl.find_map(store, search_path, statement.name)).truncate()
        case sql.CreateView():
            create_view(store, search_path, statement)
        case sql.DropView():
            drop_view(store, search_path, statement)
        case sql.CopyFrom():
            changed = queries.within_time(started, lambda confirm: copy_from(store, search_path, statement, confirm))
        case sql.Analyze():
            _analyze(queries, statement)
        case sql.Query() | sql.Explain() | sql.CopyTo() | sql.CreateMapAs():
            raise AssertionError("what takes parameters has its own way")
    queries.plans.changed()
    return Result.of_update(changed)


def _analyze(queries: Queries, statement: sql.Analyze) -> None:
    """Statistics are made anew, and so are plans, which were made for the old ones."""
    for definition in _maps_named(queries, statement.name):
        queries.store.map(definition).analyze()
    queries.plans.clear()


def _maps_named(queries: Queries, name: Name | None) -> list[MapDefinition]:
    """The map of this name; without one, all maps."""
    if name is None:
        return list(queries.store.catalog.maps.values())
    return [ddl.find_map(queries.store, queries.search_path, name)]


def _set(queries: Queries, statement: sql.SetOption) -> None:
    settings = with_option(queries.settings, statement.option, statement.value, statement.span, statement.option_span)
    if settings.engine is Engine.SPARK and queries.spark is None:
        raise data_error("there is no Spark session: open the grid with spark=...", span=statement.span)
    queries.settings = settings
    # Plans were made for the settings before.
    queries.plans.clear()


def explain_text(queries: Queries, text: str, positional: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    """Explain a query, given as such or behind EXPLAIN."""
    try:
        statement = sql.parse(text)
        if isinstance(statement, sql.Query):
            statement = sql.Explain(statement)
        if not isinstance(statement, sql.Explain):
            raise data_error("only queries have a plan")
        return explain_query(queries, text, statement, positional, named)
    except SqlError as error:
        raise error.with_text(text) from error.__cause__
    except RecursionError:
        raise nested_too_deeply() from None
