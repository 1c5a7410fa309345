"""What the cards of a plan say: attributes and decisions as in the text, figures of the run, paths not taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.plan import physical
from remuda.plan.explain import decided_lines
from remuda.plan.operator_attributes import describe, print_fields, traits_of
from remuda.plan.picture.text_layout import counted
from remuda.plan.traits import Convention
from remuda.plan.walk import inputs, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.plan.explain import Decide
    from remuda.plan.explain_json import Measured
    from remuda.plan.fragments import Fragment, Plan

CUT_EXCHANGES = physical.RootExchange | physical.HashExchange | physical.BroadcastExchange
"""Exchanges at which a plan is cut into fragments; the workers of a LocalExchange stay within one."""

_KINDS: dict[str, tuple[type, ...]] = {
    "read": (physical.MapScan, physical.IndexScan, physical.IndexCount, physical.KeyLookup, physical.Values),
    "join": (physical.HashJoin, physical.MergeJoin, physical.NestedLoopJoin, physical.LookupJoin),
    "move": (*CUT_EXCHANGES.__args__, physical.LocalExchange),
    "group": (
        physical.HashAggregate,
        physical.StreamingAggregate,
        physical.Window,
        physical.Sort,
        physical.TopN,
        physical.Limit,
    ),
    "write": (physical.Modify, physical.Commit),
}
"""The colours of cards; operators in none of these are `row`: they change rows one by one."""


FAIR_ERROR, BAD_ERROR = 2.0, 10.0
"""Estimates that are wrong by so many times are marked, and marked strongly."""


@dataclass(frozen=True, slots=True)
class NotTaken:
    """An alternative that the search has weighed for an operator, and its cost."""

    description: str
    cost: float


@dataclass(frozen=True, slots=True)
class PathsWeighed:
    """What the search has compared: an operator and the alternatives to it, each with its cost.

    Below a LIMIT these are costs of the first rows, which are not in the order of the costs of all rows.
    """

    taken: float
    not_taken: tuple[NotTaken, ...]
    of_first_rows: bool


@dataclass(frozen=True, slots=True)
class Reach:
    """Which partitions of a map an operator touches: `touched` is None where values that were not given decide it."""

    owned: tuple[tuple[str, tuple[int, ...]], ...]
    touched: frozenset[int] | None

    @property
    def is_everything(self) -> bool:
        return self.touched is not None and all(self.touched.issuperset(owned) for _, owned in self.owned)


@dataclass(frozen=True, slots=True)
class Run:
    """What an operator did; `seconds` without its inputs, `share` of the seconds of all operators."""

    rows: int
    seconds: float
    share: float
    is_slowest: bool
    read: str
    """What a scan has read; empty for other operators."""
    figures: tuple[str, ...]
    decisions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One operator. `fragment` names the fragment that begins here, and where it runs."""

    kind: str
    name: str
    subject: str
    traits: str
    attributes: tuple[tuple[str, str], ...]
    """Pairs of a label, which may be empty, and a text."""
    rows: float
    cost: float
    inputs: tuple[Card, ...]
    fragment: str = ""
    reach: Reach | None = None
    run: Run | None = None
    paths: PathsWeighed | None = None
    is_stopped: bool = False
    """Whether a LIMIT above ends it early: the estimate is of all rows, of which fewer come."""

    @property
    def label(self) -> str:
        """The operator with the map that it reads or writes."""
        return f"{self.name} {self.subject.partition(' using ')[0]}".strip()

    @property
    def row_error(self) -> float | None:
        """The q-error: how many times too high or too low the estimate was; None where nothing ran."""
        if self.run is None:
            return None
        estimated, actual = max(self.rows, 1.0), max(float(self.run.rows), 1.0)
        if self.is_stopped and estimated > actual:
            return 1.0
        return max(estimated / actual, actual / estimated)


_READ_ALL = (
    physical.HashAggregate,
    physical.Sort,
    physical.TopN,
    physical.Window,
    physical.Spool,
    physical.Recursive,
    physical.Modify,
)
"""Operators that read their input to its end before their first row, or whatever is read of their rows."""


def _stops(node: Any, ordinal: int, is_stopped: bool) -> bool:
    """Tell whether an input of an operator may be ended early, where the operator itself `is_stopped`."""
    is_build_side = isinstance(node, physical.HashJoin | physical.NestedLoopJoin) and ordinal == 1
    return isinstance(node, physical.Limit) or (is_stopped and not is_build_side and not isinstance(node, _READ_ALL))


def highlights(root: Card) -> list[str]:
    """Say where most of the time went, and which estimate was furthest off; nothing of a plan that did not run."""
    ran = [(card, card.run) for card in walk(root) if card.run is not None]
    slowest = sorted(ran, key=lambda pair: -pair[1].share)[:3]
    said = [f"{card.label} {run.share:.0%}" for card, run in slowest if run.share >= 0.05]
    found = [f"most time: {', '.join(said)}"] if said else []
    # Of operators with the same error the lowest: there it began.
    worst = max(reversed(ran), key=lambda pair: pair[0].row_error or 0.0, default=None)
    if worst is not None and (error := worst[0].row_error or 0.0) >= FAIR_ERROR:
        found.append(f"worst estimate: {worst[0].label}, {counted(error)}×")
    return found


def collect(
    plan: Plan,
    members: Callable[[Fragment], tuple[str, ...] | None],
    decide: Decide,
    measured: Measured,
    weighed: Callable[[Any], PathsWeighed | None],
) -> Card:
    """Return the card of the plan's root, which has all others below it."""
    return _Collector(plan, members, decide, measured, weighed).collect()


class _Collector:
    def __init__(
        self,
        plan: Plan,
        members: Callable[[Fragment], tuple[str, ...] | None],
        decide: Decide,
        measured: Measured,
        weighed: Callable[[Any], PathsWeighed | None],
    ) -> None:
        self._plan = plan
        self._members = members
        self._decide = decide
        self._measured = measured
        self._weighed = weighed
        self._own_seconds: dict[int, float] = {}

    def collect(self) -> Card:
        tree = self._plan.tree
        self._note_seconds(tree)
        return self._card(tree, self._plan.root.node, self._place(self._plan.root))

    def _note_seconds(self, node: Any) -> float:
        """Note the own seconds of each operator; return those of the node with its inputs in the same fragment."""
        below = sum(list(map(self._note_seconds, inputs(node))))
        if isinstance(node, CUT_EXCHANGES):
            below = 0.0
        actual = self._measured(node)
        if actual is None:
            return below
        self._own_seconds[id(node)] = max(0.0, actual["seconds"] - below)
        return float(actual["seconds"])

    def _card(self, node: Any, own: Any, fragment: str = "", *, is_stopped: bool = False) -> Card:
        """Return the card of a node of the tree; `own` is the node of a fragment that runs for it."""
        begins = ""
        if isinstance(own, physical.Receive):
            sender = self._plan.fragments[own.edge]
            begins, own = self._place(sender), sender.node
        description = describe(node)
        name, _, subject = description.name.partition(" ")
        return Card(
            kind=next((kind for kind, types in _KINDS.items() if isinstance(node, types)), "row"),
            name=name,
            subject=subject,
            traits=traits_of(node).strip("[]"),
            attributes=self._attributes(node),
            rows=node.estimate.rows,
            cost=node.estimate.cost,
            inputs=tuple(
                self._card(child, lower, begins, is_stopped=_stops(node, ordinal, is_stopped))
                for ordinal, (child, lower) in enumerate(zip(inputs(node), inputs(own), strict=True))
            ),
            fragment=fragment,
            reach=self._reach(node),
            run=self._run(node),
            paths=self._weighed(node),
            is_stopped=is_stopped,
        )

    def _attributes(self, node: Any) -> tuple[tuple[str, str], ...]:
        """Return the fields that EXPLAIN prints for the operator, each with its label apart."""
        decision = self._decide(node)
        if decision.touched is not None:
            decision = replace(decision, partitions=None)  # the strip of cells shows them
        return tuple(pair for line in decided_lines(node, decision) for pair in _labelled(line))

    def _place(self, fragment: Fragment) -> str:
        if fragment.number == 0:
            return "fragment 0 · coordinator" if len(self._plan.fragments) > 1 else ""
        if fragment.convention is Convention.SPARK:
            return f"fragment {fragment.number} · Spark's executors"
        names = self._members(fragment)
        where = "owners of the partitions" if names is None else _listed(names) or "no member"
        return f"fragment {fragment.number} · {where}"

    def _reach(self, node: Any) -> Reach | None:
        """Return the partitions of a scan or a write; None where it has none, or all members have all rows."""
        if not isinstance(node, physical.ScanNode | physical.Modify) or node.map.replicated:
            return None
        touched = self._decide(node).touched
        if touched is None:
            if isinstance(node, physical.Modify):
                return None
            if node.pruning is None:
                touched = frozenset(range(node.map.partitions))
        owned = self._plan.partition_map.owned_of(node.map.partitions)
        if node.traits.convention is Convention.SPARK:
            owned = (("", tuple(range(node.map.partitions))),)
        return Reach(owned, touched)

    def _run(self, node: Any) -> Run | None:
        actual = self._measured(node)
        if actual is None:
            return None
        seconds, total = self._own_seconds[id(node)], sum(self._own_seconds.values())
        read = ""
        if isinstance(node, physical.ScanNode):
            entries = actual["index_entries"]
            read = f"index entries: {entries:,}" if entries else f"rows read: {actual['rows_read']:,}"
        where = f"on: {_listed(actual['member_names'])}" if actual["member_names"] else f"set up: {actual['members']}"
        return Run(
            rows=actual["rows"],
            seconds=seconds,
            share=seconds / total if total else 0.0,
            is_slowest=bool(total) and seconds == max(self._own_seconds.values()),
            read=read,
            figures=(f"batches: {actual['batches']}", where),
            decisions=tuple(actual["decisions"]),
        )


def _labelled(line: dict[str, str]) -> list[tuple[str, str]]:
    """Split `name: text` fields; a field that is printed in another form has no label."""
    pairs = []
    for (name, text), field in zip(line.items(), print_fields(line), strict=True):
        pairs.append((name, text) if field == f"{name}: {text}" else ("", field))
    return pairs


def _listed(names: Sequence[str]) -> str:
    """Join names, the first few of many.

    >>> _listed(["member-1", "member-2"]), _listed(["a", "b", "c", "d", "e"])
    ('member-1, member-2', 'a, b, c and 2 more')
    """
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
