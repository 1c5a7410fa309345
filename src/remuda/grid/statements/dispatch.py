"""What runs a statement that is not a query: a table from its type to a function."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from remuda import sql
from remuda.dataclass import dataclass
from remuda.errors import parameter_error, state_error
from remuda.grid.result import Result
from remuda.grid.settings import Engine, with_option
from remuda.grid.statements import ddl
from remuda.grid.statements.copy import copy_from, copy_to, create_map_as
from remuda.grid.statements.describe import describe
from remuda.grid.statements.explain_statement import explain_query, explain_result
from remuda.grid.statements.show import check, show
from remuda.grid.statements.versions import optimize, restore, vacuum

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.grid.query_run import Call


def explain(call: Call, statement: sql.Explain) -> Result:
    return explain_result(explain_query(call, statement), statement)


def set_option(call: Call, statement: sql.SetOption) -> None:
    session = call.session
    settings = with_option(session.settings, statement)
    if settings.engine is Engine.SPARK and session.engine.spark is None:
        raise state_error("there is no Spark session: open the grid with spark=...", span=statement.span)
    session.settings = settings


def checkpoint(call: Call, _: sql.Checkpoint) -> None:
    call.session.store.checkpoint()


def analyze(call: Call, statement: sql.Analyze) -> None:
    """Make statistics anew, and so plans, which were made for the old ones."""
    for definition in ddl.maps_named(call.session, statement.name):
        call.session.store.map(definition).analyze()
    call.session.engine.plans.clear()


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that gives a result, the number of rows that it has changed or None, and what it needs around it."""

    run: Callable[[Call, Any], Result | int | None]
    takes_values: bool = False
    guards_commit: bool = False
    """Whether it calls `begin_commit` of its token: then it can be left at its deadline, and is done or not at all."""
    changes_catalog: bool = False
    """Whether plans are to be compared with the catalog at once."""
    did: str = "changed"
    """What it did to so many rows."""


HANDLERS: dict[type, Handler] = {
    sql.CreateMap: Handler(ddl.create_map, changes_catalog=True),
    sql.CreateMapAs: Handler(create_map_as, takes_values=True, guards_commit=True, changes_catalog=True, did="written"),
    sql.DropMap: Handler(ddl.drop_map, changes_catalog=True),
    sql.CreateIndex: Handler(ddl.create_index, guards_commit=True, changes_catalog=True),
    sql.DropIndex: Handler(ddl.drop_index, changes_catalog=True),
    sql.CreateView: Handler(ddl.create_view, changes_catalog=True),
    sql.DropView: Handler(ddl.drop_view, changes_catalog=True),
    sql.Truncate: Handler(ddl.truncate),
    sql.CopyFrom: Handler(copy_from, guards_commit=True, did="copied"),
    sql.CopyTo: Handler(copy_to, takes_values=True, guards_commit=True, did="copied"),
    sql.Analyze: Handler(analyze),
    sql.Check: Handler(check),
    sql.Checkpoint: Handler(checkpoint),
    sql.Restore: Handler(restore),
    sql.Optimize: Handler(optimize),
    sql.Vacuum: Handler(vacuum),
    sql.SetOption: Handler(set_option),
    sql.Show: Handler(show),
    sql.Describe: Handler(describe),
    sql.Explain: Handler(explain, takes_values=True),
}


def run_statement(call: Call, statement: sql.Statement) -> Result:
    engine = call.session.engine
    handler = HANDLERS[type(statement)]
    if (call.positional or call.named) and not handler.takes_values:
        raise parameter_error("this statement takes no parameters")
    run = partial(handler.run, call, statement)
    answer = engine.run_writing(call.token, run, call.text) if handler.guards_commit else run()
    if handler.changes_catalog:
        engine.plans.changed()
    return answer if isinstance(answer, Result) else Result.of_statement(answer, handler.did)
