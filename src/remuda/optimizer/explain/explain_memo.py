"""EXPLAIN MEMO: each group with its expressions and, for each required set of traits, the alternatives costed.

    G0: Scan person   rows≈10000
        [ROOT]
          → MapScan person [PARTITIONED by id] cost≈65000
        [ROOT] ordered by name
            Sort [PARTITIONED by id] over MapScan person [PARTITIONED by id] cost≈720000
          → IndexScan person using person_name (SORTED, ascending) [PARTITIONED by id] cost≈465000
        [ROOT] ordered by name   first rows: 10
          → IndexScan person using person_name (SORTED, ascending) [PARTITIONED by id] cost≈5460 of 465000

The arrow is at the winner. Under a row goal the cost is that of the first rows, beside the cost of all. What was given
up before it was complete, as it already cost too much, has no line. A split of a join that could not have cost less
than the winner is only counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.optimizer.cost import expected_rows, first_rows_cost
from remuda.plan.operator_attributes import describe_logical, describe_order, head_of
from remuda.plan.walk import inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.expr import Column
    from remuda.optimizer.memo import Group, Memo, Required
    from remuda.plan.logical import LogicalNode
    from remuda.plan.physical import PhysicalNode
    from remuda.plan.traits import Traits


def explain_memo(memo: Memo) -> str:
    return "\n".join(_lines(memo))


def memo_json(memo: Memo) -> dict[str, Any]:
    return {"groups": _groups(memo)}


def _lines(memo: Memo) -> Iterator[str]:
    for group in _groups(memo):
        unexplored = f", splits not explored: {group['unexplored']}" if group["unexplored"] else ""
        yield f"{group['group']}: {', '.join(group['expressions'])}{unexplored}   rows≈{group['rows']:.6g}"
        for asked in group["asked"]:
            yield f"    {asked['traits']}{'' if asked['alternatives'] else '   none'}"
            for number, each in enumerate(asked["alternatives"]):
                mark = "→" if number == asked["winner"] else " "
                of_all = f" of {each['cost_of_all']:.0f}" if "cost_of_all" in each else ""
                yield f"      {mark} {each['description']} cost≈{each['cost']:.0f}{of_all}"


def _groups(memo: Memo) -> list[dict[str, Any]]:
    """Return the groups, the top one first."""
    # An order may be by a column that the group itself does not pass on.
    columns = [column for group in memo.groups for column in group.columns]
    return [
        {
            "group": f"G{group.number}",
            "expressions": [_expression(expression) for expression in group.expressions],
            "unexplored": sum(split.expression is None for split in group.splits),
            "rows": group.rows,
            "asked": [_asked(group, required, columns) for required in group.weighed],
        }
        for group in reversed(memo.groups)
    ]


def _asked(group: Group, required: Required, columns: list[Column]) -> dict[str, Any]:
    weighed, winner = group.weighed[required], group.winners.get(required)
    return {
        "traits": _traits(required.traits, columns) + _row_goal(group, required),
        "alternatives": [_alternative(plan, required.share) for plan in weighed],
        "winner": next((number for number, plan in enumerate(weighed) if plan is winner), None),
    }


def _row_goal(group: Group, required: Required) -> str:
    return "" if required.share == 1.0 else f"   first rows: {expected_rows(group.rows, required.share)}"


def _alternative(plan: PhysicalNode, share: float) -> dict[str, Any]:
    described = {"description": _plan(plan), "cost": first_rows_cost(plan, share)}
    return described if share == 1.0 else {**described, "cost_of_all": plan.estimate.cost}


def _traits(traits: Traits, columns: list[Column]) -> str:
    names = {column.id: column.name for column in columns}
    by = [names[id_] for id_ in traits.distribution.columns]
    order = f" ordered by {describe_order(traits.collation, columns)}" if traits.collation else ""
    return f"{traits.describe(by)}{order}"


def _plan(plan: PhysicalNode) -> str:
    """Write the operator over its inputs: the winners of other groups, or of this one without a trait."""
    below = ", ".join(map(head_of, inputs(plan)))
    return f"{head_of(plan)} over {below}" if below else head_of(plan)


def _expression(expression: LogicalNode) -> str:
    """Write `Join INNER(G0, G1)`: the operator without its details, which EXPLAIN LOGICAL has."""
    below = ", ".join(f"G{reference.group}" for reference in inputs(expression))
    name = describe_logical(expression).partition("   ")[0]
    return f"{name}({below})" if below else name
