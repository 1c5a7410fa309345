"""The plan checker: right plans pass, plans in which some need is not met are refused with what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.expr import Call, Column, Literal
from remuda.plan import logical, physical
from remuda.plan.checker import check_logical, check_physical
from remuda.plan.logical import Assignment, Operation
from remuda.plan.physical import Phase
from remuda.plan.traits import REPLICATED, Collation, Convention, SortKey, Traits
from remuda.types import BIGINT, DOUBLE
from tests.plan.trees import (
    AMOUNT,
    AT_ROOT,
    BY_AMOUNT,
    BY_ID,
    ID,
    MAP,
    ON_MEMBERS,
    ON_SPARK,
    TEN,
    count,
    exchange,
    keep_all,
    local,
    ordered,
    ordered_scan,
    positive,
    root,
    scan,
)

ELSEWHERE = Column(99, "elsewhere", DOUBLE)
CONSTANTS = physical.Values((ID,), (), Traits(Convention.LOCAL, REPLICATED))
DOUBLED = Column(20, "twice", DOUBLE)
TWICE = Assignment(DOUBLED, Call("*", (AMOUNT, Literal(2.0, DOUBLE)), DOUBLE))
RENAMED = Assignment(Column(21, "amount", DOUBLE), AMOUNT)


def project(source: object, *assignments: Assignment, traits: Traits) -> physical.Project:
    return physical.Project(source, assignments, traits)  # type: ignore[arg-type]


def top(source: object, traits: Traits, order: Collation = BY_AMOUNT) -> physical.TopN:
    return physical.TopN(source, order, TEN, None, replace(traits, collation=order))  # type: ignore[arg-type]


RULE = physical.PartialRule(100, 64, 10)
GOOD: dict[str, tuple[physical.Root, int]] = {
    "one member": (root(scan()), 1),
    "exchange": (root(exchange(scan())), 3),
    "exchange merges": (root(exchange(ordered_scan(), ordered(AT_ROOT)), ordered(AT_ROOT)), 3),
    "Spark leaves": (root(exchange(scan(ON_SPARK))), 1),
    "constants": (root(CONSTANTS), 3),
    "filter on members": (root(exchange(positive(scan(), AMOUNT, ON_MEMBERS))), 3),
    "two phases": (root(count(exchange(count(scan(), Phase.PARTIAL, ON_MEMBERS)), Phase.FINAL, AT_ROOT)), 3),
    "in place": (root(exchange(count(scan(BY_ID), Phase.COMPLETE, BY_ID, keys=(ID,)))), 3),
    "sort on members": (root(exchange(physical.Sort(scan(), BY_AMOUNT, ordered(ON_MEMBERS)), ordered(AT_ROOT))), 3),
    "top rows": (root(physical.TopN(exchange(scan()), BY_AMOUNT, TEN, None, ordered(AT_ROOT))), 3),
    "order through a renaming": (
        root(
            project(
                ordered_scan(),
                RENAMED,
                traits=Traits(Convention.LOCAL, BY_ID.distribution, (SortKey(RENAMED.column.id),)),
            )
        ),
        1,
    ),
    "modification": (root(physical.Modify(exchange(scan()), MAP, Operation.SINK, AT_ROOT)), 3),
    "shared scan": (root(local(scan())), 1),
    "shared scan on members": (root(exchange(local(positive(scan(), AMOUNT, ON_MEMBERS)))), 3),
    "parts of workers": (root(count(local(count(scan(), Phase.PARTIAL, ON_MEMBERS)), Phase.FINAL, AT_ROOT)), 1),
    "groups of workers": (
        root(count(local(count(scan(), Phase.PARTIAL, ON_MEMBERS, (AMOUNT,)), RULE), Phase.FINAL, AT_ROOT, (AMOUNT,))),
        1,
    ),
    "parts of workers and of members": (
        root(
            count(
                exchange(count(local(count(scan(), Phase.PARTIAL, ON_MEMBERS)), Phase.INTERMEDIATE, ON_MEMBERS)),
                Phase.FINAL,
                AT_ROOT,
            )
        ),
        3,
    ),
    "first rows of workers": (root(top(local(top(scan(), ON_MEMBERS)), AT_ROOT)), 1),
}


@pytest.mark.parametrize("name", list(GOOD))
def test_a_right_plan_passes(name: str) -> None:
    tree, members = GOOD[name]
    check_physical(tree, members=members)


AT = "the rows are on the coordinator"
COLUMN = "every column used comes from the input"
ORDER = "the input has the order that is promised"
BACKEND = "only an exchange changes the backend"
MOVED = "only an exchange moves rows"
DOUBLED_ROWS = "an exchange brings together rows that are each on one member"

SHARED = "workers share a scan and what makes batches from its batches"
UNORDERED = "rows of workers come in no order, and all of them"
MERGED = "an aggregate in parts is merged by the operator above"
FIRST = "the first rows of each worker are merged by the operator above"

BAD: dict[str, tuple[physical.Root, str]] = {
    "rows left on the members": (root(scan()), AT),
    "limit before the rows are together": (root(physical.Limit(scan(), TEN, None, AT_ROOT)), AT),
    "sort before the rows are together": (root(physical.Sort(scan(), BY_AMOUNT, ordered(AT_ROOT))), AT),
    "top rows of each member taken for those of all": (
        root(physical.TopN(scan(), BY_AMOUNT, TEN, None, ordered(AT_ROOT))),
        AT,
    ),
    "final aggregate without an exchange": (
        root(count(count(scan(), Phase.PARTIAL, ON_MEMBERS), Phase.FINAL, AT_ROOT)),
        AT,
    ),
    "groups that are not together": (root(exchange(count(scan(), Phase.COMPLETE, ON_MEMBERS, keys=(AMOUNT,)))), AT),
    "groups by part of the partitioning": (
        root(exchange(count(scan(BY_ID), Phase.COMPLETE, BY_ID, keys=(AMOUNT,)))),
        AT,
    ),
    "one count on each member": (root(exchange(count(scan(BY_ID), Phase.COMPLETE, BY_ID))), AT),
    "modification on the members": (root(physical.Modify(scan(), MAP, Operation.SINK, AT_ROOT)), AT),
    "filter that claims to move rows": (root(keep_all(scan(), AT_ROOT)), MOVED),
    "projection that claims to move rows": (root(project(scan(), TWICE, traits=AT_ROOT)), MOVED),
    "exchange of what every member has": (root(exchange(CONSTANTS)), DOUBLED_ROWS),
    "exchange of an exchange": (root(exchange(exchange(scan()))), DOUBLED_ROWS),
    "Spark rows without an exchange": (root(scan(ON_SPARK), ON_SPARK), "the result is in this process"),
    "filter in another backend": (root(exchange(keep_all(scan(ON_SPARK), ON_MEMBERS))), BACKEND),
    "filter on a column from elsewhere": (root(exchange(positive(scan(), ELSEWHERE, ON_MEMBERS))), COLUMN),
    "result column from elsewhere": (physical.Root(exchange(scan()), (ELSEWHERE,), ("x",), AT_ROOT), COLUMN),
    "order by a column from elsewhere": (
        root(physical.Sort(exchange(scan()), (SortKey(ELSEWHERE.id),), AT_ROOT)),
        COLUMN,
    ),
    "aggregate without its states": (root(count(exchange(scan()), Phase.FINAL, AT_ROOT)), COLUMN),
    "promised order": (root(exchange(scan(), ordered(AT_ROOT)), ordered(AT_ROOT)), ORDER),
    "order lost in a filter": (root(exchange(keep_all(scan(), ordered(ON_MEMBERS)), ordered(AT_ROOT))), ORDER),
    "order by something computed": (
        root(
            exchange(
                project(ordered_scan(), TWICE, traits=Traits(Convention.LOCAL, ON_MEMBERS.distribution, (SortKey(20),)))
            )
        ),
        ORDER,
    ),
    "shared index scan": (root(exchange(local(ordered_scan()))), SHARED),
    "shared limit": (root(exchange(local(physical.Limit(scan(), TEN, None, ON_MEMBERS)))), SHARED),
    "shared groups": (
        root(exchange(local(count(scan(BY_ID), Phase.COMPLETE, BY_ID, (ID,))))),
        SHARED,
    ),
    "shared in shares": (root(exchange(local(local(scan())))), SHARED),
    "limit that workers read beyond": (
        root(exchange(physical.Limit(local(scan()), TEN, None, ON_MEMBERS))),
        UNORDERED,
    ),
    "order that workers lose": (root(exchange(local(scan()), ordered(AT_ROOT)), ordered(AT_ROOT)), ORDER),
    "order that workers promise": (
        root(exchange(physical.LocalExchange(scan(), 1, ordered(ON_MEMBERS)))),
        ORDER,
    ),
    "workers of Spark": (root(exchange(local(scan(ON_SPARK)))), "the workers are those of a member"),
    "parts that nobody merges": (root(exchange(local(count(scan(), Phase.PARTIAL, ON_MEMBERS)))), MERGED),
    "parts merged by other keys": (
        root(
            exchange(
                count(local(count(scan(BY_ID), Phase.PARTIAL, BY_ID, (ID, AMOUNT))), Phase.INTERMEDIATE, BY_ID, (ID,))
            )
        ),
        MERGED,
    ),
    "rows merged as if they were states": (
        root(exchange(count(local(scan()), Phase.INTERMEDIATE, ON_MEMBERS))),
        COLUMN,
    ),
    "first rows that nobody merges": (root(exchange(local(top(scan(), ON_MEMBERS)))), FIRST),
    "first rows merged in another order": (
        root(exchange(top(local(top(scan(), ON_MEMBERS)), ON_MEMBERS, (SortKey(ID.id),)))),
        FIRST,
    ),
    "rule for parts without parts": (
        root(exchange(local(scan(), RULE))),
        "only an aggregate is done in parts or not",
    ),
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_wrong_plan_is_refused(name: str) -> None:
    tree, need = BAD[name]
    with pytest.raises(SqlError) as refused:
        check_physical(tree, members=3)
    assert refused.value.code is ErrorCode.GENERIC
    assert refused.value.message.endswith(need)


def test_with_one_member_everything_is_on_the_coordinator() -> None:
    tree = root(physical.Limit(scan(), TEN, None, AT_ROOT))
    check_physical(tree, members=1)
    with pytest.raises(SqlError, match=AT):
        check_physical(tree, members=2)


LOGICAL_SCAN = logical.Scan(MAP, (ID, AMOUNT))


def test_logical_trees() -> None:
    check_logical(
        logical.Root(logical.Filter(LOGICAL_SCAN, Call("is null", (AMOUNT,), TWICE.column.type)), (ID,), ("id",))
    )
    with pytest.raises(SqlError, match="the plan is wrong at Root"):
        check_logical(logical.Root(LOGICAL_SCAN, (ELSEWHERE,), ("elsewhere",)))
    retyped = Column(AMOUNT.id, "amount", BIGINT)
    wrong: list[logical.LogicalNode] = [
        logical.Scan(MAP, (ELSEWHERE,)),
        logical.Values((ID, AMOUNT), ((TEN,),)),
        logical.Filter(LOGICAL_SCAN, Call("is null", (retyped,), TWICE.column.type)),
    ]
    for tree in wrong:
        with pytest.raises(SqlError, match="the plan is wrong"):
            check_logical(tree)


def test_constructors_refuse_columns_that_the_input_does_not_have() -> None:
    with pytest.raises(AssertionError, match="elsewhere"):
        logical.Filter(LOGICAL_SCAN, ELSEWHERE)
    with pytest.raises(AssertionError, match="elsewhere"):
        logical.Project(LOGICAL_SCAN, (Assignment(ELSEWHERE, ELSEWHERE),))
    with pytest.raises(AssertionError, match="elsewhere"):
        logical.Aggregate(LOGICAL_SCAN, (ELSEWHERE,), ())
    with pytest.raises(AssertionError, match="an order uses columns of its input"):
        logical.Sort(LOGICAL_SCAN, (SortKey(ELSEWHERE.id),))
