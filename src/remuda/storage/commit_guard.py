"""The last word of whoever gave a statement: asked for when everything but the commit is done."""

from __future__ import annotations

from collections.abc import Callable

CommitGuard = Callable[[], None]
"""Called before a statement commits; raises where it must not."""


def always_granted() -> None:
    """For a statement that nothing can end any more."""
