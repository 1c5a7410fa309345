"""The row budget of a root fragment: beyond it the fragment leaves the thread of its reader.

The reader of a result advances the root fragment in its own thread: nothing is faster where there are few rows. A
kernel over millions of rows, however, cannot be interrupted, and neither could a reader that is inside it. So the
runtime advances a fragment that has met more than a few rows on another thread from then on, while its reader waits for
the step, for a cancel or for the deadline, whichever comes first. A step that is given up goes on until an operator
checks the token (`ExecContext.verify`), and what it computes is dropped.

Operators know nothing of those threads. They add the rows they meet, or will meet, to the budget of their fragment. An
operator that can be in the middle of something, a sort that has read half of its input, returns WAIT where
`should_offload` says so, and is advanced again at once.

    SELECT ... WHERE key BETWEEN 1 AND 50     50 rows: in the reader's thread, whatever is done to them
    SELECT ... WHERE n > 5 ORDER BY m         a scan of a million rows says so when it is set up: moves at once
    SELECT ... WHERE tag = ? ORDER BY m       an index: 3 entries for most tags, two million for one, which moves
"""

from __future__ import annotations

LIGHT_ROWS = 8_192
"""Up to so many rows no step takes long: with a function of 5 µs a row, 40 ms. Moving adds 0.05 to 0.2 ms to a
query."""
ROWS_OF_ROUND = 64
"""What a round of a recursive query weighs beside its rows: its operators are built anew."""
ROWS_OF_PAIRS = 64
"""What a row weighs that is compared with every row of another input, or with those of its frame."""


class RowBudget:
    """Counts the rows that the operators of a fragment have met or will meet. Made once for a fragment.

    Only that of a root fragment is `movable`, until it has moved; operators that several threads advance must have
    moved before, as a WAIT of theirs would be for nothing: who forks them says so when it is set up.
    """

    __slots__ = ("movable", "rows")

    def __init__(self, *, movable: bool = False) -> None:
        self.rows = 0
        self.movable = movable

    def add(self, rows: int) -> None:
        self.rows += rows

    @property
    def should_offload(self) -> bool:
        return self.movable and self.rows > LIGHT_ROWS
