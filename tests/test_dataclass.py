"""Data classes whose methods are written at their first use are the standard ones in every other way."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from remuda.dataclass import dataclass

SOURCES = Path(__file__).parents[1] / "src" / "remuda"


@dataclass(frozen=True, slots=True)
class Base:
    """Have a field that its subclasses inherit, behind their own."""

    estimate: int = dataclasses.field(default=7, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Point(Base):
    dimensions: ClassVar[int] = 2
    x: int
    y: int = 0
    names: tuple[str, ...] = dataclasses.field(default_factory=tuple, repr=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@dataclass(slots=True)
class Counter:
    value: int = 0
    limit: int = dataclasses.field(init=False, default=9)


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    text: str


@dataclass
class Open:
    text: str

    def __repr__(self) -> str:
        return f"<{self.text}>"


def test_values_are_made_by_position_and_by_name() -> None:
    point = Point(1, names=("a",), estimate=9)
    assert (point.x, point.y, point.names, point.estimate) == (1, 0, ("a",), 9)
    assert Point(x=1, y=2) == Point(1, 2)
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="x is negative"):
        Point(-1)


def test_equality_and_hash_leave_out_what_is_not_compared() -> None:
    assert Point(1, estimate=1) == Point(1, estimate=2)
    assert hash(Point(1, estimate=1)) == hash(Point(1, estimate=2))
    assert Point(1) != Point(2)
    assert Token("a") != Token("a")
    assert len({Token("a"), Token("a")}) == 2


def test_the_first_call_of_each_method_writes_it() -> None:
    def fresh() -> type[Any]:
        return dataclass(frozen=True, slots=True)(type("Fresh", (), {"__annotations__": {"x": "int"}}))

    def unmade(cls: type[Any]) -> Any:
        made = object.__new__(cls)
        object.__setattr__(made, "x", 5)
        return made

    assert fresh()(5).x == 5
    assert repr(unmade(fresh())) == "Fresh(x=5)"
    assert hash(unmade(fresh())) == hash((5,))
    equal = fresh()
    assert unmade(equal) == unmade(equal)


def test_frozen_values_refuse_assignment_and_have_no_dict() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x  # type: ignore[misc]
    assert not hasattr(point, "__dict__")


def test_values_that_can_change_have_no_hash() -> None:
    counter = Counter()
    counter.value += 1
    assert counter == Counter(1)
    assert counter.limit == 9
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_text_leaves_out_what_is_not_shown() -> None:
    assert repr(Point(1, 2, ("a",))) == "Point(estimate=7, x=1, y=2)"
    assert repr(Open("a")) == "<a>"


def test_pickle_replace_fields_and_match() -> None:
    point = Point(1, 2, ("a",), estimate=3)
    again = pickle.loads(pickle.dumps(point))
    assert again == point
    assert again.estimate == 3
    assert dataclasses.replace(point, y=5) == Point(1, 5, ("a",))
    assert [each.name for each in dataclasses.fields(Point)] == ["estimate", "x", "y", "names"]
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


COPIED_BY_SPARK = {"spark/frames/lookup_function.py"}
"""Spark copies what `analyze` of a table function returns field by field, as a standard data class."""


def test_the_engine_uses_no_data_class_whose_methods_are_written_at_import() -> None:
    standard = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.name != "dataclass.py" and "from dataclasses import dataclass" in path.read_text()
    ]
    assert set(standard) == COPIED_BY_SPARK


def test_a_new_process_writes_few_methods() -> None:
    """A query of one row needs a part of the engine's data classes."""
    program = (
        "import remuda, remuda.dataclass as d\n"
        "written = []; model = d._model\n"
        "d._model = lambda cls, method, **options: (written.append(cls), model(cls, method, **options))[1]\n"
        "made = []; decorate = d._decorate\n"
        "d._decorate = lambda cls, **options: (made.append(cls), decorate(cls, **options))[1]\n"
        "remuda.open().sql('SELECT 1').fetchall()\n"
        "print(len(made), len(set(written)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    made, written = map(int, ran.stdout.split())
    assert 0 < written < made / 2
