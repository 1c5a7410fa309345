"""`Session`: the settings of one user of a grid, and the path of a statement from its text to its result.

text ─► plan, from the cache or made: parse ─► bind ─► rewrite ─► normalise ─► search ─► split    (`Session.plan`)
     ─► values of the parameters ─► snapshot, fragments, execution ─► Result                      (`QueryRun`)
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from remuda.catalog import DEFAULT_SCHEMA, SearchPath
from remuda.errors import RemudaError, SqlError, closed_error, kind_of, option_error
from remuda.expr.cancellation import CancellationToken
from remuda.grid.plan_cache import CachedPlan, PlanScope
from remuda.grid.query_run import Call, QueryRun, StatementErrors, placed
from remuda.grid.result import Result
from remuda.grid.results.batch_reader import BatchReader
from remuda.grid.rows import RowShape
from remuda.grid.settings import Settings, check_timeout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from remuda.grid.grid import Grid
    from remuda.grid.planner import Planner
    from remuda.grid.results.batch_reader import Restart
    from remuda.grid.statements.explanation import Explanation
    from remuda.runtime import Execution
    from remuda.sql import Query


class Session:
    """Runs statements with settings of its own: `SET` changes those of the session in which it is said.

    Made by `grid.session()`; `grid.sql` has one too. Threads may share a session. Closing it ends the results of its
    queries that are still being read, and so does closing the grid.

    >>> import remuda
    >>> with remuda.open().session() as session:
    ...     _ = session.sql("SET timeout = 5")
    ...     session.settings.timeout
    5.0
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.engine = grid.engine
        self.store = grid.store
        self._store_state = self.store.state  # the path of a statement from the cache goes through no property
        self._cache = self.engine.plans
        self._settings = Settings()
        self._search_path: SearchPath = (DEFAULT_SCHEMA,)
        self._plans = self._cache.in_scope(self._scope)
        self._results: WeakSet[Result] = WeakSet()
        """Those whose rows are computed as they are read. One that had all of its rows at once keeps them."""
        self._lock = Lock()
        self._closed_because: str | None = None

    @property
    def settings(self) -> Settings:
        """The values of the session's settings, which `SET` changes."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = settings
        self._plans = self._cache.in_scope(self._scope)

    @property
    def search_path(self) -> SearchPath:
        """The schemas in which a name without one is looked for."""
        return self._search_path

    @search_path.setter
    def search_path(self, search_path: SearchPath) -> None:
        self._search_path = search_path
        self._plans = self._cache.in_scope(self._scope)

    def sql(self, text: str, /, *values: Any, timeout: float | None = None, **named: Any) -> Result:
        """Run one statement; `?` parameters are given in order, `:name` parameters by name or in one mapping.

        `timeout` is how many seconds this statement may take, in place of the session's setting; `math.inf` lifts it.
        The word is taken: a parameter called `:timeout` is given in a mapping, `sql(text, {"timeout": 5})`.

        >>> import remuda
        >>> session = remuda.open().session()
        >>> session.sql("SELECT ? * 2 AS n", 21).fetchall()
        [Row(n=42)]
        >>> session.sql("SELECT :x * 2 AS n", x=21, timeout=5.0).fetchone().n
        42
        """
        try:
            entry = self._plans[text]
        except KeyError:
            entry = None
        except TypeError:
            raise not_text("a statement", text) from None
        if entry is None:
            return self.execute(text, values, named, timeout)
        if timeout is not None:
            check_timeout(timeout)
        cache = self._cache
        if entry.epoch == cache.epoch and entry.catalog is self._store_state.catalog:
            cache.count_use(entry)
        elif cache.find((self._scope, text)) is not entry:
            return self.execute(text, values, named, timeout)
        shortcut = entry.shortcut
        if shortcut is not None and not named:
            try:
                result = shortcut(values)
            except SqlError as error:
                result = None
                if not error.invalidates_plan:
                    raise placed(self, error, text) from error.__cause__
            except RemudaError:
                raise
            except Exception:
                self.store.refuse_damaged()
                raise
            if result is not None:
                return result
        return self.execute(text, values, named, timeout, entry if cache.fits_rows(entry.plan) else None)

    def execute(
        self,
        text: str,
        positional: tuple[Any, ...] = (),
        named: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        entry: CachedPlan | None = None,
    ) -> Result:
        """Run one statement with its values given apart; `entry` is its plan, where the cache has one."""
        return self._execute(text, positional, named, self._token(timeout), entry)

    async def sql_async(self, text: str, /, *values: Any, timeout: float | None = None, **named: Any) -> Result:
        """Run one statement on another thread and return its result when all rows are computed.

        Values and `timeout` are given as to `sql`. Reading the result waits for nothing, so the usual methods may be
        called in the event loop; `async for` lets the loop go on between some thousand rows. A result that is larger
        than memory is read with `sql` on a thread.

        Cancelling the task cancels the statement. A write that has begun to commit is committed all the same.

        >>> import asyncio, remuda
        >>> async def ask():
        ...     with remuda.open() as grid:
        ...         return (await grid.sql_async("SELECT ? + 1 AS n", 41, timeout=5.0)).fetchall()
        >>> asyncio.run(ask())
        [Row(n=42)]
        """
        from remuda.grid.results.async_reading import AsyncStatement

        self.refuse_closed()
        token = self._token(timeout)
        statement = AsyncStatement(token, lambda: self._execute(text, values, named, token))
        result = await statement.finish(self.engine.waiting.start(statement.run))
        self._results.discard(result)
        return result

    def _execute(
        self,
        text: str,
        positional: tuple[Any, ...],
        named: Mapping[str, Any] | None,
        token: CancellationToken,
        entry: CachedPlan | None = None,
    ) -> Result:
        self.refuse_closed()
        if not isinstance(text, str):
            raise not_text("a statement", text)
        with StatementErrors(self, text):
            call = Call(self, text, positional, named or {}, token)
            entry = entry or self._cache.find((self._scope, text))
            if entry is not None:
                return QueryRun(call, entry).run()
            # Parsing is imported with the first statement that the cache does not have, all other statements with the
            # first that is no query.
            from remuda import sql

            statement = sql.parse(text)
            if isinstance(statement, sql.Query):
                return QueryRun(call, query=statement).run()
            from remuda.grid.statements.dispatch import run_statement

            return run_statement(call, statement)

    def explain(
        self, text: str, /, *values: Any, format: str | None = None, analyze: bool = False, **named: Any
    ) -> Explanation:
        """Return the plan of a query, as SQL's EXPLAIN prints it; with `analyze` run the query first.

        With values for its parameters it says what they decide: which partitions and members, index or direct scan.
        The text is a `str`; a notebook shows it as a picture, and `save("plan.svg")` or `save("plan.html")` writes it.
        `format` is `text`, `json`, `html` or `svg`.
        """
        from remuda import sql
        from remuda.grid.statements.explain_statement import explain_query, with_options

        self.refuse_closed()
        if not isinstance(text, str):
            raise not_text("a statement", text)
        with StatementErrors(self, text):
            statement = sql.parse(text)
            if isinstance(statement, sql.Query):
                statement = sql.Explain(statement)
            if not isinstance(statement, sql.Explain):
                raise option_error("only queries have a plan")
            statement = with_options(statement, format, analyze=analyze)
            return explain_query(Call(self, text, values, named, self._token(None)), statement, pictured=True)

    def planner(self, **changes: Any) -> Planner:
        """Return what makes the session's plans at this moment."""
        return self.engine.planner(self._search_path, self._settings, **changes)

    def plan_for_values(self, text: str, query: Query, expected: tuple[Any, ...]) -> CachedPlan:
        """Plan a query for these stored values of its parameters. The cache does not keep the plan by itself."""
        epoch = self._cache.epoch
        plan = self.planner().plan(text, query, expected=expected)
        return CachedPlan(plan, RowShape(plan.columns), None, epoch)

    def plan(self, text: str, query: Query, literals: Mapping[int, Any] | None = None) -> CachedPlan:
        """Plan a query and keep the plan; one with values of parameters as `literals` is for these alone, and not kept.

        What changes from now on is noticed when the plan is used, as the epoch is from before. The plan is kept in the
        scope that it was made for, whatever SET does meanwhile.
        """
        # Imported with the first plan, as the planner is.
        from remuda.grid.shortcuts.shortcuts import compile_shortcut

        epoch, planner = self._cache.epoch, self.planner()
        plan = planner.plan(text, query, literals)
        shortcut = compile_shortcut(plan, self.store) if literals is None else None
        entry = CachedPlan(plan, RowShape(plan.columns), shortcut, epoch)
        if plan.cacheable and literals is None:
            self._cache.add((planner.scope, text), entry)
        return entry

    def open_result(self, shape: RowShape, execution: Execution, restart: Restart) -> Result:
        """Return a result whose rows are computed as they are read, and which ends with the session."""
        result = Result.of_execution(shape, BatchReader(execution, restart, self.store.refuse_damaged))
        with self._lock:
            reason = self._closed_because
            if reason is None:
                self._results.add(result)
        if reason is not None:
            result.end(closed_error(reason))
        return result

    def close(self, reason: str = "the session is closed") -> None:
        """End the results that are still being read, and refuse every further statement, for this reason."""
        with self._lock:
            if self._closed_because is not None:
                return
            self._refuse_statements(reason)
            results = list(self._results)
        for result in results:
            result.end(closed_error(reason))

    def leave(self, reason: str) -> None:
        """Refuse everything in a process that was forked off. No lock is taken, as its holder is not in this one."""
        self._refuse_statements(reason)
        for result in list(self._results):
            result.leave(closed_error(reason))

    def _refuse_statements(self, reason: str) -> None:
        """Refuse all statements from now on: without plans every statement comes to `refuse_closed`."""
        self._closed_because = reason
        self._plans = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session{'' if self._closed_because is None else ', closed'}>"

    def refuse_closed(self) -> None:
        """Raise where the session, or its grid, is closed."""
        if self._closed_because is not None:
            raise closed_error(self._closed_because)

    @property
    def _scope(self) -> PlanScope:
        return (self._search_path, *self._settings.of_plans)

    def _token(self, timeout: float | None) -> CancellationToken:
        return CancellationToken(self._settings.timeout if timeout is None else check_timeout(timeout))


def not_text(what: str, given: object) -> SqlError:
    return option_error(f"{what} is text, not {kind_of(given)}")
