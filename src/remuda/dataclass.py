"""Create data classes whose methods are written when they are first used.

The standard decorator writes the source of `__init__`, `__eq__`, `__hash__` and `__repr__` and compiles it while a
module is imported: 0.33 ms a class. The engine has some 230 data classes, of which a short query uses a quarter, so
a new process spent 76 ms of its first second on methods it never called. This decorator leaves stubs, which write a
method at its first use; from then on the class has this method.

Frozen classes with slots are nearly all. Their constructors, comparisons and hashes differ in nothing but names, so the
code of one is made from that of another of the same shape (`remuda.generated_code`). The standard decorator writes the
methods of the others.

It takes the options that the engine uses and gives classes that `fields`, `replace`, `match`, pickle and type checkers
treat as data classes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from remuda.generated_code import generate, tuple_of

__all__ = ["dataclass", "replace"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, replace
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True
    ) -> type | Callable[[type], type]:
        """Make a class a data class, as `dataclasses.dataclass` does, but write its methods at their first use."""

        def decorate(cls: type) -> type:
            return _decorate(cls, frozen=frozen, slots=slots, eq=eq)

        return decorate if cls is None else decorate(cls)

    def replace(value: Any, /, **changes: Any) -> Any:
        """Make a value with other fields, as `dataclasses.replace` does, which asks each field what it is each time."""
        cls = value.__class__
        for name in _NAMES.get(cls) or _names_of(cls):
            if name not in changes:
                changes[name] = getattr(value, name)
        return cls(**changes)


_NAMES: dict[type, tuple[str, ...]] = {}
"""The fields that a class is made with, filled when a value is first replaced."""


def _names_of(cls: type) -> tuple[str, ...]:
    return _NAMES.setdefault(cls, tuple(each.name for each in dataclasses.fields(cls) if each.init))


def _decorate(cls: type, *, frozen: bool, slots: bool, eq: bool) -> type:
    own = set(vars(cls))  # what the class body defines wins over what is written for it
    documented = cls.__doc__
    cls.__doc__ = documented or "-"  # else the standard decorator computes a signature: a third of its time
    cls = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    cls.__doc__ = documented
    if slots:
        cls = _with_slots(cls, frozen=frozen)

    def write(name: str) -> None:
        written = _written(cls, name) if frozen and slots else None
        setattr(cls, name, written or vars(_model(cls, name, frozen=frozen, slots=slots))[name])

    names = ("__init__", "__repr__", *(("__eq__",) if eq else ()), *(("__hash__",) if eq and frozen else ()))
    deferred = [name for name in names if name not in own]
    for name in deferred:
        setattr(cls, name, _stub(name, write))
    if eq and not frozen and "__hash__" not in own:
        cls.__hash__ = None  # type: ignore[assignment]  # as of every class with an equality that can change
    if frozen:
        cls.__setattr__ = _refuse_assignment  # type: ignore[assignment, method-assign]
        cls.__delattr__ = _refuse_deletion  # type: ignore[assignment, method-assign]
    return cls


def _stub(name: str, write: Callable[[str], None]) -> Callable[..., Any]:
    def stub(self: object, *args: Any, **kwargs: Any) -> Any:
        write(name)
        return getattr(type(self), name)(self, *args, **kwargs)

    return stub


def _written(cls: type, method: str) -> Callable[..., Any] | None:
    """Return a method of a frozen class with slots, None for one that the standard decorator has to write."""
    if method == "__init__":
        written = _constructor(cls)
    elif method == "__repr__":
        return None
    else:
        compared = [each.name for each in dataclasses.fields(cls) if each.compare]
        names = {f"field_{ordinal}": name for ordinal, name in enumerate(compared)}
        own = tuple_of(f"self.{name}" for name in names)
        if method == "__hash__":
            written = generate("self", f"hash({own})", {"hash": hash}, renamed=names)
        else:
            others = tuple_of(f"other.{name}" for name in names)
            written = generate(
                "self, other",
                f"{own} == {others} if other.__class__ is self.__class__ else unknown",
                {"unknown": NotImplemented},
                renamed=names,
            )
    written.__name__, written.__qualname__, written.__module__ = method, f"{cls.__qualname__}.{method}", cls.__module__
    return written


def _constructor(cls: type) -> Callable[..., Any]:
    """Write `__init__`: each slot is set by its descriptor, as a frozen class refuses assignments."""
    positional: list[str] = []
    by_name: list[str] = []
    values: list[str] = []
    names: dict[str, Any] = {"absent": _ABSENT}
    defaults: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    for ordinal, each in enumerate(dataclasses.fields(cls)):
        argument = f"field_{ordinal}"
        value = argument
        names[f"set_{ordinal}"] = vars(_owner(cls, each.name))[each.name].__set__
        if each.default_factory is not dataclasses.MISSING:
            names[f"make_{ordinal}"] = each.default_factory
            value = f"make_{ordinal}() if {argument} is absent else {argument}" if each.init else f"make_{ordinal}()"
            defaults[each.name] = _ABSENT
        elif each.default is not dataclasses.MISSING:
            defaults[each.name] = names[f"default_{ordinal}"] = each.default
            value = argument if each.init else f"default_{ordinal}"
        elif not each.init:
            continue
        values.append(f"set_{ordinal}(self, {value})")
        if each.init:
            renamed[argument] = each.name
            (by_name if each.kw_only else positional).append(argument)
    if hasattr(cls, "__post_init__"):
        values.append("self.__post_init__()")
    arguments = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    # Each call returns None, so that `or` makes all of them.
    written = generate(arguments, " or ".join(values) or "None", names, renamed=renamed)
    given = [renamed[each] for each in positional]
    written.__defaults__ = tuple(defaults[each] for each in given if each in defaults)
    written.__kwdefaults__ = {renamed[each]: defaults[renamed[each]] for each in by_name if renamed[each] in defaults}
    return written


def _owner(cls: type, slot: str) -> type:
    return next(each for each in cls.__mro__ if slot in getattr(each, "__slots__", ()))


_ABSENT = object()
"""The default of an argument whose value is made anew for each object."""


def _model(cls: type, method: str, *, frozen: bool, slots: bool) -> type:
    """Have the standard decorator write one method of a class with the same fields, all of them its own.

    Only `__init__` depends on what the class is: it assigns in another way where that is frozen or has slots.
    """
    fields = dataclasses.fields(cls)
    body: dict[str, Any] = {each.name: each for each in fields}
    body["__annotations__"] = {each.name: each.type for each in fields}
    body["__module__"] = cls.__module__
    body["__qualname__"] = cls.__qualname__
    body["__doc__"] = "-"
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    model = type(cls.__name__, (), body)
    if method == "__init__":
        return dataclasses.dataclass(frozen=frozen, slots=slots, repr=False, eq=False)(model)
    return dataclasses.dataclass(
        init=False, repr=method == "__repr__", eq=method != "__repr__", unsafe_hash=method == "__hash__"
    )(model)


def _with_slots(cls: type, *, frozen: bool) -> type:
    """Create the class anew with slots for its own fields: a class cannot get slots once it exists."""
    inherited = {slot for base in cls.__mro__[1:-1] for slot in getattr(base, "__slots__", ())}
    body = dict(vars(cls))
    names = [each.name for each in dataclasses.fields(cls)]
    for name in [*names, "__dict__", "__weakref__"]:
        body.pop(name, None)  # a default would hide its slot
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    if frozen:  # pickle sets the slots of a state one by one, which a frozen class refuses
        body.setdefault("__getstate__", _state)
        body.setdefault("__setstate__", _set_state)
    created = type(cls)(cls.__name__, cls.__bases__, body)
    created.__qualname__ = cls.__qualname__
    return created


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
