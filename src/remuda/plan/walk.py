"""Walking and rebuilding plan trees: the only place that knows where a node keeps its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def inputs(node: Any) -> tuple[Any, ...]:
    """Leaves have none, joins `left` and `right`, unions `inputs`, every other operator one, in its field `input`."""
    only = getattr(node, "input", None)
    if only is not None:
        return (only,)
    left = getattr(node, "left", None)
    if left is not None:
        return (left, node.right)
    several: tuple[Any, ...] = getattr(node, "inputs", ())
    return several


def with_inputs(node: Any, new: tuple[Any, ...]) -> Any:
    """Return the node over other inputs; the same object where nothing changes."""
    old = inputs(node)
    if all(one is other for one, other in zip(old, new, strict=True)):
        return node
    if hasattr(node, "input"):
        return replace(node, input=new[0])
    if hasattr(node, "left"):
        return replace(node, left=new[0], right=new[1])
    return replace(node, inputs=new)


def change_inputs(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return the node over `change` of each of its inputs; the same object where nothing changes."""
    only = getattr(node, "input", None)
    if only is not None:  # most operators, and most of planning a lookup
        new = change(only)
        return node if new is only else replace(node, input=new)
    old = inputs(node)
    return with_inputs(node, tuple(map(change, old))) if old else node


def walk(node: Any) -> Iterator[Any]:
    """Yield the node and everything below it, parents first."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(inputs(node)))
