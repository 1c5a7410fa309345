"""EXPLAIN: the plan of a query, its fragments, or how it came about, as text, as JSON or as a picture."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import SqlError, UntypedParametersError, data_error
from remuda.expr import Literal, render
from remuda.grid.parameters import arrange, to_stored_values
from remuda.grid.result import Result
from remuda.grid.rows import RowShape
from remuda.grid.settings import Engine
from remuda.grid.statements.explain_analyze import NOT_RUN, analyze, milliseconds
from remuda.grid.statements.explain_decisions import Decisions
from remuda.grid.statements.explanation import Explanation
from remuda.optimizer.explain.explain_memo import explain_memo, memo_json
from remuda.optimizer.explain.explain_steps import explain_steps, steps_json
from remuda.optimizer.optimize import FAST_PATH
from remuda.plan import physical
from remuda.plan.explain import explain, explain_fragments, explain_logical, lay_out
from remuda.plan.explain_json import fragments_json, json_text, logical_json, physical_json
from remuda.plan.result_column import ResultColumn
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.sql import Explain, ExplainFormat, ExplainMode, bind
from remuda.types import VARCHAR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.grid.planner import Planner
    from remuda.grid.query_run import Call
    from remuda.grid.statements.explain_analyze import Analysis
    from remuda.optimizer import Optimized
    from remuda.plan.fragments import Plan
    from remuda.plan.picture import Picture
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
    is_for_values: bool = False
    """Whether values that leave more or fewer rows have other plans."""


def explain_query(call: Call, statement: Explain, *, pictured: bool = False, **changes: Any) -> Explanation:
    """Explain a statement by a planner with these changes. Only EXPLAIN ANALYZE runs it; what writes then writes.

    A plan that shall be `pictured` comes with its picture, whatever the format of the text is.
    """
    pictured = statement.mode.is_plan and (pictured or statement.format.is_picture)
    tries = 0
    while True:
        planner = call.session.planner(**changes)
        try:
            planned = _plan(planner, call.text, statement, call.positional, call.named)
            if statement.mode.is_plan:
                return _show_plan(call, planner, planned, statement, pictured=pictured)
            return Explanation(_show(planned.optimized, statement))
        except SqlError as error:
            tries += 1
            if not error.invalidates_plan or tries == MAXIMUM_TRIES:
                raise


def with_options(statement: Explain, format_name: str | None, *, analyze: bool) -> Explain:
    """Return the statement with the options that were given beside its text."""
    known = {each.value.lower(): each for each in ExplainFormat}
    if format_name is not None and format_name not in known:
        raise data_error(f"format must be one of {', '.join(known)}, not {format_name!r}")
    changed = replace(
        statement,
        analyze=analyze or statement.analyze,
        format=statement.format if format_name is None else known[format_name],
    )
    if not changed.mode.is_plan and (changed.analyze or changed.format.is_picture):
        asked = "ANALYZE" if changed.analyze else f"FORMAT {changed.format.value}"
        raise data_error(f"{asked} shows the plan, not {changed.mode.value}")
    return changed


def explain_result(text: str, statement: Explain) -> Result:
    """Return a row for each line of text; every other format is one value."""
    shape = RowShape((ResultColumn("plan", VARCHAR, nullable=False),))
    lines = text.split("\n") if statement.format is ExplainFormat.TEXT else [str(text)]
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
            literals = {**literals, **{number: given[number] for number in errors}}
            bound = bind(query, planner.catalog, planner.search_path, literals)
        for number, value in enumerate(given):
            name = f" :{bound.parameter_names[number]}" if bound.parameter_names else ""
            shown = repr(value) if number in errors else render(Literal(values[number], bound.parameters[number]))
            printed.append(f"?{number}{name} = {_shortened(shown)}")
    if statement.mode in {ExplainMode.MEMO, ExplainMode.STEPS}:
        # A lookup is planned without a search, which is what the reader wants to see.
        planner = replace(planner, disabled_rules=planner.disabled_rules | {FAST_PATH}, recorded=True)
    optimized = planner.optimize(bound)
    is_for_values = has_values and not literals and bool(planner.value_bounds(bound, optimized))
    if is_for_values:
        assert values is not None, "the parameters have values"
        bound = bind(query, planner.catalog, planner.search_path, expected=values)
        optimized = planner.optimize(bound)
    seconds = time.perf_counter() - started
    return _Planned(text, bound, optimized, seconds, values, tuple(printed), is_for_values=is_for_values)


def _shortened(value: str) -> str:
    """Print a value in a line, and not more of it than tells it from others."""
    line = value.replace("\n", " ")
    return line if len(line) <= LONGEST_VALUE else f"{line[:LONGEST_VALUE]}…"


def _show(optimized: Optimized, statement: Explain) -> str:
    """Show how a plan came about."""
    as_json = statement.format is ExplainFormat.JSON
    match statement.mode:
        case ExplainMode.STEPS:
            return json_text(steps_json(optimized)) if as_json else explain_steps(optimized)
        case ExplainMode.LOGICAL:
            tree = optimized.normalized
            return json_text({"plan": logical_json(tree)}) if as_json else explain_logical(tree)
        case ExplainMode.MEMO:
            return json_text(memo_json(optimized.memo)) if as_json else explain_memo(optimized.memo)
        case ExplainMode.PLAN | ExplainMode.FRAGMENTS:
            raise AssertionError("a plan is shown with what values decide")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A plan with all that EXPLAIN says of it, in whichever format."""

    planned: _Planned
    plan: Plan
    decisions: Decisions
    analysis: Analysis
    statement: Explain
    engine: str
    why: str | None

    def text(self) -> str:
        decide, figures = self.decisions.of, self.analysis.figures
        if self.statement.mode is ExplainMode.FRAGMENTS:
            lines = [explain_fragments(self.plan, self.decisions.members, decide, figures)]
        else:
            lines = [explain(self.plan.tree, decide, figures)]
        if self.planned.given:
            lines.extend(lay_out([self._parameters()], ""))
        return "\n".join([*lines, *self._summary()])

    def json(self) -> str:
        decide, values = self.decisions.of, self.analysis.values
        if self.statement.mode is ExplainMode.FRAGMENTS:
            shown = fragments_json(self.plan, self.decisions.members, decide, values)
        else:
            shown = {"plan": physical_json(self.plan.tree, decide, values)}
        if self.planned.given:
            shown["parameters"] = list(self.planned.given)
        if self.statement.analyze:
            shown |= {"planning_seconds": self.planned.seconds, "execution_seconds": self.analysis.seconds}
        if self.why is not None:
            shown["engine"] = f"{self.engine}   ({self.why})"
        if self.analysis.job is not None:
            shown["job"] = {"engine": self.engine, "why": self.why, **self.analysis.job.values()}
        return json_text(shown)

    def picture(self, optimized: Optimized) -> Picture:
        """Return the plan to be drawn; `optimized` has the memo in which the paths not taken are."""
        from remuda.optimizer.explain.not_taken import PathsNotTaken
        from remuda.plan.picture import Picture, collect

        weighed = PathsNotTaken(optimized.memo).of
        root = collect(self.plan, self.decisions.members, self.decisions.of, self.analysis.values, weighed)
        facts = [*self._summary(), *([self._parameters()] if self.planned.given else [])]
        title = "EXPLAIN ANALYZE" if self.statement.analyze else "EXPLAIN"
        query = self.planned.text[self.statement.query.span.start :].strip().removesuffix(";")
        return Picture(title, query, tuple(facts), root)

    def _parameters(self) -> str:
        like = "   (a plan for values that leave about as many rows)" if self.planned.is_for_values else ""
        return f"parameters: {', '.join(self.planned.given)}{like}"

    def _summary(self) -> list[str]:
        """Say how long planning and running took, and which engine runs it."""
        lines = []
        if self.statement.analyze:
            planned, ran = milliseconds(self.planned.seconds), milliseconds(self.analysis.seconds)
            lines.append(f"planned in {planned}, run in {ran}")
        if self.why is not None:
            job = "" if self.analysis.job is None else f"   {self.analysis.job}"
            lines.append(f"engine: {self.engine}{job}   ({self.why})")
        return lines


def _show_plan(call: Call, planner: Planner, planned: _Planned, statement: Explain, *, pictured: bool) -> Explanation:
    searched = _searched(planner, planned) if pictured else planned.optimized
    plan = planner.finish(planned.text, planned.bound, searched)
    snapshots = zip(plan.maps, call.session.store.snapshot(plan.maps), strict=True)
    decisions = Decisions(plan, planned.values, {definition.id: snapshot for definition, snapshot in snapshots})
    analysis = NOT_RUN
    if statement.analyze:
        assert planned.values is not None, "a statement that runs has its values"
        analysis = analyze(call, plan, planned.values, decisions)
    why = _reason(planner, planned.bound)
    shown = _Shown(planned, plan, decisions, analysis, statement, _engine(searched), why)
    picture = shown.picture(searched) if pictured else None
    match statement.format:
        case ExplainFormat.JSON:
            return Explanation(shown.json())
        case ExplainFormat.TEXT:
            return Explanation(shown.text(), picture)
        case ExplainFormat.HTML | ExplainFormat.SVG:
            text = shown.text()
            plan_text = Explanation(text, picture)
            drawn = plan_text.to_html() if statement.format is ExplainFormat.HTML else plan_text.to_svg()
            return Explanation(drawn, picture, text)


def _searched(planner: Planner, planned: _Planned) -> Optimized:
    """Return the plan with the memo of its search; a lookup, which is planned without one, is searched for anew."""
    if planned.optimized.memo.groups:
        return planned.optimized
    searching = replace(planner, disabled_rules=planner.disabled_rules | {FAST_PATH})
    searched = searching.optimize(planned.bound)
    return searched if searched.tree == planned.optimized.tree else planned.optimized


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
