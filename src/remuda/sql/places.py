"""Where a node of sqlglot's tree stands in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import Span, SqlError, parsing_error

if TYPE_CHECKING:
    from sqlglot import exp


def place_of(node: exp.Expression) -> Span | None:
    """From the first to the last token below the node that sqlglot remembers."""
    starts: list[int] = []
    ends: list[int] = []
    for part in node.walk():
        meta = part.meta
        if "start" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"] + 1)
    return Span(min(starts), max(ends)) if starts else None


def unsupported(node: exp.Expression, what: str) -> SqlError:
    return parsing_error(f"{what} is not supported yet", span=place_of(node))


def refuse_unknown_parts(node: exp.Expression, known: frozenset[str]) -> None:
    """Refuses a clause or an option that the binder does not handle, at its own place."""
    for part, value in node.args.items():
        if value and part not in known:
            first = value[0] if isinstance(value, list) else value
            place = place_of(first) if hasattr(first, "walk") else None
            kind = getattr(first, "key", part).upper()
            name = {"query": "a sub-query", "with": "WITH"}.get(part.rstrip("_"), kind)
            raise parsing_error(f"{name} is not supported yet", span=place or place_of(node))
