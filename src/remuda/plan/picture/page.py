"""HTML around the drawing: a fragment for a cell of a notebook, and a page for a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.plan.picture.drawing import svg
from remuda.plan.picture.style import CLASS, MONO, SANS, style_sheet
from remuda.plan.picture.text_layout import escaped

if TYPE_CHECKING:
    from remuda.plan.picture.drawing import Picture

_PAGE_STYLE = (
    f"body{{margin:24px;font-family:{SANS};background:#fff;color:#1f2328}}"
    f"pre{{font-family:{MONO};font-size:12px;line-height:1.5;overflow:auto}}"
    "summary{cursor:pointer;font-size:13px;margin-top:16px}"
    "@media (prefers-color-scheme:dark){body{background:#010409;color:#e6edf3}}"
)


def html_fragment(picture: Picture) -> str:
    """Return the drawing in a box of its own that scrolls: wide plans keep their size."""
    return f'<div class="{CLASS}-box" style="overflow:auto;max-width:100%">{svg(picture, style_sheet())}</div>'


def html_page(picture: Picture, text: str) -> str:
    """Return a page with the drawing, and with the plan as text to be copied."""
    plan = "\n".join(map(escaped, text.split("\n")))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escaped(picture.title)}</title><style>{_PAGE_STYLE}</style></head>"
        f"<body>{html_fragment(picture)}<details><summary>Plan as text</summary><pre>{plan}</pre></details>"
        "</body></html>\n"
    )
