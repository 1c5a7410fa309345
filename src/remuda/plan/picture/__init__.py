"""EXPLAIN as a picture: the plan as a tree of cards, one for each operator, in SVG or in HTML around it.

`cards.py` collects what the cards say, from the same attributes as the text; `card_blocks.py` sets it into lines and
bars; `layout.py` places the cards; `drawing.py` draws them; `page.py` puts the drawing into HTML. It needs neither
scripts nor network, and takes its colours (`style.py`) from the reader's light or dark theme.
"""

from remuda.plan.picture.cards import Card, NotTaken, PathsWeighed, collect
from remuda.plan.picture.drawing import Picture, svg
from remuda.plan.picture.page import html_fragment, html_page

__all__ = ["Card", "NotTaken", "PathsWeighed", "Picture", "collect", "html_fragment", "html_page", "svg"]
