"""How much an acknowledged write survives; the write-ahead log keeps it."""

from __future__ import annotations

from enum import Enum


class Durability(Enum):
    """What an acknowledged write survives."""

    FSYNC = "fsync"
    """Power loss."""
    OS = "os"
    """The end of the process, however sudden."""
    NONE = "none"
    """Nothing before the next checkpoint or close: for loading."""

    __hash__ = object.__hash__
