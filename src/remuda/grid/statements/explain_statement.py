"""EXPLAIN: the plan of a query, its fragments, or how it came about, as text or as JSON."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import SqlError, UntypedParametersError
from remuda.expr import Literal, render
from remuda.grid.parameters import arrange, to_stored_values
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.settings import Engine
from remuda.grid.statements.explain_analyze import NOT_RUN, analyze, milliseconds
from remuda.grid.statements.explain_decisions import Decisions
from remuda.optimizer.explain_memo import explain_memo, memo_json
from remuda.optimizer.explain_steps import explain_steps, steps_json
from remuda.optimizer.optimize import FAST_PATH
from remuda.plan import physical
from remuda.plan.explain import explain, explain_fragments, explain_logical, lay_out
from remuda.plan.explain_json import fragments_json, json_text, logical_json, physical_json
from remuda.plan.fragments import ResultColumn
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.sql import Explain, ExplainFormat, ExplainMode, bind
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.grid.planner import Planner
    from remuda.grid.query_run import Call
    from remuda.optimizer import Optimized
    from remuda.sql import BoundQuery

LONGEST_VALUE = 60
"""Characters of a parameter's value that are shown."""


MAXIMUM_TRIES = 5
"""How often EXPLAIN ANALYZE plans anew where what it reads changes meanwhile."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A query that was planned to be shown.

    `values` has the stored values of its parameters, None where none were given; `given` is how EXPLAIN prints them.
    """

    text: str
    bound: BoundQuery
    optimized: Optimized
    seconds: float
    values: tuple[Any, ...] | None = None
    given: tuple[str, ...] = ()


def explain_query(
    call: Call,
    statement: Explain,
    **changes: Any,
) -> str:
    """Explain a statement by a planner with these changes. Only EXPLAIN ANALYZE runs it; what writes then writes."""
    tries = 0
    while True:
        planner = call.session.planner(**changes)
        try:
            planned = _plan(planner, call.text, statement, call.positional, call.named)
            return _show(call, planner, planned, statement)
        except SqlError as error:
            tries += 1
            if not error.invalidates_plan or tries == MAXIMUM_TRIES:
                raise


def explain_result(text: str, statement: Explain) -> Result:
    """Text has a row for each line, JSON is one value."""
    shape = RowShape((ResultColumn("plan", VARCHAR, nullable=False),))
    lines = [text] if statement.format is ExplainFormat.JSON else text.split("\n")
    return Result(shape, [(line,) for line in lines])


def _plan(
    planner: Planner, text: str, statement: Explain, positional: tuple[Any, ...], named: Mapping[str, Any]
) -> _Planned:
    """Plan as the statement itself would be: values that their column's type cannot hold stand there as literals."""
    started = time.perf_counter()
    query = statement.query
    has_values = bool(positional or named) or statement.analyze
    literals: dict[int, Any] = {}
    try:
        bound = bind(query, planner.catalog, planner.search_path)
    except UntypedParametersError as error:
        if not (error.numbers and has_values):
            raise
        given = arrange(query.parameters.names, len(query.parameters), positional, named)
        literals = {number: given[number] for number in error.numbers}
        bound = bind(query, planner.catalog, planner.search_path, literals)
    values: tuple[Any, ...] | None = () if not bound.parameters else None
    printed: list[str] = []
    if has_values:
        given = arrange(bound.parameter_names, len(bound.parameters) - bound.reads_clock, positional, named)
        moment = (datetime.now(UTC),) if bound.reads_clock else ()
        values, errors = to_stored_values(bound.parameters, (*given, *moment))
        if errors.keys() - literals.keys():
            bound = bind(query, planner.catalog, planner.search_path, {number: given[number] for number in errors})
        for number, value in enumerate(given):
            name = f" :{bound.parameter_names[number]}" if bound.parameter_names else ""
            shown = repr(value) if number in errors else render(Literal(values[number], bound.parameters[number]))
            printed.append(f"?{number}{name} = {_shortened(shown)}")
    if statement.mode in {ExplainMode.MEMO, ExplainMode.STEPS}:
        # A lookup is planned without a search, which is what the reader wants to see.
        planner = replace(planner, disabled_rules=planner.disabled_rules | {FAST_PATH}, recorded=True)
    optimized = planner.optimize(bound)
    return _Planned(text, bound, optimized, time.perf_counter() - started, values, tuple(printed))


def _shortened(value: str) -> str:
    """Print a value in a line, and not more of it than tells it from others."""
    line = value.replace("\n", " ")
    return line if len(line) <= LONGEST_VALUE else f"{line[:LONGEST_VALUE]}…"


def _show(call: Call, planner: Planner, planned: _Planned, statement: Explain) -> str:
    as_json, optimized = statement.format is ExplainFormat.JSON, planned.optimized
    match statement.mode:
        case ExplainMode.PLAN | ExplainMode.FRAGMENTS:
            return _show_plan(call, planner, planned, statement)
        case ExplainMode.STEPS:
            return json_text(steps_json(optimized)) if as_json else explain_steps(optimized)
        case ExplainMode.LOGICAL:
            tree = optimized.normalized
            return json_text({"plan": logical_json(tree)}) if as_json else explain_logical(tree)
        case ExplainMode.MEMO:
            return json_text(memo_json(optimized.memo)) if as_json else explain_memo(optimized.memo)


def _show_plan(call: Call, planner: Planner, planned: _Planned, statement: Explain) -> str:
    plan = planner.finish(planned.text, planned.bound, planned.optimized)
    snapshots = zip(plan.maps, call.session.store.snapshot(plan.maps), strict=True)
    decisions = Decisions(plan, planned.values, {definition.id: snapshot for definition, snapshot in snapshots})
    analysis = NOT_RUN
    if statement.analyze:
        assert planned.values is not None, "a statement that runs has its values"
        analysis = analyze(call, plan, planned.values, decisions)
    engine = _engine(planned.optimized)
    why = _reason(planner, planned.bound)
    cuts = statement.mode is ExplainMode.FRAGMENTS
    if statement.format is ExplainFormat.JSON:
        if cuts:
            shown = fragments_json(plan, decisions.members, decisions.of, analysis.values)
        else:
            shown = {"plan": physical_json(plan.tree, decisions.of, analysis.values)}
        if planned.given:
            shown["parameters"] = list(planned.given)
        if statement.analyze:
            shown |= {"planning_seconds": planned.seconds, "execution_seconds": analysis.seconds}
        if why is not None:
            shown["engine"] = f"{engine}   ({why})"
        if analysis.job is not None:
            shown["job"] = {"engine": engine, "why": why, **analysis.job.values()}
        return json_text(shown)
    if cuts:
        lines = [explain_fragments(plan, decisions.members, decisions.of, analysis.figures)]
    else:
        lines = [explain(plan.tree, decisions.of, analysis.figures)]
    if planned.given:
        lines.extend(lay_out([f"parameters: {', '.join(planned.given)}"], ""))
    if statement.analyze:
        lines.append(f"planned in {milliseconds(planned.seconds)}, run in {milliseconds(analysis.seconds)}")
    if why is not None:
        job = "" if analysis.job is None else f"   {analysis.job}"
        lines.append(f"engine: {engine}{job}   ({why})")
    return "\n".join(lines)


def _reason(planner: Planner, bound: BoundQuery) -> str | None:
    """Say why the query runs on the backend it runs on; None for a grid that has but one."""
    if not planner.has_spark:
        return None
    if planner.settings.engine is not Engine.AUTO:
        return f"SET engine = {planner.settings.engine.value}"
    costs = {each: planner.optimize(bound, (each,)).tree.estimate.cost for each in (Convention.LOCAL, Convention.SPARK)}
    return ", ".join(f"{each.value.casefold()} cost≈{round(cost)}" for each, cost in costs.items())


def _engine(optimized: Optimized) -> str:
    """Return `spark, by shuffle` where rows meet in tasks; else what tasks make is finished in this process."""
    on_spark = [node for node in walk(optimized.tree) if node.traits.convention is Convention.SPARK]
    if not on_spark:
        return Convention.LOCAL.value.casefold()
    shuffled = any(isinstance(node, physical.HashExchange | physical.BroadcastExchange) for node in on_spark)
    return f"{Convention.SPARK.value.casefold()}{', by shuffle' if shuffled else ''}"
