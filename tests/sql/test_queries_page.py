"""docs/queries.md says what is so."""

from __future__ import annotations

import pytest

import remuda
from tests.harness.page import examples


@pytest.mark.parametrize("members", [1, 3])
def test_every_example_gives_the_answer_beside_it(members: int) -> None:
    found = examples("queries.md")
    assert len(found) > 40
    with remuda.open(members=members) as grid:
        for example in found:
            example.check(grid)
