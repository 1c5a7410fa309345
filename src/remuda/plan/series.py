"""generate_series and range: values at equal distances, as many as lie between two ends."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import Literal, substitute
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.errors import Span
    from remuda.expr import Column, Expression


@dataclass(frozen=True, slots=True)
class SeriesCall:
    """`column` has `start` and what follows it in steps of `step`, as far as `stop`, itself among them or not.

    The arguments are BIGINTs, or two moments of one type and an INTERVAL. Where one is NULL there are no values, and
    where the step leads away from `stop` neither; a step of zero is an error. Months are added to the value before, so
    a month after 31 January is 29 February and the one after that 29 March, not 31: as PostgreSQL does it.
    """

    column: Column
    start: Expression
    stop: Expression
    step: Expression
    includes_stop: bool
    span: Span | None = field(default=None, compare=False, repr=False)
    expected: float | None = field(default=None, compare=False, repr=False, kw_only=True)
    """How many values a row is expected to have, where the maker of the series knows."""

    @property
    def name(self) -> str:
        return "generate_series" if self.includes_stop else "range"

    @property
    def arguments(self) -> tuple[Expression, Expression, Expression]:
        return self.start, self.stop, self.step

    @property
    def is_of_months(self) -> bool:
        return self.step.type.kind is Kind.INTERVAL_MONTHS

    @property
    def known_values(self) -> range | None:
        """The values, where they are known before anything is run; those of months are not counted in advance."""
        values: list[int | None] = [part.value for part in self.arguments if isinstance(part, Literal)]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return range(0)
        if len(known) < 3 or self.is_of_months:
            return None
        start, stop, step = known
        return range(start, stop + (1 if step > 0 else -1) if self.includes_stop else stop, step)

    @property
    def known_count(self) -> int | None:
        """How many values there are. Python's `len` goes no further than 2^63."""
        values = self.known_values
        if values is None:
            return None
        return (values[-1] - values.start) // values.step + 1 if values else 0

    def with_meanings(self, meanings: Mapping[int, Expression]) -> SeriesCall:
        """Return the series with other columns, by the ids of those that they replace."""
        start, stop, step = (substitute(part, meanings) for part in self.arguments)
        return replace(self, start=start, stop=stop, step=step)
