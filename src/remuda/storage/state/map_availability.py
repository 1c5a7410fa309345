"""Whether a map may be read and written, and the error that says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import ErrorCode, SqlError, StorageError, closed_error, damage_error
from remuda.storage.segment.segment_directory import is_verified
from remuda.storage.segment.stored_groups import StoredGroups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.commit.recovery import DamagedMap
    from remuda.storage.segment.segment_directory import StoredSegment

VERIFIED_FIRST = 8 << 20
"""Bytes of rows up to which a map is verified before its first use: it takes about two milliseconds. A larger one is
verified in the background, and until then by the block, at first touch (`block_guard`)."""


class MapAvailability:
    """Tells why a map is not available: dropped, damaged, closed, or not verified yet.

    `readable` is false where any of these keeps readers out: the one test of the hot path.
    """

    __slots__ = ("_closed_because", "damage", "damaged", "destroyed", "readable", "refusal", "verifies_first")

    def __init__(self) -> None:
        self.readable = True
        self.destroyed = False
        self.damage: StorageError | None = None
        """What is wrong with the map's files, once it is known."""
        self.damaged: DamagedMap | None = None
        """The same where they could not even be opened."""
        self.verifies_first = False
        """Whether the first use waits until all files are verified."""
        self._closed_because: str | None = None
        self.refusal: str | None = None
        """Why the map cannot be written, where it cannot."""

    def restore(self, damaged: DamagedMap | None, stored: Sequence[StoredSegment]) -> None:
        """Start anew with the files of an opening or a refresh."""
        self.damaged = damaged
        self.damage = None if damaged is None else damaged.error
        self.verifies_first = damaged is None and _is_small_and_unverified(stored)
        self._set_readable()

    def end_verifying(self) -> None:
        """Let readers in, unless the verification before the first use has found damage."""
        self.verifies_first = False
        self._set_readable()

    def mark_damaged(self, damage: StorageError) -> None:
        self.damage = damage
        self.readable = False

    def mark_destroyed(self) -> None:
        """Refuse reads and writes: the map is gone from the catalog."""
        self.destroyed = True
        self.readable = False

    @property
    def refusal_state(self) -> str:
        """Return the SQLSTATE of the error that says why the map cannot be written."""
        return "25006" if self._closed_because is None else "08003"

    def close(self, reason: str) -> None:
        """Refuse reads and writes for good."""
        self._closed_because = self.refusal = reason
        self.readable = False

    def _set_readable(self) -> None:
        self.readable = not (
            self.verifies_first or self.destroyed or self.damage is not None or self._closed_because is not None
        )

    def refuse_unreadable(self, name: str) -> None:
        if self._closed_because is not None:
            raise closed_error(self._closed_because)
        if self.destroyed:
            raise SqlError(ErrorCode.MAP_DESTROYED, f"the map {name} was dropped")
        if self.damage is not None:
            refusal = damage_error(f"the map {name} cannot be used: {self.damage}")
            refusal.path, refusal.offset = self.damage.path, self.damage.offset
            raise refusal


def _is_small_and_unverified(stored: Sequence[StoredSegment]) -> bool:
    if isinstance(stored, StoredGroups):  # None of its segments is open, and those are verified that are.
        return False
    unverified = [each.info for each in stored if each.info is not None and not is_verified(each)]
    return bool(unverified) and sum(info.row_bytes for info in unverified) <= VERIFIED_FIRST
