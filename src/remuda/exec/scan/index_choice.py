"""Which index an index scan reads: decided by exact counts of entries, once the parameters are known.

    region = 'APAC' AND amount BETWEEN 0 AND 1000      by region 100 entries, by amount 999,000: region
    region = 'EMEA' AND amount BETWEEN 50 AND 50.1     by region 700,000, by amount 600: amount
    region = 'EMEA' AND amount BETWEEN 0 AND 1000      by region 700,000, by amount 999,000: full scan

An index tells a number of entries in microseconds, without reading a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from remuda.exec.scan.concrete_bounds import index_lookups
from remuda.expr import evaluate_row_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.exec.context import OperatorActivity
    from remuda.exec.scan.concrete_bounds import Values
    from remuda.plan.physical import IndexScan
    from remuda.storage import Lookup, MapSnapshot, Source

FEW_ROWS = 64
"""Up to this many rows are read one by one: starting Arrow's kernels would cost more. An index with no more entries is
read without asking the others for theirs."""


class IndexChoice(NamedTuple):
    """`scan` is the one to run: by its own index, or by that of a candidate; instead of it the map is scanned where
    `scans`."""

    number: int
    scan: IndexScan
    lookups: list[Lookup]
    entries: int
    scans: bool
    decision: tuple[str, tuple[int, ...]] | None
    """For `OperatorActivity.decide`; None where the plan's own index was read and no other was asked."""

    def positions(self, source: Source, partitions: np.ndarray | None) -> np.ndarray:
        index, lookups = self.scan.index.id, self.lookups
        if len(lookups) == 1:
            return source.positions(index, lookups[0], partitions)
        found = [source.positions(index, lookup, partitions) for lookup in lookups]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def note(self, activity: OperatorActivity) -> None:
        if self.decision is not None:
            activity.decide(self.decision[0], *self.decision[1])


def _name(scan: IndexScan) -> str:
    """Return the name of the index, as a part of a text with places for counts."""
    return scan.index.name.replace("{", "{{").replace("}", "}}")


def by_candidates(node: IndexScan) -> tuple[IndexScan, ...]:
    """Return the scan by each index that it may read, its own first: made once for a plan, see `ExpressionCache`."""
    return (node, *node.by_candidates)


def count_entries(node: IndexScan, sources: Sequence[Source], lookups: Sequence[Lookup]) -> int:
    """Count the entries within the bounds, hidden ones included: `scan_cutover` is compared with their number."""
    return sum(source.count(node.index.id, lookup) for source in sources for lookup in lookups)


def choose_index(
    scans: Sequence[IndexScan], snapshot: MapSnapshot, values: Values, partitions: np.ndarray | None = None
) -> IndexChoice:
    """Choose the scan with the fewest entries, or a full scan where even those are too many.

    `scans` are those of `by_candidates`. Of equal ones the first is chosen. Entries are those of the sources that can
    have rows of the partitions.
    """
    found = _count(scans, snapshot.sources_of(partitions), values)
    best = min(range(len(found)), key=lambda number: found[number][1])
    lookups, entries = found[best]
    cutover = scans[0].scan_cutover
    is_scan_cheaper = cutover is not None and entries > cutover.entries(snapshot.rows)
    decision: tuple[str, tuple[int, ...]] | None = None
    if is_scan_cheaper:
        decision = "full scan: {} entries", (entries,)
    elif len(found) > 1:
        order = [best, *(number for number in range(len(found)) if number != best)]
        first, *others = (_name(scans[number]) for number in order)
        text = f"index {first}: {{}} entries{''.join(f', {name} {{}}' for name in others)}"
        decision = text, tuple(found[number][1] for number in order)
    return IndexChoice(best, scans[best], lookups, entries, is_scan_cheaper, decision)


def choose_order(scans: Sequence[IndexScan], snapshot: MapSnapshot, values: Values) -> IndexChoice:
    """Choose between reading an index in order until enough rows pass, and sorting the entries of a candidate.

    Of a candidate the number of entries is exact. How many the ordered index must be read for is expected, as if the
    conditions were independent of one another: ten rows that each of two conditions passes in one of a hundred rows
    are found in 100,000 entries. `entries` of the choice is that number where the index is read in order.
    """
    own, rule = scans[0], scans[0].sort_rule
    lookups = index_lookups(own.bounds, values)
    if rule is None:
        return IndexChoice(0, own, lookups, 0, False, None)
    (_, within), *others = _count(scans, snapshot.sources, values)
    if not others:
        return IndexChoice(0, own, lookups, within, False, None)
    passing = rule.passing
    for _, entries in others:
        passing *= min(1.0, entries / max(1, snapshot.rows))
    wanted = _wanted_rows(own, values)
    tested = within if wanted is None or passing * within <= wanted else wanted / passing
    if own.filter_cutover is not None and tested > own.filter_cutover:
        # From there on one pass tests the rest. The pass alone costs as much as the entries before it.
        tested = min(tested, 2 * own.filter_cutover + rule.passed * within)
    best = min(range(len(others)), key=lambda number: others[number][1])
    chosen, (chosen_lookups, entries) = scans[best + 1], others[best]
    if entries < rule.share * tested:
        text = f"index {_name(chosen)} and a sort: {{}} entries, {{}} expected in order"
        return IndexChoice(best + 1, chosen, chosen_lookups, entries, False, (text, (entries, int(tested))))
    text = f"in order: {{}} entries expected, {_name(chosen)} {{}}"
    return IndexChoice(0, own, lookups, int(tested), False, (text, (int(tested), entries)))


def in_order(scan: IndexScan, values: Values) -> IndexChoice:
    """Return the choice to read the index in order, where there is no memory for a sort."""
    return IndexChoice(0, scan, index_lookups(scan.bounds, values), 0, False, ("in order: no memory for a sort", ()))


def _wanted_rows(scan: IndexScan, values: Values) -> int | None:
    """Return how many rows a LIMIT is expected to read; None where all are read."""
    if scan.first_rows is None:
        return scan.row_goal
    wanted: int | None = evaluate_row_count(scan.first_rows, values)
    return max(wanted or 1, 1)


def _count(scans: Sequence[IndexScan], sources: Sequence[Source], values: Values) -> list[tuple[list[Lookup], int]]:
    """Return the lookups and the entries of each scan, up to the first that has no more than a few."""
    found: list[tuple[list[Lookup], int]] = []
    for scan in scans:
        lookups = index_lookups(scan.bounds, values)
        entries = count_entries(scan, sources, lookups)
        found.append((lookups, entries))
        if entries <= FEW_ROWS:
            break
    return found
