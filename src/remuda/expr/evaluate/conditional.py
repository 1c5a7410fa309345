"""What a batch evaluates on some of its rows alone: the branches of CASE, and the later sides of AND, OR, COALESCE.

`WHERE b <> 0 AND a / b > 1` must not divide by zero on a row that the first condition excludes. A part that cannot
fail is evaluated on all rows, which is cheaper than to pick some.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import SqlError
from remuda.expr.evaluate.dictionary import as_array, decode
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr.function import Datum
    from remuda.expr.nodes import Parameters


_FEW = 16
"""One row of so many is worth picking: to pick rows and to put values back costs what a dozen additions cost."""


@dataclass(frozen=True, slots=True)
class Part:
    """A compiled expression that sees only the columns it names, at `ordinals` of the batch."""

    compiled: Callable[[pa.RecordBatch, Parameters], Datum]
    ordinals: list[int]
    can_fail: bool
    arrow: pa.DataType

    def evaluate(self, batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        return decode(self.compiled(batch.select(self.ordinals), parameters))

    def evaluate_on(self, chosen: Datum, batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        """Return values for the chosen rows; what the others have means nothing. `chosen` has no NULL."""
        if not self.can_fail:
            return self.evaluate(batch, parameters)
        chosen = as_array(chosen, batch.num_rows)
        count = chosen.true_count
        if count == 0:
            return pa.scalar(None, self.arrow)
        if _FEW * count > batch.num_rows:
            # Others are computed for nothing, as long as none of them fails.
            with suppress(SqlError):
                return self.evaluate(batch, parameters)
        if count == batch.num_rows:
            return self.evaluate(batch, parameters)
        picked = batch.select(self.ordinals).filter(chosen)
        values = as_array(decode(self.compiled(picked, parameters)), count)
        return pc.replace_with_mask(pa.nulls(batch.num_rows, self.arrow), chosen, values)


def evaluate_case(
    branches: Sequence[tuple[Part, Part]], otherwise: Part
) -> Callable[[pa.RecordBatch, Parameters], Datum]:
    if not any(part.can_fail for part in (otherwise, *(part for branch in branches for part in branch))):
        return _evaluate_safe_case(branches, otherwise)

    def evaluate(batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        remaining: Datum = pa.scalar(True)
        value: Datum = pa.scalar(None, otherwise.arrow)
        for condition, result in branches:
            holds = pc.fill_null(condition.evaluate_on(remaining, batch, parameters), False)
            chosen = pc.and_(remaining, holds)
            value = pc.if_else(chosen, result.evaluate_on(chosen, batch, parameters), value)
            remaining = pc.and_not(remaining, holds)
        return pc.if_else(remaining, otherwise.evaluate_on(remaining, batch, parameters), value)

    return evaluate


def _evaluate_safe_case(
    branches: Sequence[tuple[Part, Part]], otherwise: Part
) -> Callable[[pa.RecordBatch, Parameters], Datum]:
    """Evaluate every part on all rows, from the last branch to the first, which wins."""

    def evaluate(batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        value = otherwise.evaluate(batch, parameters)
        for condition, result in reversed(branches):
            holds = pc.fill_null(condition.evaluate(batch, parameters), False)
            value = pc.if_else(holds, result.evaluate(batch, parameters), value)
        return value

    return evaluate


def evaluate_in_turn(
    parts: Sequence[Part], kernel: Callable[[Datum, Datum], Datum], undecided: Callable[[Datum], Datum]
) -> Callable[[pa.RecordBatch, Parameters], Datum]:
    """AND, OR, COALESCE: each part on the rows that those before it leave undecided.

    The kernel gives on a decided row what was decided, whatever the other side is.
    """
    first, *others = parts

    def evaluate(batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        value = first.evaluate(batch, parameters)
        for part in others:
            open_rows = undecided(value) if part.can_fail else pa.scalar(True)
            value = kernel(value, part.evaluate_on(open_rows, batch, parameters))
        return value

    return evaluate
