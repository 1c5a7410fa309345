"""The statistics of all segments of a map together, as a root holds them: a map of many is planned by them alone.

They are made of the summaries of all segments, and from then on each commit combines those of its new segments with
what there is. Segments that were replaced meanwhile still count, so they are made anew once the new ones have a quarter
of the rows. Statistics guide, they need not be exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remuda.storage.segment.summary.column_summary import ColumnSummary, combine
from remuda.storage.segment.summary.saved_summaries import SavedSummaries, save_summaries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnStatistics, MapDefinition

ADDED_SHARE = 0.25
"""Statistics are made anew when rows that were added since are this share of the rows that they were made of."""


class SavedStatistics(msgspec.Struct, frozen=True, array_like=True):
    """The combined summaries of a map's columns, as `SavedSummaries` reads them.

    They were made of segments with `rows` rows, and segments with `added` rows were combined with them since.
    """

    summaries: bytes
    rows: int
    added: int = 0


def make_statistics(definition: MapDefinition, segments: Sequence[SavedSummaries], rows: int) -> SavedStatistics:
    """Combine the summaries of all segments of a map, which have so many rows."""
    return SavedStatistics(_combined(definition, segments), rows)


def add_statistics(
    definition: MapDefinition, before: SavedStatistics, fresh: Sequence[SavedSummaries], rows: int
) -> SavedStatistics | None:
    """Combine statistics with the summaries of new segments of so many rows; None where too much has changed."""
    added = before.added + rows
    if added > ADDED_SHARE * before.rows:
        return None
    if not fresh:
        return before
    known = SavedSummaries(before.summaries, fresh[0].types)
    return SavedStatistics(_combined(definition, [known, *fresh]), before.rows, added)


def _combined(definition: MapDefinition, parts: Sequence[SavedSummaries]) -> bytes:
    columns = {}
    for column in definition.columns:
        summaries = [each[column.name] for each in parts]
        columns[column.name] = _summary(combine(summaries), sum(each.rows for each in summaries))
    return save_summaries(definition, columns).raw


def _summary(known: ColumnStatistics, rows: int) -> ColumnSummary:
    """Return statistics as the summary of one segment with all the rows."""
    histogram = known.histogram
    return ColumnSummary(
        rows,
        round(known.null_share * rows),
        known.distinct or 0,
        known.minimum,
        known.maximum,
        () if histogram is None else histogram.ends,
        tuple((value, max(1, round(share * rows))) for value, share in known.common),
        () if histogram is None else histogram.up_to,
    )
