"""Chromium draws the picture: every text within its card, in light and in dark, alone and as an image."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import remuda
from tests.picture.test_picture import HOSTILE, JOIN

Browse = Callable[..., str]
LIGHT = ("rgb(255, 255, 255)", "rgb(31, 35, 40)")
DARK = ("rgb(22, 27, 34)", "rgb(230, 237, 243)")
"""The colours of a card and of its text."""

MEASURE = """<script>
const found = [];
for (const card of document.querySelectorAll("g")) {
  const frame = card.querySelector(":scope > rect.card");
  if (!frame) continue;
  const box = frame.getBoundingClientRect();
  for (const text of card.querySelectorAll("text")) {
    const own = text.getBoundingClientRect();
    if (own.left < box.left || own.right > box.right + 0.5 || own.top < box.top || own.bottom > box.bottom)
      found.push(text.textContent);
  }
}
const cards = document.querySelectorAll("rect.card");
const colour = element => getComputedStyle(element).fill;
document.body.innerHTML = "<pre id=measured>" + JSON.stringify({
  cards: cards.length, outside: found, card: colour(cards[0]),
  text: colour(document.querySelector("text")),
}).replace(/</g, "&lt;") + "</pre>";
</script>"""


def measured(browse: Browse, page: Path, *flags: str) -> dict[str, Any]:
    dumped = browse(page, *flags)
    found = re.search(r'<pre id="measured">(.*?)</pre>', dumped, re.DOTALL)
    assert found is not None, dumped[-500:]
    values: dict[str, Any] = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return values


@pytest.mark.parametrize(
    "query",
    [
        JOIN,
        "SELECT * FROM orders WHERE customer IN (1, 2, 3) AND amount > 5",
        "SELECT SUM(amount) OVER (PARTITION BY customer ORDER BY id) FROM orders WHERE status = 'NEW' OR amount < 3",
    ],
)
@pytest.mark.parametrize("analyze", [False, True])
def test_every_text_is_within_its_card(grid: Any, browse: Browse, tmp_path: Path, query: str, analyze: bool) -> None:
    explained = grid.explain(query, analyze=analyze)
    page = tmp_path / "plan.html"
    page.write_text(explained.to_html().replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    found = measured(browse, page)
    assert found["cards"] == explained.to_svg().count('<rect class="card"')
    assert found["outside"] == []


def test_colours_follow_the_theme(grid: Any, browse: Browse, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    page.write_text(grid.explain(JOIN).to_html().replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    light = measured(browse, page)
    dark = measured(browse, page, "--blink-settings=preferredColorScheme=0")
    assert (light["card"], light["text"]) == LIGHT
    assert (dark["card"], dark["text"]) == DARK


@pytest.mark.parametrize(
    ("body", "flag", "expected"),
    [
        ('<body data-jp-theme-light="false">', "--hide-scrollbars", DARK),
        ('<body data-jp-theme-light="true">', "--blink-settings=preferredColorScheme=0", LIGHT),
        ('<body class="vscode-dark">', "--hide-scrollbars", DARK),
        ('<body class="vscode-light">', "--blink-settings=preferredColorScheme=0", LIGHT),
    ],
)
def test_the_theme_of_a_notebook_wins(
    grid: Any, browse: Browse, tmp_path: Path, body: str, flag: str, expected: tuple[str, str]
) -> None:
    page = tmp_path / "cell.html"
    page.write_text(f"<!doctype html>{body}{grid.explain(JOIN)._repr_html_()}{MEASURE}</body>", encoding="utf-8")
    found = measured(browse, page, flag)
    assert (found["card"], found["text"]) == expected


def test_hostile_names_are_text_in_the_document(browse: Browse, tmp_path: Path) -> None:
    with remuda.open() as grid:
        columns = [f"c{number}{name}".replace('"', '""') for number, name in enumerate(HOSTILE)]
        listed = ", ".join(f'"{column}" VARCHAR' for column in columns)
        grid.sql(f"CREATE TABLE t (id BIGINT, {listed}, PRIMARY KEY (id))")
        named = ", ".join(f'"{column}"' for column in columns)
        literals = " OR ".join(
            f""""{column}" = '{name.replace("'", "''")}'""" for column, name in zip(columns, HOSTILE, strict=True)
        )
        explained = grid.explain(f"SELECT {named} FROM t WHERE {literals}", analyze=True)
    page = tmp_path / "plan.html"
    page.write_text(explained.to_html(), encoding="utf-8")
    dumped = browse(page)
    assert "<script" not in dumped
    assert "<b>" not in dumped
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dumped
    page.write_text(explained.to_html().replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    assert measured(browse, page)["outside"] == []


def test_the_file_is_an_image(grid: Any, browse: Browse, tmp_path: Path) -> None:
    grid.explain(JOIN, analyze=True).save(tmp_path / "plan.svg")
    page = tmp_path / "page.html"
    page.write_text(
        '<body><img src="plan.svg" onload="document.body.innerHTML = `<p>${this.naturalWidth}</p>`" '
        'onerror="document.body.innerHTML = `<p>broken</p>`"></body>',
        encoding="utf-8",
    )
    width = re.search(r'width="([0-9]+)"', (tmp_path / "plan.svg").read_text())
    assert width is not None
    assert f"<p>{width[1]}</p>" in browse(page)
