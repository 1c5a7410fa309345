"""An attribute that is computed when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801  (used as a decorator)
    """What `functools.cached_property` is from Python 3.12 on.

    Before, it holds one lock for all objects of a class while it computes: two threads that gather the rows of two
    batches wait for each other, and a scan on two cores takes as long as on one. Two threads that ask the same object
    may both compute here, and one of the equal results is kept.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
