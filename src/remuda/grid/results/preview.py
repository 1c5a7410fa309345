"""The first rows of a result, as the `repr` prints them and as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.errors import RemudaError
from remuda.presentation.text_table import as_table, cell_text, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.grid.result import Result

PREVIEW_ROWS = 10
"""Rows that a `repr` shows; `show` takes another number."""
WIDEST_CELL = 80
_STYLE = "border-collapse: collapse; font-variant-numeric: tabular-nums"
_CELL_STYLE = "padding: 2px 8px; border-bottom: 1px solid #ddd"


@dataclass(frozen=True, slots=True)
class Preview:
    """Some rows, and whether there are more of them."""

    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    has_more: bool

    @property
    def footer(self) -> str:
        return f"({'first ' if self.has_more else ''}{counted(len(self.rows), 'row')})"

    def text(self) -> str:
        return as_table(self.names, self.rows, self.footer)

    def html(self) -> str:
        """Lay the rows out as a table that needs no style sheet."""
        head = "".join(f'<th style="{_CELL_STYLE}; text-align: left">{_escape(name)}</th>' for name in self.names)
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in self.rows)
        table = f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return f"<div>{table}<small>{self.footer}</small></div>"


def preview(result: Result, size: int = PREVIEW_ROWS) -> Preview:
    """Look at the next rows of a result and leave all of them to be read."""
    rows = result.peek(size + 1)
    return Preview(tuple(column.name for column in result.columns), rows[:size], len(rows) > size)


def summary(result: Result) -> str:
    """Describe a result in one line: what it changed, or its columns and why it shows no rows."""
    if not result.columns:
        return f"<Result: {result.outcome}>"
    columns = ", ".join(f"{column.name} {column.type}" for column in result.columns)
    return f"<Result: {columns}; {'was read already' if result.was_read else 'closed'}>"


def text_of(result: Result) -> str:
    """Return the `repr` of a result. A query that fails is described by its error, as a `repr` must not raise."""
    if not result.columns or result.was_read or result.closed:
        return summary(result)
    try:
        return preview(result).text()
    except RemudaError as error:
        return f"<Result: {type(error).__name__}: {error}>"


def html_of(result: Result) -> str:
    """Return what a notebook shows of a result."""
    if not result.columns or result.was_read or result.closed:
        return f"<code>{_escape(summary(result))}</code>"
    try:
        return preview(result).html()
    except RemudaError as error:
        return f"<pre>{_escape(f'{type(error).__name__}: {error}')}</pre>"


def _html_cell(value: Any) -> str:
    if value is None:
        return f'<td style="{_CELL_STYLE}; color: #999">NULL</td>'
    is_number = not isinstance(value, bool | str | bytes) and hasattr(value, "__float__")
    alignment = "right" if is_number else "left"
    return f'<td style="{_CELL_STYLE}; text-align: {alignment}">{_escape(cell_text(value, WIDEST_CELL))}</td>'


def _escape(text: str) -> str:
    from html import escape  # its table of entities takes a millisecond, which only notebooks need

    return escape(text)
