"""Create data classes whose methods are written when they are first used.

The standard decorator writes the source of `__init__`, `__eq__`, `__hash__` and `__repr__` and compiles it while a
module is imported: 0.33 ms a class. The engine has some 230 data classes, of which a short query uses a quarter, so
a new process spent 76 ms of its first second on methods it never called. This decorator leaves stubs, which have the
standard decorator write a method at its first use; from then on the class has exactly this method.

It takes the options that the engine uses and gives classes that `fields`, `replace`, `match`, pickle and type checkers
treat as data classes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True
    ) -> type | Callable[[type], type]:
        """Make a class a data class, as `dataclasses.dataclass` does, but write its methods at their first use."""

        def decorate(cls: type) -> type:
            return _decorate(cls, frozen=frozen, slots=slots, eq=eq)

        return decorate if cls is None else decorate(cls)


def _decorate(cls: type, *, frozen: bool, slots: bool, eq: bool) -> type:
    own = set(vars(cls))  # what the class body defines wins over what is written for it
    documented = cls.__doc__
    cls.__doc__ = documented or "-"  # else the standard decorator computes a signature: a third of its time
    cls = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    cls.__doc__ = documented
    if slots:
        cls = _with_slots(cls, frozen=frozen)

    def write(name: str) -> None:
        setattr(cls, name, vars(_model(cls, name, frozen=frozen, slots=slots))[name])

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
