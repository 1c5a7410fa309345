"""`Explanation`: the text of EXPLAIN, which a notebook shows as a picture and which can be saved as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from remuda.errors import option_error

if TYPE_CHECKING:
    from remuda.plan.picture import Picture


class Explanation(str):
    """The text of a plan: a `str` in every respect, with a picture for those who can show one."""

    __slots__ = ("_picture", "_plan_text")

    _picture: Picture | None
    _plan_text: str

    def __new__(cls, text: str, picture: Picture | None = None, plan_text: str | None = None) -> Self:
        """Make an explanation; `plan_text` is the plan as text, where `text` has another format."""
        made = super().__new__(cls, text)
        made._picture = picture
        made._plan_text = text if plan_text is None else plan_text
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self._picture, self._plan_text

    def to_svg(self) -> str:
        """Return the picture as an SVG file, with its own colours, fonts and background."""
        from remuda.plan.picture import svg

        return svg(self._pictured())

    def to_html(self) -> str:
        """Return a page with the picture, and the plan as text below it."""
        from remuda.plan.picture import html_page

        return html_page(self._pictured(), self._plan_text)

    def save(self, path: str | Path) -> None:
        """Write the picture into a file, `.svg` or `.html`; with another ending, the text."""
        target = Path(path)
        match target.suffix.lower():
            case ".svg":
                text = self.to_svg()
            case ".html" | ".htm":
                text = self.to_html()
            case _:
                text = f"{self}\n"
        target.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: the picture, or the text as it is where there is none."""
        from html import escape

        from remuda.plan.picture import html_fragment

        return f"<pre>{escape(self)}</pre>" if self._picture is None else html_fragment(self._picture)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002  (IPython's signature)
        """Print the lines of the plan in a terminal, not a Python literal."""
        printer.text(str(self))

    def _pictured(self) -> Picture:
        if self._picture is None:
            raise option_error("only a plan has a picture, not EXPLAIN LOGICAL, STEPS or MEMO")
        return self._picture
