"""Data classes whose methods are written at their first use are the standard ones in every other way."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from remuda.dataclass import dataclass, replace

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


FIELDS = {
    "required": dataclasses.field,
    "default": lambda: dataclasses.field(default=3),
    "factory": lambda: dataclasses.field(default_factory=list),
    "not compared": lambda: dataclasses.field(default=4, compare=False),
    "by name": lambda: dataclasses.field(kw_only=True),
    "by name, default": lambda: dataclasses.field(default=5, kw_only=True),
    "constant": lambda: dataclasses.field(default=6, init=False),
    "made": lambda: dataclasses.field(default_factory=tuple, init=False),
}


@pytest.mark.parametrize("seed", range(60))
def test_classes_of_any_shape_are_as_the_standard_decorator_makes_them(seed: int) -> None:
    """A shape decides on the code of a method: two classes of one shape must not take each other's names."""
    random = Random(seed)
    kinds = random.choices(list(FIELDS), k=random.randrange(6))
    kinds.sort(key=lambda kind: kind in {"default", "factory", "not compared"})  # required ones come first
    names = random.sample(["a", "b", "self_", "field_0", "field_1", "set_0", "other", "absent", "hash"], len(kinds))

    def body() -> dict[str, Any]:
        fields = {name: FIELDS[kind]() for name, kind in zip(names, kinds, strict=True)}
        return {"__annotations__": dict.fromkeys(names, "int"), **fields}

    ours = dataclass(frozen=True, slots=True)(type("Shape", (), body()))
    theirs = dataclasses.dataclass(frozen=True, slots=True)(type("Shape", (), body()))
    assert [each.name for each in dataclasses.fields(ours)] == names
    calls: list[tuple[list[int], dict[str, int]]] = []
    for _ in range(12):
        given = random.sample(range(20), random.randrange(len(names) + 1))
        calls.append((given, {name: random.randrange(9) for name in names[: random.randrange(2)]}))
    made = []
    for positional, named in calls:
        made.append([_made(cls, positional, named) for cls in (ours, theirs)])
    for mine, standard in made:
        assert repr(mine) == repr(standard)
    for (one, standard_one), (other, standard_other) in product(made, made):
        assert (one == other) == (standard_one == standard_other)
    assert ours.__init__.__qualname__ == theirs.__init__.__qualname__


def _made(cls: type[Any], positional: list[int], named: dict[str, int]) -> object:
    """Return an object and its hash, or the text of the error."""
    try:
        made = cls(*positional, **named)
    except TypeError as error:
        return str(error)
    try:
        return made, hash(made)
    except TypeError as error:  # a list among the values
        return made, str(error)


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
    assert replace(point, y=5) == Point(1, 5, ("a",))
    assert replace(point, y=5).estimate == 3
    with pytest.raises(ValueError, match="x is negative"):
        replace(point, x=-1)
    with pytest.raises(TypeError, match="z"):
        replace(point, z=1)  # type: ignore[call-arg]
    counter = Counter(3)
    counter.limit = 5
    assert replace(counter, value=4).limit == 9, "a field that is not given is made anew"
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
        "written = []; model = d._model; short = d._written\n"
        "d._model = lambda cls, method, **options: (written.append(cls), model(cls, method, **options))[1]\n"
        "d._written = lambda cls, method: (written.append(cls), short(cls, method))[1]\n"
        "made = []; decorate = d._decorate\n"
        "d._decorate = lambda cls, **options: (made.append(cls), decorate(cls, **options))[1]\n"
        "remuda.open().sql('SELECT 1').fetchall()\n"
        "print(len(made), len(set(written)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    made, written = map(int, ran.stdout.split())
    assert 0 < written < made / 2
