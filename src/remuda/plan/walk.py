"""Walking and rebuilding plan trees: the only place that knows where a node keeps its inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def inputs(node: Any) -> tuple[Any, ...]:
    """Leaves have none; every other operator so far has one, in its field `input`."""
    only = getattr(node, "input", None)
    return () if only is None else (only,)


def with_inputs(node: Any, new: tuple[Any, ...]) -> Any:
    """The node over other inputs; the same object where nothing changes."""
    if not new or inputs(node)[0] is new[0]:
        return node
    return replace(node, input=new[0])


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """Rebuilds the tree bottom-up with `change` applied to every node; shares what stays the same."""
    return change(with_inputs(node, tuple(rewrite(child, change) for child in inputs(node))))


def walk(node: Any) -> Iterator[Any]:
    """The node and everything below it, parents first."""
    yield node
    for child in inputs(node):
        yield from walk(child)
