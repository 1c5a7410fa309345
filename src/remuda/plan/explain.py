"""EXPLAIN: one operator a line, indented, with its traits and estimates; deterministic, so tests can compare it.

What an operator's lines say is made in `operator_attributes.py`; here they are put under each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.plan import physical
from remuda.plan.operator_attributes import column_names, describe, describe_logical, head_of, print_fields, traits_of
from remuda.plan.traits import Convention
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.expr import Column
    from remuda.plan import logical
    from remuda.plan.fragments import Fragment, Plan
    from remuda.plan.operator_attributes import Attributes

_ESTIMATE_COLUMN = 72
_WIDTH = 98
"""Characters of a line. Estimates stand at one column, and what is longer is broken, so that a terminal of a hundred
columns, of which the shell leaves two free, breaks nothing."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the values of a statement decide for an operator before it runs.

    A scan reads `partitions` of `partition_count`, and a statement that writes changes rows there, or in at most so
    many where it depends on rows that are yet to be read. `entries` lie within the bounds of an index scan, which
    decides with their number whether it reads them or `scans` the map; `index` names the one of several that it reads.
    A scan in order reads a candidate and `sorts`, or that many entries are expected to be read in order.
    """

    partitions: int | None = None
    partition_count: int = 0
    at_most: bool = False
    touched: frozenset[int] | None = None
    """The partitions by number; None where only how many they are is known."""
    members: tuple[str, ...] | None = None
    """The owners of the partitions; None where they are not known, or where tasks of another backend read them."""
    entries: int | None = None
    scans: bool = False
    index: str | None = None
    sorts: bool | None = None
    """None where no order is needed."""

    @property
    def reach(self) -> Attributes:
        if self.partitions is None:
            return {}
        found = {"partitions": f"{'at most ' if self.at_most else ''}{self.partitions} of {self.partition_count}"}
        return found if self.members is None else found | {"members": ", ".join(self.members) or "none"}

    @property
    def access(self) -> Attributes:
        if self.entries is None:
            return {}
        entries = "1 entry" if self.entries == 1 else f"{self.entries} entries"
        by_index = "index" if self.index is None else f"index {self.index}"
        order = "" if self.sorts is None else " and a sort" if self.sorts else " in order"
        return {"access": f"{'direct scan' if self.scans else by_index}{order}, {entries}"}

    def values(self) -> dict[str, Any]:
        """Return the same for programs."""
        found: dict[str, Any] = {}
        if self.partitions is not None:
            members = None if self.members is None else list(self.members)
            counts = {"needed": self.partitions, "of": self.partition_count, "at_most": self.at_most}
            found["partitions"] = counts | {"members": members}
        if self.entries is not None:
            found["access"] = {"path": "direct scan" if self.scans else "index", "entries": self.entries}
            if self.index is not None and not self.scans:
                found["access"]["index"] = self.index
            if self.sorts is not None:
                found["access"]["sorts"] = self.sorts
        return found


UNDECIDED = Decision()

Decide = Callable[[Any], Decision]
"""Gives what is decided for a node."""
Measured = Callable[[Any], Sequence[str]]
"""Gives, for EXPLAIN ANALYZE, what a node really did, in pieces that are not broken."""


def undecided(_: Any) -> Decision:
    return UNDECIDED


def unmeasured(_: Any) -> Sequence[str]:
    return ()


def explain(node: physical.PhysicalNode, decide: Decide = undecided, measured: Measured = unmeasured) -> str:
    """Print a physical tree."""
    return _printed(list(_lines(node, 0, decide, measured)))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with the estimates that stand behind it; `traits` is the line that it gives up where it is too long."""

    text: str
    estimate: str = ""
    traits: str = ""


def _printed(lines: Sequence[_Line]) -> str:
    """Put the estimates into one column. A head that leaves no room for them has its traits on the next line."""
    room = _WIDTH - 1 - max(len(line.estimate) for line in lines)
    whole = [len(line.text) for line in lines if line.estimate and len(line.text) <= room]
    column = max(min(_ESTIMATE_COLUMN, room), *whole, *(len(line.traits) for line in lines))
    printed: list[str] = []
    for line in lines:
        if not line.estimate:
            printed.append(line.text)
        elif len(line.text) <= column:
            printed.append(f"{line.text:<{column}} {line.estimate}")
        else:
            printed += [line.text.removesuffix(f" {line.traits.strip()}"), f"{line.traits:<{column}} {line.estimate}"]
    return "\n".join(printed)


def _lines(node: Any, depth: int, decide: Decide, measured: Measured) -> Iterator[_Line]:
    indent = "  " * depth
    below = f"{indent}    "
    estimate = f"rows≈{_count(node.estimate.rows)} cost≈{_count(node.estimate.cost)}"
    yield _Line(indent + head_of(node), estimate, below + traits_of(node))
    for line in decided_lines(node, decide(node)):
        yield from map(_Line, lay_out(print_fields(line), below))
    yield from map(_Line, lay_out(measured(node), below, gap=" ", hanging="  "))
    for child in inputs(node):
        yield from _lines(child, depth + 1, decide, measured)


def decided_lines(node: Any, decision: Decision) -> list[Attributes]:
    """Return the operator's lines, each with what is decided of it: partitions by their columns, access by count."""
    lines = describe(node).lines
    if isinstance(node, physical.Modify):
        return [*lines, decision.reach]
    return [
        line
        | (decision.reach if "partitionedBy" in line else {})
        | (decision.access if line.keys() & {"scan_cutover", "sort_rule"} else {})
        for line in lines
    ]


def lay_out(fields: Sequence[str], indent: str, gap: str = "   ", hanging: str = "") -> list[str]:
    """Put fields into lines, as many as fit; a field that is too long alone is broken between its parts."""
    lines: list[str] = []
    for field in fields:
        if lines and len(lines[-1]) + len(gap) + len(field) <= _WIDTH:
            lines[-1] += gap + field
            continue
        first, *parts = _PARTS.split(field)
        lines.append(indent + (hanging if lines else "") + first)
        for part in parts:
            if len(lines[-1]) + 1 + len(part) <= _WIDTH:
                lines[-1] += f" {part}"
            else:
                lines.append(f"{indent}  {part}")
    return lines


_PARTS = re.compile(r"(?<=,) | (?=(?:AND|OR|WHEN|ELSE) )")


def explain_fragments(
    plan: Plan,
    members: Callable[[Fragment], tuple[str, ...] | None],
    decide: Decide = undecided,
    measured: Measured = unmeasured,
) -> str:
    """Print the fragments, each with the members that run it and the edges between it and others."""
    lines: list[_Line] = []
    for fragment in plan.fragments:
        head = list(_fragment_head(plan, fragment, members(fragment)))
        lines.extend(map(_Line, lay_out(head, "", hanging="  ")))
        lines.extend(_lines(fragment.node, 1, decide, measured))
    return _printed(lines)


def _fragment_head(plan: Plan, fragment: Fragment, members: tuple[str, ...] | None) -> Iterator[str]:
    yield f"Fragment {fragment.number}"
    if fragment.number == 0:
        yield "runs on: coordinator"
    elif fragment.convention is Convention.SPARK:
        yield "runs on: Spark's executors"
    else:
        yield f"runs on: {'owners of the partitions' if members is None else ', '.join(members) or 'no member'}"
    edge = edge_of(plan, fragment)
    if edge is not None:
        every = "every member of " if edge.route is physical.Route.BROADCAST else ""
        by = f" by hash of {column_names(edge.keys)}" if edge.route is physical.Route.HASH else ""
        yield f"sends: edge {edge.sender} to {every}fragment {edge.receiver}{by}"
    if fragment.received:
        yield f"receives: {', '.join(f'edge {each}' for each in sorted(fragment.received))}"


@dataclass(frozen=True, slots=True)
class Edge:
    """How the rows of a fragment reach the one that it feeds."""

    sender: int
    receiver: int
    route: physical.Route
    keys: tuple[Column, ...]


def edge_of(plan: Plan, fragment: Fragment) -> Edge | None:
    """Return the edge that begins at a fragment, which has its number; None for the root fragment."""
    if not isinstance(fragment.node, physical.Send):
        return None
    receiver = next(each.number for each in plan.fragments if fragment.number in each.received)
    return Edge(fragment.number, receiver, fragment.node.route, fragment.node.keys)


def explain_logical(node: logical.LogicalNode, depth: int = 0) -> str:
    """Print a logical tree, one operator a line."""
    indent = "  " * depth
    lines = [indent + describe_logical(node)]
    lines.extend(explain_logical(child, depth + 1) for child in inputs(node))
    return "\n".join(lines)


def _count(number: float) -> str:
    """Enough digits to compare by eye, few enough to be stable."""
    return str(round(number)) if number >= 10 else f"{number:.3g}"
