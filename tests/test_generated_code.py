"""Generated functions: what they give, what they see, and that each has code of its own."""

from __future__ import annotations

import pytest

from remuda.generated_code import generate, tuple_of


def test_names_stand_for_values() -> None:
    made = generate("row, value", tuple_of(["row[1]", "convert_0(value)"]), {"convert_0": str})
    assert made((1, "a"), 7) == ("a", "7")


@pytest.mark.parametrize("name", ["open", "__import__", "eval", "getattr", "other"])
def test_nothing_but_the_given_names_is_seen(name: str) -> None:
    made = generate("row", f"{name}(row)", {"len": len})
    with pytest.raises(NameError, match=name):
        made("row")


def test_equal_text_is_compiled_once_but_shares_no_code() -> None:
    one, other = (generate("row", "convert_0(row)", {"convert_0": convert}) for convert in (int, float))
    assert one.__code__ == other.__code__
    assert one.__code__ is not other.__code__
    assert (one("1"), other("1.5")) == (1, 1.5)
