"""Settings of the documentation site: Sphinx with MyST and furo, built without network by `make docs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.lexers import PostgresLexer
from sphinx.highlighting import lexers

import remuda

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Remuda"
author = "The Remuda authors"
project_copyright = "The Remuda authors, Apache License 2.0"
version = release = remuda.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
highlight_language = "text"
lexers["sql"] = PostgresLexer()  # knows $$ quotes
default_role = "code"  # docstrings write code as Markdown does, in single backticks
suppress_warnings = ["myst.header"]  # a page that includes another begins with that one's heading

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "Remuda"
html_static_path = ["_static"]
html_css_files = ["remuda.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ff", "color-brand-content": "#6cb6ff"},
}


def setup(app: Sphinx) -> None:
    """Put the decision notes below their index, whose own table is for readers of the repository."""

    def add_notes(_: Sphinx, page: str, source: list[str]) -> None:
        if page == "decisions/README":
            source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"

    app.connect("source-read", add_notes)
