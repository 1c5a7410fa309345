"""One run of a query: its plan found or made, its values bound, its execution started; and again where the plan turned
out to be stale.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import (
    ConstraintError,
    ErrorCode,
    RemudaError,
    SqlError,
    UntypedParametersError,
    nested_too_deeply,
)
from remuda.expr.cancellation import cancelled_by
from remuda.grid.parameters import arrange, to_stored_values
from remuda.grid.result import Result
from remuda.grid.results.garbage import full_collections_put_off
from remuda.runtime.execution import as_told
from remuda.types import is_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from remuda.expr.cancellation import CancellationToken
    from remuda.grid.plan_cache import CachedPlan
    from remuda.grid.session import Session
    from remuda.grid.statement_writer import StatementWriter
    from remuda.plan.fragments import Plan
    from remuda.runtime import Execution
    from remuda.sql import Query

Answer = TypeVar("Answer")

MAXIMUM_TRIES = 20
"""How often a query whose plan turns out stale is planned anew before the user is told that members keep changing."""
FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.1
"""Seconds between the tries; each pause is twice the one before."""


@dataclass(slots=True)
class Call:
    """A statement as it was given in a session, with the values of its parameters and the token that may stop it."""

    session: Session
    text: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    token: CancellationToken

    def values_of(self, plan: Plan) -> tuple[Any, ...]:
        """Return the values in the order of the plan's parameters."""
        expected = len(plan.parameters) - plan.reads_clock
        return arrange(plan.parameter_names, expected, self.positional, self.named)


class QueryRun:
    """Runs one query, as often as it takes to meet the objects that it was planned for."""

    def __init__(self, call: Call, entry: CachedPlan | None = None, query: Query | None = None) -> None:
        """`entry` is the plan from the cache, `query` the parsed text of a query that has none yet."""
        self._session = call.session
        self._call = call
        self._entry = entry
        self._query = query
        self._now: datetime | None = None
        self._tries = 0
        self._literals: dict[int, Any] = {}
        """Parameters that have their values in the plan, by number: types of parameters, and versions of tables."""

    def run(self) -> Result:
        """Run the query to its first row; a statement that writes, to its end."""
        return self._until_current(self._run_once)

    def restart(self, error: SqlError, allowed: bool) -> Execution:
        """Plan anew and start again after an error that says that the plan was stale; raise any other error."""
        with StatementErrors(self._session, self._call.text):
            self._drop_plan(error, allowed)
            return self._until_current(lambda entry: self._start(*self._bind(entry)))

    def _until_current(self, attempt: Callable[[CachedPlan], Answer]) -> Answer:
        while True:
            try:
                return attempt(self._entry or self._plan())
            except SqlError as error:
                self._drop_plan(error)

    def _run_once(self, entry: CachedPlan) -> Result:
        if self._query is not None and entry.shortcut is not None and not self._call.named:
            result = entry.shortcut(self._call.positional)
            if result is not None:
                return result
        entry, stored = self._bind(entry)
        if entry.plan.modifies is not None:
            engine, token, text = self._session.engine, self._call.token, self._call.text
            return engine.run_writing(token, lambda: self._modify(entry, stored), text, entry.plan.uses_spark)
        return self._session.open_result(entry.shape, self._start(entry, stored), self.restart)

    def _plan(self) -> CachedPlan:
        """Plan the query. Planning that alone takes longer than the statement may ends in the middle."""
        call, session = self._call, self._session
        with cancelled_by(call.token.check):
            query = self._parsed()
            try:
                self._entry = session.plan(call.text, query)
            except UntypedParametersError as error:
                if not error.numbers:
                    raise
                # `SELECT ?`: only the values tell the types of such parameters.
                given = arrange(query.parameters.names, len(query.parameters), call.positional, call.named)
                self._literals = {number: given[number] for number in error.numbers}
                self._entry = session.plan(call.text, query, self._literals)
            except SqlError:
                literals = self._intervals(query)
                if not literals:
                    raise
                self._entry = session.plan(call.text, query, literals)
        return self._entry

    def _intervals(self, query: Query) -> dict[int, timedelta]:
        """Return the values that are INTERVALs, by number: in `now() - ? < ts` only the value tells that it is one."""
        call = self._call
        if not any(isinstance(value, timedelta) for value in (*call.positional, *call.named.values())):
            return {}
        given = arrange(query.parameters.names, len(query.parameters), call.positional, call.named)
        return {number: value for number, value in enumerate(given) if isinstance(value, timedelta)}

    def _parsed(self) -> Query:
        if self._query is None:
            from remuda import sql

            query = sql.parse(self._call.text)
            assert isinstance(query, sql.Query), "only queries have plans"
            self._query = query
        return self._query

    def _bind(self, entry: CachedPlan) -> tuple[CachedPlan, tuple[Any, ...]]:
        """Return the plan for the values that were given, and those in stored form."""
        plan = entry.plan
        given = self._call.values_of(plan)
        if plan.reads_clock:
            self._now = self._now or datetime.now(UTC)
            given = (*given, self._now)
        stored, errors = to_stored_values(plan.parameters, given)
        if errors:
            return self._plan_with_literals(given, errors), stored
        return (self._plan_for_values(entry, stored) if plan.value_bounds else entry), stored

    def _plan_for_values(self, entry: CachedPlan, stored: tuple[Any, ...]) -> CachedPlan:
        # Imported with the first plan that has several, as planning is.
        from remuda.grid.value_plans import plan_for_values

        session, text = self._session, self._call.text

        def plan(values: tuple[Any, ...]) -> CachedPlan:
            with cancelled_by(self._call.token.check):
                return session.plan_for_values(text, self._parsed(), values)

        return plan_for_values(entry, stored, session.store, session.engine.plans, plan)

    def _plan_with_literals(self, given: tuple[Any, ...], errors: Mapping[int, SqlError]) -> CachedPlan:
        """Plan for values that their column's type cannot hold: as literals they are compared exactly, or refused."""
        query = self._parsed()
        try:
            literals = {**self._literals, **{number: given[number] for number in errors}}
            return self._session.plan(self._call.text, query, literals)
        except SqlError as error:
            number = query.parameters.blamed(tuple(errors), error.span)
            told = error if is_list(given[number]) else errors[number]  # of a list, the item that is wrong
            raise told.restated(f"parameter {number + 1}: {told.message}", query.parameters.spans[number]) from error

    def _start(self, entry: CachedPlan, stored: tuple[Any, ...], writer: StatementWriter | None = None) -> Execution:
        session = self._session
        limit, folder = session.settings.memory_limit, session.settings.spill_folder
        return session.engine.start(
            entry, stored, self._call.token, limit, writer, statement=self._call.text, spill_folder=folder
        )

    def _modify(self, entry: CachedPlan, stored: tuple[Any, ...]) -> Result:
        """Other writers of the map wait from the snapshot that the statement reads until it has written."""
        from remuda.grid.statement_writer import StatementWriter

        assert entry.plan.modifies is not None
        store = self._session.store
        target = store.map(entry.plan.modifies)
        with (
            full_collections_put_off,
            target.writing_under(self._call.token),
            StatementWriter(store, entry.plan.modification) as writer,
        ):
            batch = self._start(entry, stored, writer).next_batch()
        assert batch is not None, "a modification gives one row"
        return Result.of_update(batch.row(0)[0])

    def _drop_plan(self, error: SqlError, allowed: bool = True) -> None:
        """Forget the plan after an error that says that it was stale, and pause; raise any other error.

        The stale plan leaves the cache even where the query cannot be run again, as rows of it have been handed out.
        """
        if not error.invalidates_plan:
            raise error
        if self._entry is not None:
            self._session.engine.plans.remove(self._entry)
            self._entry = None
        self._tries += 1
        if not allowed or self._tries >= MAXIMUM_TRIES:
            if allowed and error.code is ErrorCode.PARTITION_DISTRIBUTION:
                message = f"members changed {self._tries} times while the query was to be run"
                raise SqlError(ErrorCode.TOPOLOGY_CHANGE, message) from error
            raise error
        time.sleep(min(FIRST_PAUSE * 2**self._tries, LONGEST_PAUSE))


class StatementErrors:
    """Gives errors the text of their statement, and tells those of libraries as what they mean for the user.

    A class, as a generator would take 2 µs of the 60 of a small query.
    """

    __slots__ = ("_session", "_text")

    def __init__(self, session: Session, text: str) -> None:
        self._session = session
        self._text = text

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        match error:
            case SqlError():
                raise placed(self._session, error, self._text) from error.__cause__
            case RecursionError():
                raise nested_too_deeply() from None
            case MemoryError() | pa.ArrowCapacityError():
                raise as_told(error) from error
            case Exception() if not isinstance(error, RemudaError):
                self._session.store.refuse_damaged()


def placed(session: Session, error: SqlError, text: str) -> SqlError:
    """Return the error with the text, and of a row that its map does not allow with the place of the value."""
    if isinstance(error, ConstraintError) and error.span is None and error.text is None:
        from remuda.sql.bind.refused_value import span_of_refused

        error.span = span_of_refused(text, error.row or 0, error.columns, session.store.catalog, session.search_path)
    return error.with_text(text)
