"""The picture of the README is a real one: `make picture` draws it again, with the same operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.picture.test_picture import cards_of

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "explain.svg"
REPAIR = "run `make picture`"


def titles(path: Path) -> list[str]:
    """The name of each card, in order."""
    return [next(iter(card)).text.split("\n")[0] for card in cards_of(ET.parse(path).getroot())]


def test_it_is_small_and_shows_what_the_engine_does_now(tmp_path: Path) -> None:
    assert PICTURE.stat().st_size < 60_000
    made = tmp_path / "made.svg"
    subprocess.run([sys.executable, str(ROOT / "examples" / "explain_picture.py"), str(made)], check=True)
    assert titles(PICTURE) == titles(made), REPAIR
    assert [each.split()[0] for each in titles(made)].count("IndexScan") == 1
    assert "partitions: 3 of 271" in PICTURE.read_text(encoding="utf-8")
